"""What applications see: three client processes at three daemons, beside a bare hub with client processes.

The program is that of ``load``, as everywhere: it multicasts one message after the other until its window is full, and
reads its events one by one. The hub and ours take turns, so that whatever else the machine does meets both. One message
at a time is a ``group.send``: a proposal with one phase, which returns when it is decided.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

import groupsvc
from groupsvc.events import Failing, Left, Message
from groupsvc.testing import LocalDomain

from . import client_hub
from .beside import POLL_MS, PROCESSES, START_WAIT_S, run_beside
from .load import Load, Outcome, Program
from .row import Effort, Row, at_least, at_most

GROUP = "bench"
ONE = Load(senders=1)
THREE = Load(senders=3)
LARGE = Load(senders=1, size=10_000)
SINGLE = Load(senders=1, window=1)

VOTERS = 9
READY = b"ready\n"
DEATH_WAIT_S = 10.0
LEAVE_S = 0.3
"""In this time a node whose last process has left a group leaves it, too."""


def rates(effort: Effort) -> list[Row]:
    """Every load on the hub and on ours, in turns."""
    loads = {
        "clients, one sender, 100 bytes": (ONE, _Client),
        "clients, three senders, 100 bytes": (THREE, _Client),
        "clients, one sender, 10 kB": (LARGE, _Client),
        "clients, one send at a time": (SINGLE, _Sender),
    }
    outcomes: dict[str, list[tuple[Outcome, Outcome]]] = {name: [] for name in loads}
    for _ in range(effort.runs):
        for name, (load, role) in loads.items():
            load = msgspec.structs.replace(load, seconds=effort.choose(2, 1))
            outcomes[name].append((client_hub.run(load), run(load, role)))
    one, three, large, single = loads
    rows = []
    for name, bound in ((one, 0.8), (large, 0.45)):
        ratios = [[ours.rate / hub.rate] for hub, ours in outcomes[name]]
        rows.append(at_least(f"{name}: rate", "x hub", ratios, median_min=bound, note=_rates_of(outcomes[name])))
    pairs = zip(outcomes[one], outcomes[three], strict=True)
    ratios = [[many[1].rate / alone[1].rate] for alone, many in pairs]
    rows.append(at_least(f"{three}: rate", "x one sender's", ratios, median_min=1.0, note=_rates_of(outcomes[three])))
    ratios = [[ours.latency / hub.latency] for hub, ours in outcomes[single]]
    times = [1000 * statistics.median(each.latency for each in found) for found in zip(*outcomes[single], strict=True)]
    note = f"ours {times[1]:.3g} ms, the hub {times[0]:.3g} ms (medians)"
    rows.append(at_most(f"{single}: delivered at all", "x hub", ratios, median_max=3.0, note=note))
    return rows


def _rates_of(outcomes: Sequence[tuple[Outcome, Outcome]]) -> str:
    parts = []
    for name, found in zip(("the hub", "ours"), zip(*outcomes, strict=True), strict=True):
        rate, cost = (statistics.median(getattr(each, what) for each in found) for what in ("rate", "cost"))
        parts.append(f"{name} {rate:,.4g} per s at {1e6 * cost:.1f} µs of processor time per message")
    return "; ".join(parts) + " (medians)"


def run(load: Load, role: Callable[[int, Any], _Client]) -> Outcome:
    """Three daemons with a client process each under ``load``; the first to join leads, and is not the name server."""
    with LocalDomain(nodes=3) as domain:
        name_server = domain.wait_for_name_server()
        names = sorted(domain.names, key=lambda name: (name == name_server, name))
        addresses = {number: domain.address(name) for number, name in enumerate(names)}
        return run_beside(load, role, addresses, also=[domain.pid(name) for name in names])


class _Client:
    """A program with a session."""

    program: Program

    def __init__(self, me: int, addresses: dict[int, str]) -> None:
        self._session = groupsvc.connect(addresses[me])
        if me:  # the first to join leads: that is to be 0
            self._session.subscribe(GROUP, wait=START_WAIT_S).close()
        self.group = self._session.join(GROUP, events=True)
        while len(self.group.providers) < PROCESSES:
            self.group.next_event(timeout=0.1)
        self.submit: Callable[[bytes], object] = self.group.multicast_nowait
        self._seq = 0

    def turn(self) -> None:
        """Read all events that have come."""
        event = self.group.next_event(timeout=POLL_MS / 1000)
        if event is None:
            return
        next_event, program, seq = self.group.next_event, self.program, self._seq
        while event is not None:
            if type(event) is Message:
                if event.seq != seq + 1:
                    program.begin_after(event.seq - 1)  # entries between are the service's own
                seq = event.seq
                program.deliver(seq, event.origin, event.payload)
            event = next_event(timeout=0)
        self._seq = seq
        program.note()
        program.fill()


class _Sender(_Client):
    """One that sends by proposal: it waits for the outcome of each, then reads what came meanwhile."""

    def __init__(self, me: int, addresses: dict[int, str]) -> None:
        super().__init__(me, addresses)
        self._wanted: list[bytes] = []
        self.submit = self._wanted.append  # it is sent in the next turn, so that the time of sending is counted

    def turn(self) -> None:
        """Send what is to be sent, and read all events that have come."""
        while self._wanted:
            self.group.send(self._wanted.pop())
        super().turn()


def ballots(effort: Effort) -> list[Row]:
    """A state change that nine providers on three nodes approve, and a join of a group that exists."""
    votes: list[list[float]] = []
    joins: list[list[float]] = []
    first_joins: list[list[float]] = []
    attributes = groupsvc.GroupAttributes(state_phases=groupsvc.Phases.N)
    for _ in range(effort.runs):
        with LocalDomain(nodes=4, voters=3) as domain:
            *sessions, outside = [domain.connect(name) for name in domain.names]
            groups = [
                sessions[number % 3].join(GROUP, name=f"p{number}", attributes=attributes) for number in range(VOTERS)
            ]
            votes.append([])
            for number in range(effort.choose(100, 20)):
                began = time.perf_counter()
                outcome = groups[number % VOTERS].propose_state(b"%d" % number)
                votes[-1].append(1000 * (time.perf_counter() - began))
                assert outcome.approved, outcome
                assert VOTERS == len(outcome.tally), outcome
            turns = range(effort.choose(20, 5))
            joins.append([_join_ms(sessions[number % 3]) for number in turns])
            first_joins.append([_join_ms(outside, pause=LEAVE_S) for _ in turns])
            for session in (*sessions, outside):
                session.close()
    return [
        at_most("state change, nine providers approve", "ms", votes, median_max=5.0),
        at_most("join of a group that exists", "ms", joins, median_max=5.0),
        at_most("the same at a node that does not carry it yet", "ms", first_joins, median_max=5.0),
    ]


def _join_ms(session: groupsvc.Session, pause: float = 0.0) -> float:
    """How long a join takes; it leaves again, and whoever pauses lets its node leave, too."""
    began = time.perf_counter()
    member = session.join(GROUP, name="late")
    took = 1000 * (time.perf_counter() - began)
    member.leave()
    time.sleep(pause)
    return took


def deaths(effort: Effort) -> list[Row]:
    """A client process is killed: when another member, at the same node and at another one, is told."""
    failing: dict[str, list[list[float]]] = {"the same node": [], "another node": []}
    left: dict[str, list[list[float]]] = {"the same node": [], "another node": []}
    for _ in range(effort.runs):
        with LocalDomain(nodes=3) as domain:
            watchers = {"the same node": domain.connect("n2"), "another node": domain.connect("n3")}
            groups = {where: session.join(GROUP, events=True) for where, session in watchers.items()}
            told: dict[str, list[tuple[float, object]]] = {where: [] for where in groups}
            threads = [
                threading.Thread(target=_listen, args=(group, told[where]), daemon=True)
                for where, group in groups.items()
            ]
            for thread in threads:
                thread.start()
            found: dict[str, tuple[list[float], list[float]]] = {where: ([], []) for where in groups}
            for number in range(effort.choose(10, 3)):
                victim = _victim(domain.address("n2"), f"victim-{number}")
                killed = time.perf_counter()
                victim.kill()
                victim.wait()
                _wait_until_told(told.values(), number + 1)
                for where, events in told.items():
                    for kind, times in zip((Failing, Left), found[where], strict=True):
                        at = [when for when, event in events if isinstance(event, kind)][number]
                        times.append(1000 * (at - killed))
            for where, (first, last) in found.items():
                failing[where].append(first)
                left[where].append(last)
            for session in watchers.values():
                session.close()
    return [
        *(
            at_most(f"client killed: Failing at {where}", "ms", runs, median_max=10.0)
            for where, runs in failing.items()
        ),
        *(at_most(f"client killed: Left at {where}", "ms", runs, median_max=10.0) for where, runs in left.items()),
    ]


def _listen(group: groupsvc.Group, told: list[tuple[float, object]]) -> None:
    told.extend((time.perf_counter(), event) for event in group.events())


def _wait_until_told(all_told: Iterable[list[tuple[float, object]]], deaths: int) -> None:
    until = time.monotonic() + DEATH_WAIT_S
    while any(sum(isinstance(event, Left) for _, event in told) < deaths for told in all_told):
        if time.monotonic() > until:
            raise TimeoutError("a death was not told")
        time.sleep(0.001)


def _victim(address: str, name: str) -> subprocess.Popen[bytes]:
    program = (
        "import groupsvc, sys, threading\n"
        f"session = groupsvc.connect({address!r}); session.join({GROUP!r}, name={name!r})\n"
        "print('ready', flush=True); threading.Event().wait()"
    )
    victim = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert victim.stdout is not None
    assert READY == victim.stdout.readline()
    return victim


def importing(effort: Effort) -> list[Row]:
    """``import groupsvc`` in a new interpreter, less what an empty one takes; what is imported was compiled before."""
    runs = []
    with tempfile.TemporaryDirectory(prefix="groupsvc-pycache-") as compiled:
        for _ in range(effort.runs):
            empty, ours = (min(_seconds(code, compiled) for _ in range(3)) for code in ("pass", "import groupsvc"))
            runs.append([1000 * (ours - empty)])
    return [at_most("import groupsvc", "ms", runs, median_max=150.0)]


def _seconds(code: str, compiled: str) -> float:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return time.perf_counter() - began
