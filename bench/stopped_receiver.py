"""A receiver that stands still must not hold up the others, nor make them keep ever more for it.

A leads, B sends, C holds the stream with them, D only follows. D is stopped with SIGSTOP under full load: it is
connected and reads nothing. The rate of the other three while it stands still is divided by theirs before, in the same
run; and their memory is looked at from the stop until some time after D was given up.
"""

from __future__ import annotations

import statistics
import time

import attrs

from groupsvcd.core.views import AttributeValue

from .driven import DrivenDomain
from .driver import Lost
from .load import WARM_UP_S, Load, rate_between
from .memory import resident_mib
from .multicast import GROUP, leader_apart
from .row import Effort, Row, at_least, at_most

LOADS = {"100 bytes": Load(senders=1), "10 kB": Load(senders=1, size=10_000)}
BEFORE_S = 2.0
STOPPED_S = 6.0
"""Longer than it takes until a silent node is declared down, and until its connection is given up."""
LOOK_EVERY_S = 0.05


@attrs.frozen
class Stop:
    """What one stop did to the others."""

    before: float  # messages per second
    during: float
    grown_mib: dict[str, float]  # at most, by node


def measure(effort: Effort) -> list[Row]:
    """Rate and memory with small and with large messages."""
    rows = []
    for name, load in LOADS.items():
        stops = [stop_once(load) for _ in range(effort.runs)]
        before, during = (
            statistics.median(rates) for rates in zip(*((s.before, s.during) for s in stops), strict=True)
        )
        note = f"{during:,.0f} per s, before it {before:,.0f} per s (medians)"
        ratios = [[stop.during / stop.before] for stop in stops]
        rows.append(at_least(f"{name}, receiver stopped: rate", "x before", ratios, median_min=0.9, note=note))
        grown = [list(stop.grown_mib.values()) for stop in stops]
        rows.append(at_most(f"{name}, receiver stopped: memory", "MiB more", grown, worst_max=64))
    return rows


def stop_once(load: Load, attributes: dict[str, AttributeValue] | None = None) -> Stop:
    """Stop the receiver of a group under load; woken, it must learn that the group went on without it."""
    with DrivenDomain(nodes=4, voters=3) as domain:
        receiver = domain.names[-1]
        nodes = [name for name in leader_apart(domain) if name != receiver]
        group = domain.form(GROUP, [*nodes, receiver], load, attributes=attributes)
        began = group.send()
        time.sleep(WARM_UP_S + BEFORE_S)
        resident = {name: resident_mib(domain.pid(name)) for name in nodes}
        domain.pause(receiver)
        stopped = time.monotonic()
        most = dict(resident)
        while time.monotonic() < stopped + STOPPED_S:
            time.sleep(LOOK_EVERY_S)
            most = {name: max(size, resident_mib(domain.pid(name))) for name, size in most.items()}
        others = group.without(receiver)
        others.end()
        notes = [told.notes for told in others.told()]
        domain.resume(receiver)
        domain.driver(receiver).answer(Lost)
        return Stop(
            before=rate_between(began + WARM_UP_S, began + WARM_UP_S + BEFORE_S, notes),
            during=rate_between(stopped, stopped + STOPPED_S, notes),
            grown_mib={name: most[name] - size for name, size in resident.items()},
        )
