"""``groupsvc lock`` and ``groupsvc elect`` with real daemons: exit codes, signals, and what happens when it is lost."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.front import LOOK_S
from groupsvc.testing import LocalDomain

from .test_locks import wait_for_line
from .typed_commands import Terminal, Typed, command, end, environment, groupsvc, is_running, wait_until

G = shlex.join(command())


@pytest.fixture
def name() -> str:
    """Of a lock of this test alone."""
    return f"shell/{time.time_ns()}"


class TestRunning:
    """The command as if it were run alone."""

    def test_the_exit_code_is_that_of_the_command_which_knows_what_it_holds(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        ended = groupsvc(shared_domain, "lock", name, "--", "sh", "-c", "echo $GROUPSVC_LOCK $GROUPSVC_FENCE; exit 7")
        assert (7, "") == (ended.returncode, ended.stderr)
        said, first = ended.stdout.split()
        assert name == said
        again = groupsvc(shared_domain, "lock", name, "--", "sh", "-c", "echo $GROUPSVC_FENCE; kill -9 $$", node="n1")
        assert 128 + signal.SIGKILL == again.returncode
        assert int(first) < int(again.stdout)

    def test_a_signal_is_passed_on_and_the_lock_is_held_until_the_command_has_ended(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        script = "trap 'echo heard; read line; exit 5' TERM; echo ready; while :; do sleep 0.02; done"
        with Typed(shared_domain, "lock", name, "--", "sh", "-c", script) as holder:
            assert "ready" == holder.says()
            holder.process.terminate()
            assert "heard" == holder.says()
            busy = groupsvc(shared_domain, "lock", name, "--try", "--", "echo", "mine", node="n3")
            assert (ExitCode.LATE, "") == (busy.returncode, busy.stdout)
            holder.tell("go on")
            assert 5 == holder.ends()
        free = groupsvc(shared_domain, "lock", name, "--try", "--", "echo", "mine", node="n3")
        assert (0, "mine\n") == (free.returncode, free.stdout)

    def test_a_command_begins_as_soon_as_the_lock_is_held(self, shared_domain: LocalDomain, name: str) -> None:
        """Not when the one that watches signals looks again, a second later."""
        times: list[float] = []
        for _ in range(3):
            began = time.monotonic()
            assert 0 == groupsvc(shared_domain, "lock", name, "--", "true").returncode
            times.append(time.monotonic() - began)
        assert min(times) < LOOK_S

    def test_who_waits_ends_by_the_signal_and_is_in_the_line_no_more(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        with (
            shared_domain.connect("n1") as session,
            session.lock(name),
            Typed(shared_domain, "lock", name, "--", "echo", "mine") as waiter,
        ):
            wait_for_line(session, name, "n1", "n2")
            waiter.process.terminate()
            assert -signal.SIGTERM == waiter.process.wait(timeout=30)
            wait_for_line(session, name, "n1")
            assert "" == waiter.says()

    def test_who_is_late_is_told_who_has_it(self, shared_domain: LocalDomain, name: str) -> None:
        with Typed(shared_domain, "lock", name, "--", "sh", "-c", "echo ready; read line") as holder:
            assert "ready" == holder.says()
            expected = rf"groupsvc: lock '{name}' is not to be had within 0.3 s; .* is \S+:{holder.process.pid} at n2\n"
            for more, text in (
                (["--timeout", "0.3"], expected),
                (["--nonblock"], expected.replace(" within 0.3 s", "")),
            ):
                late = groupsvc(shared_domain, "lock", name, *more, "--", "echo", "mine")
                assert (ExitCode.LATE, "") == (late.returncode, late.stdout)
                assert re.fullmatch(text, late.stderr), late.stderr

    def test_contenders_on_three_nodes_exclude_each_other(
        self, shared_domain: LocalDomain, name: str, tmp_path: Path
    ) -> None:
        """L6: the file would have an end without its beginning before it, or a smaller fence."""
        record = tmp_path / "record"
        write = f"echo begin $GROUPSVC_FENCE >> {record}; sleep 0.05; echo end $GROUPSVC_FENCE >> {record}"
        with ExitStack() as stack:
            contenders = [
                stack.enter_context(Typed(shared_domain, "lock", name, "--", "sh", "-c", write, node=node))
                for node in ("n1", "n2", "n3", "n1")
            ]
            assert [0] * 4 == [one.ends() for one in contenders]
        lines = record.read_text().splitlines()
        fences = [int(line.split()[1]) for line in lines]
        assert ["begin", "end"] * 4 == [line.split()[0] for line in lines]
        assert fences[::2] == fences[1::2] == sorted(set(fences))

    def test_readers_share_and_slots_are_counted(self, shared_domain: LocalDomain, name: str) -> None:
        with Typed(
            shared_domain, "lock", name, "--mode", "shared", "--", "sh", "-c", "echo ready; read line"
        ) as reader:
            assert "ready" == reader.says()
            one = groupsvc(shared_domain, "lock", name, "--mode", "shared", "--try", "--", "true", node="n1")
            two = groupsvc(shared_domain, "lock", name, "--mode", "exclusive", "--try", "--", "true", node="n1")
            assert (ExitCode.OK, ExitCode.LATE) == (one.returncode, two.returncode)
        inner = f"{G} lock {name} --slots 2 -- {G} lock {name} --slots 2 --try -- echo mine"
        full = groupsvc(shared_domain, "lock", name, "--slots", "2", "--", "sh", "-c", inner)
        assert (ExitCode.LATE, "") == (full.returncode, full.stdout)

    def test_without_standard_streams_it_runs_all_the_same(
        self, shared_domain: LocalDomain, name: str, tmp_path: Path
    ) -> None:
        """As some who start jobs in the background do it: the numbers of the streams must not become others'."""
        found = tmp_path / "found"
        inner = f"ls /proc/self/fd > {found}; exit 3"
        outer = f"{G} lock {name} -- sh -c {shlex.quote(inner)} <&- >&- 2>&-"
        ended = subprocess.run(["sh", "-c", outer], env=environment(shared_domain, "n2"), timeout=30, check=False)
        assert 3 == ended.returncode
        assert "2" not in found.read_text().split()

    def test_what_the_command_leaves_behind_is_told(self, shared_domain: LocalDomain, name: str) -> None:
        script = "sleep 60 > /dev/null 2>&1 & echo $!"
        left = groupsvc(shared_domain, "lock", name, "--", "sh", "-c", script)
        try:
            assert 0 == left.returncode
            assert "the command has ended, and processes that it started go on" in left.stderr
        finally:
            end(int(left.stdout))


