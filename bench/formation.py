"""From starting three processes to the first directory entry that a majority holds on disk."""

from __future__ import annotations

import time

from groupsvc.testing import LocalDomain

from .row import Effort, Row, at_most

WAIT_S = 20.0


def measure(effort: Effort) -> list[Row]:
    """Each run is a new domain, formed from nothing."""
    runs = [[form_once() for _ in range(effort.choose(4, 2))] for _ in range(effort.runs)]
    return [at_most("three nodes: start to first stable entry", "s", runs, median_max=1.0)]


def form_once() -> float:
    """Seconds until any node says that an entry is stable."""
    domain = LocalDomain(nodes=3)
    began = time.perf_counter()
    try:
        domain.start(wait=False)
        domain.wait_until(lambda: _is_formed(domain), "an entry is stable", timeout=WAIT_S)
        return time.perf_counter() - began
    finally:
        domain.stop()


def _is_formed(domain: LocalDomain) -> bool:
    return any(status is not None and status.stable >= 1 for status in map(domain.status, domain.names))
