"""Locks: two programs on two nodes hand one to each other.

A hand-over begins when the one calls ``release`` and ends when ``acquire`` returns at the other. Both clocks are the
machine's. With a pause the other stands in line long before; without one, it has to get into the line again first.
"""

from __future__ import annotations

import itertools
import statistics
import time
from multiprocessing.connection import Connection

import groupsvc
from groupsvc.testing import LocalDomain

from .companions import WAIT_S, found, ready, received, together
from .row import Effort, Row, at_most

PAUSE_S = 0.05
WARM_UP_TURNS = 5


def handover(effort: Effort) -> list[Row]:
    """Milliseconds from release to acquire."""
    turns = effort.choose(60, 20)
    waiting, fighting = [], []
    for _ in range(effort.runs):
        with LocalDomain(nodes=3) as domain:
            addresses = [domain.address(name) for name in domain.names[:2]]
            waiting.append([_median_handover(addresses, turns, PAUSE_S)])
            fighting.append([_median_handover(addresses, turns, 0.0)])
    return [
        at_most("lock: hand-over between two nodes, the next one waits", "ms", waiting, median_max=3.0),
        at_most("lock: the same, both ask again at once", "ms", fighting, median_max=None),
    ]


def _median_handover(addresses: list[str], turns: int, pause: float) -> float:
    """In milliseconds."""
    name = f"bench-{time.monotonic_ns()}"
    held: list[tuple[float, float, int]] = []
    with together(_contender, ((address, name, turns, pause) for address in addresses)) as ends:
        for who, end in enumerate(ends):
            held += [(since, until, who) for since, until in received(end)]
    held.sort()
    pairs = list(itertools.pairwise(held))
    assert all(before[1] <= after[0] for before, after in pairs), "two held it at the same time"
    return 1000 * statistics.median(after[0] - before[1] for before, after in pairs if before[2] != after[2])


def _contender(address: str, name: str, turns: int, pause: float, end: Connection) -> None:
    held = []
    lock = groupsvc.connect(address).lock(name)
    ready(end)
    for turn in range(WARM_UP_TURNS + turns):
        assert lock.acquire(timeout=WAIT_S)
        since = time.monotonic()
        time.sleep(pause)
        until = time.monotonic()
        lock.release()
        if turn >= WARM_UP_TURNS:
            held.append((since, until))
    found(end, held)