class TestAtATerminal:
    """The command has the terminal as if it were run alone."""

    def test_ctrl_c_is_heard_once_and_ends_the_loop_that_a_shell_runs(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        count = (
            "n=0; trap 'n=$((n+1))' INT; echo ready; while [ $n = 0 ]; do sleep 0.02; done; sleep 0.3; echo heard $n"
        )
        count += "; trap - INT; kill -INT $$"
        script = f"for i in 1 2 3; do {G} lock {name} -- sh -c {shlex.quote(count)}; echo again; done; echo after"
        with Terminal(shared_domain, script) as terminal:
            terminal.until("ready")
            terminal.press("\x03")
            terminal.until("heard")
            assert -signal.SIGINT == terminal.process.wait(timeout=30)
            assert "heard 1" in terminal.shown
            assert "again" not in terminal.shown

    def test_ctrl_z_stops_both_and_both_go_on_with_the_terminal_and_the_lock(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        inner = "echo ready; read line; echo had $line; exit 6"
        script = f"set -m; {G} lock {name} -- sh -c {shlex.quote(inner)}; echo stopped $?; read line; fg; echo ended $?"
        with Terminal(shared_domain, script) as terminal:
            terminal.until("ready")
            terminal.press("\x1a")
            terminal.until(f"stopped {128 + signal.SIGTSTP}")
            time.sleep(2.5)  # longer than any lease: it wakes up and knows nothing
            assert ExitCode.LATE == groupsvc(shared_domain, "lock", name, "--try", "--", "true").returncode
            terminal.press("back\n")
            time.sleep(0.5)
            terminal.press("words\n")
            terminal.until("ended 6")
            assert "had words" in terminal.shown


class TestLosing:
    """Whoever holds it no longer is ended, or warned."""

    def test_a_holder_that_is_killed_takes_its_command_along_and_the_next_one_has_the_lock(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        script = "sleep 60 & echo $$ $!; wait"
        with (
            Typed(shared_domain, "lock", name, "--", "sh", "-c", script) as holder,
            shared_domain.connect("n1") as session,
        ):
            pids = [int(pid) for pid in holder.says().split()]
            with Typed(shared_domain, "lock", name, "--", "echo", "mine", node="n3") as waiter:
                wait_for_line(session, name, "n2", "n3")
                holder.process.kill()
                assert "mine" == waiter.says()
                assert 0 == waiter.ends()
            try:
                wait_until("ended with the holder", lambda: not any(map(is_running, pids)))
            finally:
                for pid in pids:
                    end(pid)

    def test_with_its_daemon_the_lock_is_lost_and_the_command_is_ended_with_all_it_started(
        self, local_domain: LocalDomain, name: str
    ) -> None:
        """The shell would end at once and leave its child at work; its child does not want to end."""
        script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.1; done'; echo never"
        with Typed(local_domain, "lock", name, "--grace", "0.5", "--", "sh", "-c", script) as holder:
            pid = int(holder.says())
            local_domain.kill("n2")
            assert ExitCode.LOST == holder.ends()
            assert not is_running(pid)
            assert "" == holder.says()
            assert f"groupsvc: lock '{name}' is held no longer" in holder.complains()
            assert "did not end within 0.5 s; it is killed" in holder.complains()
        free = groupsvc(local_domain, "lock", name, "--timeout", "20", "--", "echo", "mine", node="n1")
        assert (0, "mine\n") == (free.returncode, free.stdout)

    def test_with_on_lost_warn_it_goes_on_and_says_so(self, local_domain: LocalDomain, name: str) -> None:
        with Typed(
            local_domain, "lock", name, "--on-lost", "warn", "--", "sh", "-c", "echo ready; read line; exit 3"
        ) as holder:
            assert "ready" == holder.says()
            local_domain.kill("n2")
            wait_until("warned", lambda: "the command goes on without it" in holder.complains())
            holder.tell("enough")
            assert 3 == holder.ends()

    @pytest.mark.alone
    def test_a_daemon_that_was_paused_for_a_moment_costs_nothing(self, local_domain: LocalDomain, name: str) -> None:
        with Typed(local_domain, "lock", name, "--", "sh", "-c", "echo ready; read line; exit 3") as holder:
            assert "ready" == holder.says()
            local_domain.pause("n2")
            time.sleep(0.5)
            local_domain.resume("n2")
            time.sleep(0.5)
            holder.tell("enough")
            assert 3 == holder.ends()


class TestDaemonsGoAway:
    """Who still waits has lost nothing but its place in the line, and stands in it again."""

    def test_who_waits_for_the_lock_waits_on_when_its_daemon_is_started_anew(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        """The holder has it meanwhile, at another node; the command is run once."""
        shared_domain.hand_over("n1")
        with shared_domain.connect("n1") as session:
            lock = session.lock(name)
            assert lock.acquire()
            fence = lock.fence
            with Typed(shared_domain, "lock", name, "--", "sh", "-c", "echo $GROUPSVC_FENCE; exit 3") as waiter:
                wait_for_line(session, name, "n1", "n2")
                shared_domain.kill("n2")
                shared_domain.restart("n2")
                wait_for_line(session, name, "n1", "n2")
                assert waiter.complains().endswith("; it is tried again\n"), "it says that, and before it why"
                lock.release()
                assert fence < int(waiter.says())
                assert 3 == waiter.ends()
                assert "" == waiter.says()

    def test_without_a_daemon_it_waits_for_as_long_as_it_was_told_and_a_signal_ends_it(
        self, shared_domain: LocalDomain, name: str
    ) -> None:
        """Exit code 3 is for who never had a daemon, and for who does not want to wait at all."""
        shared_domain.hand_over("n1")
        with (
            shared_domain.connect("n1") as session,
            session.lock(name),
            Typed(shared_domain, "lock", name, "--timeout", "5", "--", "echo", "mine") as late,
            Typed(shared_domain, "lock", name, "--", "echo", "mine") as patient,
        ):
            wait_for_line(session, name, "n1", "n2", "n2")
            shared_domain.kill("n2")
            assert ExitCode.LATE == late.ends()
            assert f"lock '{name}' is not to be had within 5 s" in late.complains()
            assert patient.process.poll() is None
            patient.process.terminate()
            assert 128 + signal.SIGTERM == patient.ends()
            tried = groupsvc(shared_domain, "lock", name, "--try", "--", "echo", "mine")
            assert (ExitCode.UNREACHABLE, "") == (tried.returncode, tried.stdout)


class TestElections:
    """One runs it, the others wait; who has lost the lead waits again."""

    def test_who_loses_the_lead_ends_its_command_and_stands_again(self, local_domain: LocalDomain, name: str) -> None:
        script = "echo leads $GROUPSVC_FENCE; read line; exit 4"
        with Typed(local_domain, "elect", name, "--", "sh", "-c", script) as first:
            began = first.says()
            with Typed(
                local_domain, "elect", name, "--data", "port 4711", "--", "sh", "-c", script, node="n3"
            ) as second:
                with local_domain.connect("n1") as session:
                    wait_for_line(session, name, "n2", "n3", kind="election")
                    assert b"port 4711" == session.election(name).candidates()[1].data
                    local_domain.kill("n2")
                    then = second.says()
                    assert int(began.split()[1]) < int(then.split()[1])
                    local_domain.restart("n2")
                    wait_for_line(session, name, "n3", "n2", kind="election")
                assert "stands for election" in first.complains()
                second.tell("enough")
                assert 4 == second.ends()
            assert int(then.split()[1]) < int(first.says().split()[1])
            first.process.send_signal(signal.SIGTERM)
            assert 128 + signal.SIGTERM == first.ends()

    def test_once_is_one_term_and_late_is_late(self, local_domain: LocalDomain, name: str) -> None:
        with Typed(
            local_domain, "elect", name, "--once", "--grace", "0", "--", "sh", "-c", "echo leads; cat"
        ) as leader:
            assert "leads" == leader.says()
            late = groupsvc(local_domain, "elect", name, "--timeout", "0.3", "--", "true", node="n1")
            assert ExitCode.LATE == late.returncode
            assert f"{leader.process.pid} at n2" in late.stderr
            local_domain.kill("n2")
            assert ExitCode.LOST == leader.ends()
