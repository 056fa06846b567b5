"""Barriers: so many processes wait for each other, round after round, beside a bare hub that counts them.

The hub is one socket that counts arrivals and answers all when the last one is there: it knows nobody's name, notices
no death and remembers nothing. Both take turns, so that whatever else the machine does meets both. A round takes as
long as the first process sees it take.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import zmq

import groupsvc
from groupsvc.testing import LocalDomain

from .beside import SNDMORE, new_socket
from .companions import WAIT_S, found, ready, received, together
from .row import Effort, Row, at_most

GROUP = "bench"
ROUND_WAIT_S = 30.0
WARM_UP_ROUNDS = 30
PARTIES = 3
"""One more than come, so that nobody is released before somebody dies."""

Wait = Callable[[], object]
NewParty = Callable[[int, Any], Wait]
"""From its number and whatever tells it where to go: what it calls in every round."""


def rates(effort: Effort) -> list[Row]:
    """Two, eight and thirty-two parties, at one daemon and at three."""
    rows = []
    for nodes, bound in ((1, 1.5), (3, 2.5)):
        for parties in (2, 8, 32):
            rounds = effort.choose(max(60, 1600 // parties), 30)
            pairs = []
            for _ in range(effort.runs):
                with LocalDomain(nodes=nodes) as domain:
                    ours = run(parties, [domain.address(name) for name in domain.names], _ours, rounds)
                pairs.append((_hub_run(parties, rounds), ours))
            note = "ours {1:.3g} ms, the hub {0:.3g} ms (medians)".format(
                *(1000 * statistics.median(times) for times in zip(*pairs, strict=True))
            )
            name = f"barrier of {parties} processes at {nodes} daemon{'s' if nodes > 1 else ''}"
            rows.append(at_most(name, "x hub", [[ours / hub] for hub, ours in pairs], median_max=bound, note=note))
    return rows


def run(parties: int, where: Any, new_party: NewParty, rounds: int) -> float:
    """Seconds of a round, the median."""
    with together(_party, ((me, where, new_party, rounds) for me in range(parties))) as ends:
        times: Sequence[float] = received(ends[0])
        return statistics.median(times)


def _party(me: int, where: Any, new_party: NewParty, rounds: int, connection: Connection) -> None:
    wait = new_party(me, where)
    ready(connection)
    times = []
    for number in range(WARM_UP_ROUNDS + rounds):
        began = time.perf_counter()
        wait()
        if number >= WARM_UP_ROUNDS:
            times.append(time.perf_counter() - began)
    found(connection, times)


def _ours(me: int, addresses: Sequence[str]) -> Wait:
    group = groupsvc.connect(addresses[me % len(addresses)]).join(GROUP, name=str(me), timeout=WAIT_S)
    barrier = group.barrier("rounds")
    return lambda: barrier.wait(timeout=ROUND_WAIT_S)


# --- The hub ---


def _hub_run(parties: int, rounds: int) -> float:
    with tempfile.TemporaryDirectory(prefix="groupsvc-hub-") as directory:
        address = f"ipc://{Path(directory) / 'hub.sock'}"
        hub = multiprocessing.get_context("spawn").Process(target=_hub, args=(address, parties), daemon=True)
        hub.start()
        try:
            return run(parties, address, _at_hub, rounds)
        finally:
            hub.kill()
            hub.join()


def _hub(address: str, parties: int) -> None:
    router = new_socket(zmq.Context(io_threads=1), zmq.ROUTER)
    router.bind(address)
    receive, send = router.recv, router.send
    while True:
        here = []
        while len(here) < parties:
            here.append(receive())
            receive()
        for party in here:
            send(party, SNDMORE)
            send(b"go")


def _at_hub(me: int, address: str) -> Wait:
    dealer = new_socket(zmq.Context(io_threads=1), zmq.DEALER)
    dealer.setsockopt(zmq.ROUTING_ID, bytes((me + 1,)))
    dealer.connect(address)

    def wait() -> None:
        dealer.send(b"here")
        dealer.recv()

    return wait


# --- Deaths ---


def deaths(effort: Effort) -> list[Row]:
    """A party is killed while the others wait: when they are told, and by what."""
    cases: dict[str, tuple[float, list[list[float]]]] = {
        "barrier: a process that waits is killed": (0.02, []),
        "barrier: a node with a party is killed": (0.5, []),
        "barrier: the name server and leader of the group is killed": (1.0, []),
    }
    process, node, leader = (times for _, times in cases.values())
    for _ in range(effort.runs):
        with LocalDomain(nodes=3) as domain:
            name_server = domain.name_server()
            assert name_server is not None
            others = [name for name in domain.names if name != name_server]
            process.append([_told_after(domain, first=others[0], others=others, victim=others[1], kill_node=False)])
            node.append([_told_after(domain, first=others[0], others=others, victim=others[1], kill_node=True)])
        with LocalDomain(nodes=3) as domain:
            name_server = domain.name_server()
            assert name_server is not None
            others = [name for name in domain.names if name != name_server]
            leader.append([_told_after(domain, first=name_server, others=others, victim=name_server, kill_node=True)])
    return [at_most(name, "s", times, median_max=bound) for name, (bound, times) in cases.items()]


def _told_after(domain: LocalDomain, *, first: str, others: Sequence[str], victim: str, kill_node: bool) -> float:
    """Seconds from the kill to ``BarrierBroken`` at a party on another node; ``first`` leads the group."""
    name = f"{GROUP}/{time.monotonic_ns()}"
    context = multiprocessing.get_context("spawn")
    leads = domain.connect(first).join(name) if first != victim else None
    mine, its = context.Pipe()
    process = context.Process(target=_waits, args=(domain.address(victim), name, its), daemon=True)
    process.start()
    received(mine)
    survivor = next(one for one in others if one != victim)
    with domain.connect(survivor) as session:
        group = session.join(name, name="survivor")
        killed_at: list[float] = []

        def kill() -> None:
            assert process.pid is not None
            killed_at.append(time.perf_counter())
            if kill_node:
                domain.kill(victim)
            else:
                os.kill(process.pid, signal.SIGKILL)

        threading.Timer(0.5, kill).start()
        try:
            group.barrier(parties=PARTIES).wait(timeout=ROUND_WAIT_S)
        except groupsvc.BarrierBroken as broken:
            if broken.why == "failure":
                return time.perf_counter() - killed_at[0]
            raise
        finally:
            process.kill()
            process.join()
            if leads is not None:
                leads.goodbye()
    raise AssertionError("the barrier was not broken")


def _waits(address: str, name: str, connection: Connection) -> None:
    group = groupsvc.connect(address).join(name, name="victim")
    connection.send(None)
    group.barrier(parties=PARTIES).wait(timeout=ROUND_WAIT_S)
