"""What it costs to be watched: the same program on one domain, whose daemons are asked for their metrics or not.

Three daemons, a provider at each, as in ``keys``. Another process fetches ``/metrics`` of all three once a second, in
every second stretch of time; the stretches take turns, so that whatever else the machine does meets both alike. There
are many small groups beside the busy one, as a page is longer with them.
"""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from groupsvc.testing import LocalDomain
from groupsvc.testing.loopback_ports import PortBlock

from .keys import per_s, rate, sender
from .row import Effort, Row, at_least, at_most

GROUPS = 100
EVERY_S = 1.0
PAGES = 20

_SCRAPER = """
import sys, time, urllib.request
while True:
    for port in sys.argv[2:]:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read()
    time.sleep(float(sys.argv[1]))
"""


class WatchedDomain(LocalDomain):
    """One whose daemons show their metrics."""

    def __init__(self, nodes: int) -> None:
        super().__init__(nodes)
        self.blocks: list[PortBlock] = []

    def _make(self, name: str, settings: Any) -> Any:
        self.blocks.append(PortBlock())
        address = f"http://127.0.0.1:{self.blocks[-1].port}"
        return super()._make(name, {**settings, "metrics_address": address})


def measure(effort: Effort) -> list[Row]:
    """Rates with and without somebody who asks, and how long a page takes."""
    found: dict[bool, list[float]] = {True: [], False: []}
    with contextlib.ExitStack() as stack:
        domain = stack.enter_context(WatchedDomain(3))
        for block in domain.blocks:
            stack.callback(block.close)
        ports = [block.port for block in domain.blocks]
        session = stack.enter_context(domain.connect("n1"))
        for number in range(GROUPS):
            stack.enter_context(session.join(f"small-{number}"))
        group = sender(stack, domain, "bench", far=False)
        rate(group, bytes(100), 0.5)
        for _ in range(effort.runs):
            for is_asked in (False, True):
                with _scraping(ports) if is_asked else contextlib.nullcontext():
                    found[is_asked].append(rate(group, bytes(100), effort.choose(3, 1)))
        pages = [_page_s(ports[0]) for _ in range(PAGES)]
    ratios = [[asked / alone] for asked, alone in zip(found[True], found[False], strict=True)]
    note = f"{per_s(found[True])}, unasked {per_s(found[False])} (medians)"
    page = [[1000 * statistics.median(pages)]]
    return [
        at_least("metrics asked for every second: rate of 100 B", "x unasked", ratios, note=note),
        at_most(f"one page of metrics, {GROUPS} groups, idle", "ms", page),
    ]


@contextlib.contextmanager
def _scraping(ports: list[int]) -> Iterator[None]:
    command = [sys.executable, "-c", _SCRAPER, str(EVERY_S), *map(str, ports)]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


def _page_s(port: int) -> float:
    time.sleep(0.3)  # until the last one is not fresh any more
    began = time.monotonic()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        answer.read()
    return time.monotonic() - began
