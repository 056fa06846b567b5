"""R1 – R4 on real processes: parties are killed and stopped in the middle of rounds, and daemons under them.

Every party writes down what it does and is told (``barrier_party.py``). Afterwards all lines are put together by the
clock of the machine, and the simulator's own checkers judge them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from groupsvc.testing import LocalDomain
from groupsvc.testing.sim.application_ops import COME
from groupsvc.testing.sim.checkers.application_stories import Stories
from groupsvc.testing.sim.checkers.barriers import Barriers, r1, r2, r3, r4
from groupsvc.testing.sim.checkers.verdict import Violation
from groupsvc.wire.history import HistoryEvent, from_line

from .barrier_party import BREAKS, GOES_ON

BOUND_S = 20.0
"""For everything that must come; on a quiet machine it takes less than a second, and three for a node."""

SLACK_S = 5.0
"""How much longer than its timeout a call may take on a machine that is busy with other things."""


class Parties:
    """Processes, and what they have written so far."""

    def __init__(self, domain: LocalDomain, directory: Path) -> None:
        self._domain = domain
        self._directory = directory
        self._name = f"histories/{time.time_ns()}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._lines: list[HistoryEvent] = []
        self._read: dict[Path, int] = {}  # how much of each file

    def start(self, who: str, node: str) -> None:
        """One more."""
        arguments = [self._domain.address(node), self._name, who, str(self._directory / f"{who}.ndjson")]
        with (self._directory / f"{who}.err").open("wb") as errors:
            self._processes[who] = subprocess.Popen(
                [sys.executable, "-m", "tests.interop.barrier_party", *arguments], stdin=subprocess.PIPE, stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )  # fmt: skip

    def kill(self, who: str) -> None:
        """SIGKILL."""
        process = self._processes.pop(who)
        process.kill()
        process.communicate()

    @contextlib.contextmanager
    def stopped(self, who: str) -> Iterator[None]:
        """It stands still."""
        process = self._processes[who]
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        self._mark(who, "process_stopped")
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)
            self._mark(who, "process_goes_on")

    def _mark(self, who: str, op: str) -> None:
        self._lines.append(HistoryEvent(v=1, i=0, t=time.monotonic(), who=who, op=op))

    def end(self) -> None:
        """All of them, by themselves."""
        for process in self._processes.values():
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes.values():
            assert 0 == process.wait(timeout=BOUND_S)

    def close(self) -> None:
        """Whoever is left."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    # --- What they wrote ---

    def history(self) -> list[HistoryEvent]:
        """All lines in the order of time; numbered anew."""
        for path in self._directory.glob("*.ndjson"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                whole, end, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(whole + end)
            self._lines += map(from_line, whole.splitlines())
        self._lines.sort(key=lambda line: line.t)
        self._lines = [msgspec.structs.replace(line, i=i) for i, line in enumerate(self._lines)]
        return self._lines

    def ends(self, barrier: str, since: float) -> list[HistoryEvent]:
        """Of calls at this barrier."""
        return [
            line for line in self.history()
            if line.t > since and line.type in ("ok", "fail") and line.op == COME and line.args["barrier"] == barrier
        ]  # fmt: skip

    def wait_until(self, what: str, is_so: Callable[[], bool]) -> None:
        """With a deadline; R4."""
        until = time.monotonic() + BOUND_S
        while not is_so():
            assert time.monotonic() < until, f"not {what} within {BOUND_S:g} s; {self._last_words()}"
            time.sleep(0.05)

    def wait_until_released(self, *barriers: str, apart_from: str = "") -> None:
        """Until everybody who lives was released from these barriers again."""
        since = time.monotonic()
        wanted = {(who, barrier) for who in self._processes if who != apart_from for barrier in barriers}

        def found() -> set[tuple[str, str]]:
            lines = [line for barrier in barriers for line in self.ends(barrier, since)]
            return {(line.who, line.args["barrier"]) for line in lines if line.type == "ok"}

        self.wait_until(f"released from {barriers}", lambda: found() >= wanted)

    def _last_words(self) -> str:
        words = [f"{path.name}: {path.read_text()[-300:]}" for path in self._directory.glob("*.err")]
        return "\n".join([*words, *(str(line) for line in self.history()[-12:])])


@pytest.fixture
def parties(shared_domain: LocalDomain, tmp_path: Path) -> Iterator[Parties]:
    """Five of them at three nodes, all in."""
    found = Parties(shared_domain, tmp_path)
    try:
        for number, node in enumerate(("n1", "n2", "n3", "n1", "n2")):
            found.start(f"p{number}", node)
        found.wait_until_released(BREAKS.name, GOES_ON.name)
        yield found
    finally:
        found.close()


def violations(history: list[HistoryEvent]) -> list[Violation]:
    """R1 – R4, by those who judge simulated runs."""
    barriers = Barriers(Stories(history), {})
    assert len(list(barriers.released())) > 20, "they had something to judge"
    return [*r1(barriers), *r2(barriers), *r3(barriers), *r4(barriers, reply_slack_s=SLACK_S)]


def test_rounds_are_right_while_parties_and_daemons_are_killed_and_stopped(
    shared_domain: LocalDomain, parties: Parties
) -> None:
    """R1 – R4."""
    both = (BREAKS.name, GOES_ON.name)

    # Killed in the middle of a round: it was stopped before, so the others surely wait for it.
    provider = provider_of(parties.history(), "p4")
    with contextlib.suppress(ProcessLookupError), parties.stopped("p4"):
        time.sleep(0.5)
        killed_at = time.monotonic()
        parties.kill("p4")
    parties.wait_until(
        "told who died", lambda: told_of_its_death(parties, provider, killed_at) == {"p0", "p1", "p2", "p3"}
    )
    parties.wait_until_released(*both)
    parties.start("p5", "n2")
    parties.wait_until_released(*both)

    # Stopped in the middle of a round: it lives, so nobody goes on without it; the time of somebody is up.
    stopped_at = time.monotonic()
    provider = provider_of(parties.history(), "p1")
    with parties.stopped("p1"):
        parties.wait_until("broken, with who is missing", lambda: missing_is(parties, provider, stopped_at))
    parties.wait_until_released(*both)

    # The daemon of the group's leader is killed in the middle of a round, with the parties there.
    with shared_domain.connect("n1") as session:
        leader = next(info for info in session.groups() if info.name.startswith("histories/")).leader
    shared_domain.kill(leader)
    there = {who for who in ("p0", "p1", "p2", "p3", "p5") if node_of(parties.history(), who) == leader}
    since = time.monotonic()
    parties.wait_until(
        "released without the node",
        lambda: (
            {line.who for line in parties.ends(GOES_ON.name, since) if line.type == "ok"}
            >= {"p0", "p1", "p2", "p3", "p5"} - there
        ),
    )
    shared_domain.restart(leader)
    parties.wait_until_released(*both)
    parties.end()
    history = parties.history()
    assert [] == violations(history)
    assert {"R1", "R2", "R3", "R4"} == {one.invariant for one in violations(forged(history))}, "they would have seen it"


def forged(history: list[HistoryEvent]) -> list[HistoryEvent]:
    """The same, but one who was released had brought something else, was told otherwise, and long after its time."""
    released = [
        line for line in history
        if line.type == "ok" and line.op == COME and line.args["barrier"] == GOES_ON.name and line.t > history[0].t + 1
    ]  # fmt: skip
    told = Counter(line.result["seq"] for line in released)
    end = next(line for line in released if told[line.result["seq"]] > 1)  # on a busy machine the first may be alone
    replace = msgspec.structs.replace
    begin = next(line for line in history if line.type == "invoke" and (line.who, line.args) == (end.who, end.args))
    others = {
        begin.i: replace(begin, args={**begin.args, "payload": begin.args["payload"] ^ 1}),
        end.i: replace(end, t=end.t + 60.0, result={**end.result, "by": [end.who]}),
    }
    return [others.get(line.i, line) for line in history]


def provider_of(history: list[HistoryEvent], who: str) -> str:
    """As which it takes part."""
    return next(line.result["provider"] for line in reversed(history) if line.who == who and "provider" in line.result)


def node_of(history: list[HistoryEvent], who: str) -> str:
    return next(line.node for line in history if line.who == who and line.node)


def told_of_its_death(parties: Parties, provider: str, since: float) -> set[str]:
    """Who was told that a round is broken because this one died."""
    return {
        line.who for line in parties.ends(BREAKS.name, since)
        if line.result.get("broken_by") == "failure" and provider in line.result["by"]
    }  # fmt: skip


def missing_is(parties: Parties, provider: str, since: float) -> bool:
    """Whether a round is broken because somebody's time was up, and this one alone is missing."""
    return any(
        line.result.get("broken_by") == "timeout" and [provider] == [one for one, _ in line.result["missing"]]
        for line in parties.ends(BREAKS.name, since)
    )
