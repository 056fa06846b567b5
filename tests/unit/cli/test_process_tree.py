"""A process and all that it has started."""

from __future__ import annotations

import os
import subprocess

from groupsvc.cli.process_tree import Line, Process, family, family_of, kill, line_of, parsed

STAT = "4711 (a) R 1 (b) S 17 4711 4711 34816 4711 4194560 1 0 0 0 0 0 0 0 20 0 1 0 998877 1 2 3"


def line(pid: int, parent: int) -> Line:
    return Line(Process(pid, start=pid * 10), parent, "S")


def test_the_name_of_a_program_may_look_like_anything() -> None:
    assert Line(Process(4711, 998877), 17, "S") == parsed(STAT)


def test_a_family_is_who_was_started_by_it_and_nobody_else() -> None:
    lines = [line(1, 0), line(5, 1), line(6, 5), line(7, 6), line(8, 1), line(9, 8), line(10, 5)]
    assert [5, 6, 10, 7] == [one.pid for one in family_of([5], lines)]
    assert [6, 8, 7, 9] == [one.pid for one in family_of([8, 6], lines)]
    assert [] == family_of([77], lines)


def test_a_number_that_somebody_else_has_now_is_somebody_else() -> None:
    mine = line_of(os.getpid())
    assert mine is not None
    assert mine.process.is_alive
    assert not Process(os.getpid(), mine.process.start - 1).is_alive
    assert Process(os.getpid(), mine.process.start - 1).send(9), "nobody was hit"


def test_who_has_ended_is_not_alive_though_nobody_waited_for_it() -> None:
    with subprocess.Popen(["true"]) as process:
        found = line_of(process.pid)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert found is not None
        assert not found.process.is_alive


def test_all_of_a_family_are_killed_also_those_who_do_not_want_to_end() -> None:
    script = "trap '' TERM; (trap '' TERM; sleep 60 & echo here; wait) & wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"here\n" == process.stdout.readline()
        all_ = family(process.pid)
        assert 3 <= len(all_)
        kill(process.pid)
        assert b"" == process.stdout.read(), "nobody is left who could write"
    assert not any(one.is_alive for one in all_)
