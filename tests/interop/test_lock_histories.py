"""L6 and mutual exclusion on real processes: holders are killed, stopped, and cut off, beside a resource that compares.

Contenders at three nodes (``lock_contender.py``) take turns. The resource notes every use, takes none with a smaller
fence than it has seen, and says who is inside, so that faults strike whoever holds the lock at that moment. Afterwards
one function compares what the resource noted, what the contenders wrote down, and whom a fault had struck.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groupsvc.testing import LocalDomain

from .fenced_resource import Resource, Use
from .islands import Cable, IslandDomain

BOUND_S = 20.0
"""For everything that must come: a lease, and what else it takes on a busy machine."""

LEASE_S = 2.5
"""After so long nobody who is cut off holds anything, by its own clock."""


class Contest:
    """The contenders, and the faults that strike them."""

    def __init__(self, domain: LocalDomain, directory: Path) -> None:
        self.resource = Resource(directory / "resource")
        self.struck: list[tuple[float, str]] = []  # when, and whom
        self._domain = domain
        self._directory = directory
        self._name = f"contest/{time.time_ns()}"
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, who: str) -> None:
        """One more; its name begins with that of its node."""
        files = [str(self._directory / one) for one in ("resource", f"{who}.ndjson")]
        arguments = [self._domain.address(who[:2]), self._name, who, *files]
        with (self._directory / f"{who}.err").open("wb") as errors:
            self._processes[who] = subprocess.Popen(
                [sys.executable, "-m", "tests.interop.lock_contender", *arguments],
                stdin=subprocess.PIPE, stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )  # fmt: skip

    def lines(self) -> list[dict[str, Any]]:
        """What all of them wrote, in the order of time."""
        found = []
        for path in self._directory.glob("*.ndjson"):
            whole, _, _ = path.read_bytes().rpartition(b"\n")
            found += [json.loads(line) for line in whole.splitlines()]
        return sorted(found, key=lambda line: line["at"])

    # --- Faults ---

    def kill(self, who: str) -> None:
        """SIGKILL, which may strike it anywhere."""
        process = self._processes.pop(who)
        self.struck.append((time.monotonic(), who))
        process.kill()
        process.communicate()

    def stop_inside(self, node: str) -> str:
        """SIGSTOP to a contender of this node while it holds the lock: who it was."""
        until = time.monotonic() + BOUND_S
        while time.monotonic() < until:
            who = self.resource.inside()
            if who.startswith(node):
                process = self._processes[who]
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
                if self.resource.inside() == who:
                    self.struck.append((time.monotonic(), who))
                    return who
                process.send_signal(signal.SIGCONT)
            time.sleep(0.002)
        raise AssertionError(f"nobody of {node} enters within {BOUND_S:g} s; {self._last_words()}")

    def go_on(self, who: str) -> None:
        """SIGCONT."""
        self._processes[who].send_signal(signal.SIGCONT)

    def stay(self, who: str) -> None:
        """It does not leave from now on; with "" nobody stays any longer."""
        for path in self._directory.glob("*.stay"):
            path.unlink()
        if who:
            (self._directory / f"{who}.ndjson.stay").touch()

    def strike_node(self, node: str) -> None:
        """All contenders there may lose what they hold from now on."""
        self.struck += [(time.monotonic(), who) for who in self._processes if who.startswith(node)]

    # --- Waiting ---

    def wait_until(self, what: str, is_so: Callable[[], object]) -> None:
        """With a deadline."""
        until = time.monotonic() + BOUND_S
        while not is_so():
            assert time.monotonic() < until, f"not {what} within {BOUND_S:g} s; {self._last_words()}"
            time.sleep(0.01)

    def wait_until_all_enter(self, *, apart_from: str = "-") -> None:
        """Until everybody has had a turn from now on, but for those of a node."""
        since = time.monotonic()
        wanted = {who for who in self._processes if not who.startswith(apart_from)}
        self.wait_until(f"{wanted} have entered", lambda: self.entered(since) >= wanted)

    def entered(self, since: float) -> set[str]:
        """Who has."""
        return {use.who for use in self.resource.uses if use.at > since and use.what == "enter" and use.is_taken}

    def _last_words(self) -> str:
        words = [f"{path.name}: {path.read_text()[-300:]}" for path in self._directory.glob("*.err")]
        return "\n".join([*words, *map(str, self.resource.uses[-8:])])

    def end(self) -> None:
        """All end by themselves."""
        for process in self._processes.values():
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes.values():
            assert 0 == process.wait(timeout=BOUND_S), self._last_words()

    def close(self) -> None:
        """Whoever is left."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        self.resource.close()


@contextmanager
def contest(domain: LocalDomain, directory: Path) -> Iterator[Contest]:
    """Of five at three nodes, who all have had a turn."""
    found = Contest(domain, directory)
    try:
        for who in ("n1-a", "n2-a", "n3-a", "n1-b", "n3-b"):
            found.start(who)
        found.wait_until_all_enter()
        yield found
    finally:
        found.close()


# --- What must hold ---


