"""What the event journal costs: the same load on daemons without one, with a line per batch, and with one per entry.

Three daemons as in ``multicast``; which journal they keep takes turns, so that whatever else the machine does meets all
alike. The ratio that counts is that of processor time per message, all three daemons together: where processors are
few it is the rate, and it hangs less on what else the machine does. The bound is for the level that is meant for
operation; what ``full`` costs is printed.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping

import msgspec

from groupsvc.testing.local_node import Setting

from . import multicast
from .load import LOADS, Load, Outcome
from .row import Effort, Row, at_least

LEVELS = ("off", "batch", "full")
BATCH_MIN = 0.95
"""At most a twentieth of the throughput."""


def measure(effort: Effort) -> list[Row]:
    """Small messages and large ones, at every level in turn."""
    rows: list[Row] = []
    for name in (multicast.ONE, multicast.LARGE):
        load = msgspec.structs.replace(LOADS[name], seconds=effort.choose(2, 1))
        outcomes: dict[str, list[Outcome]] = {level: [] for level in LEVELS}
        for number in range(effort.runs):
            first = number % len(LEVELS)  # nobody always comes after the same one
            for level in (*LEVELS[first:], *LEVELS[:first]):
                outcomes[level].append(_run(load, level))
        for level in LEVELS[1:]:
            pairs = list(zip(outcomes["off"], outcomes[level], strict=True))
            note = "; ".join(f"{one}: {_absolute(outcomes[one])}" for one in ("off", level)) + " (medians)"
            bound = BATCH_MIN if level == "batch" else None
            costs = [[off.cost / on.cost] for off, on in pairs]
            label = f"journal {level}, {name}"
            rows.append(at_least(f"{label}: messages per processor time", "x off", costs, median_min=bound, note=note))
            rows.append(at_least(f"{label}: rate", "x off", [[on.rate / off.rate] for off, on in pairs]))
    return rows


def _run(load: Load, level: str) -> Outcome:
    with tempfile.TemporaryDirectory() as directory:
        settings: Mapping[str, Setting] = (
            {} if level == "off" else {"journal_directory": directory, "journal_level": level}
        )
        return multicast.run(load, settings=settings)


def _absolute(outcomes: list[Outcome]) -> str:
    rate = statistics.median(outcome.rate for outcome in outcomes)
    cost_us = 1e6 * statistics.median(outcome.cost for outcome in outcomes)
    return f"{rate:,.4g} per s at {cost_us:.1f} µs of processor time per message"
