"""A command that runs while something is held, with a guard that says what the test wants."""

from __future__ import annotations

import itertools
import shlex
import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.front import GONE, Word
from groupsvc.cli.process_tree import line_of
from groupsvc.cli.supervision import Ended, Rules, Supervision
from groupsvc.errors import Lost, Suspended

FOR_EVER = 60.0
LOST = Ended(ExitCode.LOST, was_lost=True)


class Guard:
    """Vouched for as long as it ``says``, one answer after the other, the last one for ever; lost with a file."""

    def __init__(self, *says: float, lost_with: Path | None = None) -> None:
        self._answers: Iterator[float] = itertools.chain(says[:-1], itertools.repeat(says[-1]))
        self._lost_with = lost_with
        self.fence = 17
        self.lost = threading.Event()

    @property
    def valid_for(self) -> float:
        if self._lost_with is not None and self._lost_with.exists():
            self.lost.set()
        return next(self._answers)

    def check(self) -> None:
        raise Lost("the node was cut off") if self.lost.is_set() else Suspended("no word")


class Front:
    """Runs the command when it is held, and says what becomes of it; it is no more when there is a file."""

    def __init__(self, command: str, gone_with: Path | None) -> None:
        self.said: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None
        self._command = command
        self._gone_with = gone_with
        self._words: list[Word] = []

    def say(self, line: str) -> None:
        self.said.append(line)
        self.process = subprocess.Popen(["sh", "-c", self._command])
        self._words.append(Word("runs", self.process.pid))

    def next(self, wait: float) -> Word | None:
        if self._words:
            return self._words.pop()
        assert self.process is not None
        try:
            code = self.process.wait(timeout=wait)
        except subprocess.TimeoutExpired:
            return GONE if self._gone_with is not None and self._gone_with.exists() else None
        return Word("ended", code if code >= 0 else 128 - code)


def run(
    guard: Guard, command: str, *, gone_with: Path | None = None,
    on_lost: Literal["kill", "warn"] = "kill", grace_s: float = 5.0, patience_s: float = 0.0,
) -> tuple[Ended, Front]:  # fmt: skip
    front = Front(command, gone_with)
    return Supervision(guard, "lock 'x'", Rules(on_lost, grace_s, patience_s), front).run(), front


def test_a_command_that_ends_by_itself_has_its_own_code() -> None:
    ended, front = run(Guard(FOR_EVER), "exit 7")
    assert (Ended(7), ["held 17"]) == (ended, front.said)


@pytest.mark.parametrize("on_lost,is_killed", [("kill", True), ("warn", False)])
def test_if_the_front_is_killed_so_is_its_command_before_anything_is_given_back(
    on_lost: Literal["kill", "warn"], is_killed: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    ended, front = run(Guard(FOR_EVER), f"trap '' TERM; touch {ready}; exec sleep 60", gone_with=ready, on_lost=on_lost)
    assert front.process is not None
    found = line_of(front.process.pid)
    front.process.kill()
    front.process.wait()
    assert found is not None
    assert is_killed is (found.state in "ZX")
    assert not ended.was_lost
    assert "groupsvc: was killed; " in capsys.readouterr().err


def test_what_is_lost_ends_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    heard, ready = tmp_path / "heard", tmp_path / "ready"
    script = f"trap 'echo TERM > {heard}; exit 0' TERM; touch {ready}; while :; do sleep 0.01; done"
    ended, _ = run(Guard(FOR_EVER, lost_with=ready), script)
    assert LOST == ended
    assert "TERM\n" == heard.read_text()
    assert (
        "groupsvc: lock 'x' is held no longer (the node was cut off); the command is ended\n" == capsys.readouterr().err
    )


def test_who_does_not_end_is_killed_with_all_it_started(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pid, ready = tmp_path / "pid", tmp_path / "ready"
    inner = f"trap '' TERM; echo $$ > {pid}; touch {ready}; while :; do sleep 0.01; done"
    ended, _ = run(Guard(FOR_EVER, lost_with=ready), f"trap '' TERM; sh -c {shlex.quote(inner)}", grace_s=0.1)
    assert LOST == ended
    assert "the command did not end within 0.1 s; it is killed\n" in capsys.readouterr().err
    found = line_of(int(pid.read_text()))
    assert found is None or found.state in "ZX"


def test_without_a_grace_nobody_is_asked_to_end(tmp_path: Path) -> None:
    heard, ready = tmp_path / "heard", tmp_path / "ready"
    script = f"trap 'echo TERM > {heard}; exit 0' TERM; touch {ready}; while :; do sleep 0.01; done"
    assert LOST == run(Guard(FOR_EVER, lost_with=ready), script, grace_s=0.0)[0]
    assert not heard.exists()


def test_what_nobody_vouches_for_any_more_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert LOST == run(Guard(0.9, 0.0), "sleep 30")[0]
    said = capsys.readouterr().err.splitlines()
    assert "groupsvc: nobody vouches for lock 'x' at the moment" == said[0]
    assert "groupsvc: lock 'x' is held no longer (nobody vouches for it any more); the command is ended" == said[1]


@pytest.mark.parametrize("says,patience_s", [((1.5, 0.0, 0.0, 1.5), 0.0), ((0.1, 0.0, 0.0, 1.5), 2.0)])
def test_what_comes_back_in_time_costs_nothing(
    says: Iterable[float], patience_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "n=0; while [ $n -lt 40 ]; do sleep 0.02; n=$((n+1)); done; exit 3"
    assert Ended(3) == run(Guard(*says), script, patience_s=patience_s)[0]
    assert "groupsvc: lock 'x' is vouched for again\n" in capsys.readouterr().err


def test_with_a_warning_it_goes_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = f"touch {ready}; n=0; while [ $n -lt 40 ]; do sleep 0.02; n=$((n+1)); done; exit 3"
    assert Ended(3) == run(Guard(FOR_EVER, lost_with=ready), script, on_lost="warn")[0]
    expected = "groupsvc: lock 'x' is held no longer (the node was cut off); the command goes on without it"
    assert 1 == capsys.readouterr().err.count(expected)


def test_what_is_lost_already_is_not_begun(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ended, front = run(Guard(0.0), f"touch {tmp_path / 'begun'}")
    assert (LOST, []) == (ended, front.said)
    assert not (tmp_path / "begun").exists()
    assert (
        "groupsvc: lock 'x' was lost again (nobody vouches for it any more) before the command was started\n"
        == capsys.readouterr().err
    )