def violations(uses: list[Use], lines: list[dict[str, Any]], struck: list[tuple[float, str]]) -> list[str]:
    """L6, and one at a time; by the clock of the machine."""
    has = [line for line in lines if line["what"] == "has"]
    return [*_fences(has), *_two_at_once(has, lines), *_overlaps(uses, struck)]


def _fences(has: list[dict[str, Any]]) -> Iterator[str]:
    """One turn each; and who asked when another had it already has a larger one."""
    if len({line["fence"] for line in has}) < len(has):
        yield "two turns have one fence"
    known = sorted(has, key=lambda line: line["at"])
    for late in has:
        before = [line for line in known if line["at"] < late["asked"]]
        if before and max(line["fence"] for line in before) > late["fence"]:
            yield f"{late} has a smaller fence than somebody who had it before it asked"


def _two_at_once(has: list[dict[str, Any]], lines: list[dict[str, Any]]) -> Iterator[str]:
    """A guard says that it is held, and somebody had the lock after that one already, by the same clock."""
    for held in lines:
        if held["what"] == "held":
            for other in has:
                if other["fence"] > held["fence"] and other["at"] < held["at"]:
                    yield f"{held} though {other}"


def _overlaps(uses: list[Use], struck: list[tuple[float, str]]) -> Iterator[str]:
    """Who enters while somebody is inside follows one whom a fault has struck; what was taken never goes back."""
    inside: Use | None = None
    for use in uses:
        if not use.is_taken:
            continue
        if inside is not None and use.fence < inside.fence:
            yield f"{use} was taken after {inside}"
        if inside is not None and use.fence > inside.fence and inside.what != "leave":
            if not any(at < use.at and who == inside.who for at, who in struck):
                yield f"{use} while {inside} was inside, whom nothing had struck"
        inside = use


def test_one_at_a_time_while_holders_are_killed_and_stopped_and_their_daemon_is_killed(
    shared_domain: LocalDomain, tmp_path: Path
) -> None:
    """L6: who is stopped keeps the lock while its daemon lives; if that dies, what it does when it wakes is refused."""
    shared_domain.hand_over("n1")
    with contest(shared_domain, tmp_path) as found:
        resource = found.resource
        killed = found.stop_inside("n1")
        began = time.monotonic()
        found.kill(killed)
        found.wait_until("followed", lambda: found.entered(began))

        sleeper = found.stop_inside("n2")
        uses = len(resource.uses)
        time.sleep(LEASE_S)
        assert uses == len(resource.uses), "it is not dead, and nobody has the lock in its place"
        found.go_on(sleeper)
        found.wait_until("gone on, and left", lambda: resource.inside() != sleeper)
        assert all(use.is_taken for use in resource.uses)

        sleeper = found.stop_inside("n3")
        began = time.monotonic()
        found.strike_node("n3")
        shared_domain.kill("n3")
        found.wait_until("followed", lambda: found.entered(began))
        found.go_on(sleeper)
        assert_refused(found, sleeper, began)
        shared_domain.restart("n3")
        found.wait_until_all_enter()
        found.wait_until("used often enough", lambda: sum(use.what == "enter" for use in resource.uses) > 20)
        found.end()
        judge(found)


def test_one_at_a_time_while_the_node_of_the_holder_is_cut_off(tmp_path: Path) -> None:
    """L6: a node goes on without the others. A holder there is told by its own clock, or, if it sleeps, by nobody."""
    with Cable() as cable, IslandDomain(cable) as domain, contest(domain, tmp_path) as found:
        for sleeps in (False, True):
            sleeper = found.stop_inside("n3")
            began = time.monotonic()
            found.strike_node("n3")
            cable.pull_out()
            if not sleeps:
                found.stay(sleeper)  # it goes on where it was, and uses what it may soon use no longer
                found.go_on(sleeper)
            found.wait_until("followed", lambda began=began: found.entered(began) - {"n3-a", "n3-b"})  # type: ignore[misc]
            if sleeps:
                found.go_on(sleeper)
            assert_refused(found, sleeper, began)
            found.stay("")
            found.wait_until_all_enter(apart_from="n3")
            cable.put_in()
            found.wait_until_all_enter()
        found.end()
        judge(found)


def assert_refused(found: Contest, who: str, since: float) -> None:
    """By the resource, and by its own guard before that."""
    found.wait_until(
        "refused", lambda: any(use.who == who and use.at > since and not use.is_taken for use in found.resource.uses)
    )
    found.wait_until(
        "told by its guard",
        lambda: any(
            line["who"] == who and line["at"] > since and line["what"] in ("suspended", "lost")
            for line in found.lines()
        ),
    )


def judge(found: Contest) -> None:
    """All is as it should be; and if it were not, it would have been seen."""
    uses, lines, struck = found.resource.uses, found.lines(), found.struck
    assert len([use for use in uses if use.what == "enter"]) > 20
    assert [] == violations(uses, lines, struck)
    assert violations(uses, lines, []), "somebody was followed though it had not left"
    last = max((line for line in lines if line["what"] == "has"), key=lambda line: line["fence"])
    first = next(line for line in lines if line["what"] == "held")
    assert violations([], [*lines, {**first, "at": last["at"] + 1.0}], struck)
    assert violations([], [*lines, {**last, "fence": first["fence"], "asked": last["at"] + 1.0}], struck)
