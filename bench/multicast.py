"""Ordered multicast over three real daemons, beside two bare programs in the same run.

A leads the group and is not the name server, B and C hold the stream with it; B sends, then all three. The program is
the same as that of ``floor`` and ``hub`` (see ``load``), only that here it lives in a daemon with everything that makes
it a service. All three take turns, so that whatever else the machine does meets all. The gate is the ratio to the
floor, which promises the same; the hub promises less and has no bound.
"""

from __future__ import annotations

import contextlib
import sqlite3
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from groupsvc.testing.local_node import Setting
from groupsvcd.core.views import AttributeValue

from . import floor, hub
from .driven import DrivenDomain, DrivenNode
from .driver import Join, Joined, Tell, Told
from .load import AFTER_S, LOADS, Load, Outcome, measured_time, outcome_of
from .processor import spent_between
from .row import Effort, Row, at_least, at_most

GROUP = "bench"
FIRST_MESSAGE = Load(senders=1, window=1, count=1)

ONE, THREE, SINGLE, LARGE = LOADS


class Trio(NamedTuple):
    """The same load on all three, one after the other."""

    floor: Outcome
    hub: Outcome
    ours: Outcome


def rates(effort: Effort) -> list[Row]:
    """Every load on the floor, the hub and ours, in turns."""
    outcomes: dict[str, list[Trio]] = {name: [] for name in LOADS}
    for _ in range(effort.runs):
        for name, load in LOADS.items():
            load = msgspec.structs.replace(load, seconds=effort.choose(2, 1))
            outcomes[name].append(Trio(floor.run(load), hub.run(load), run(load)))
    rows = []
    for name, bound in ((ONE, 0.7), (LARGE, 0.6)):
        note = _absolute("per s", outcomes[name], lambda outcome: outcome.rate)
        ratios = [[each.ours.rate / each.floor.rate] for each in outcomes[name]]
        rows.append(at_least(f"{name}: rate", "x floor", ratios, median_min=bound, note=note))
        ratios = [[each.ours.rate / each.hub.rate] for each in outcomes[name]]
        rows.append(at_least(f"{name}: rate", "x hub", ratios))
    pairs = zip(outcomes[ONE], outcomes[THREE], strict=True)
    note = _absolute("per s", outcomes[THREE], lambda outcome: outcome.rate)
    ratios = [[three.ours.rate / one.ours.rate] for one, three in pairs]
    rows.append(at_least(f"{THREE}: rate", "x one sender's", ratios, median_min=1.2, note=note))
    note = _absolute("ms", outcomes[SINGLE], lambda outcome: 1000 * outcome.latency)
    ratios = [[each.ours.latency / each.floor.latency] for each in outcomes[SINGLE]]
    rows.append(at_most(f"{SINGLE}: delivered at all", "x floor", ratios, median_max=2.5, note=note))
    ratios = [[each.ours.latency / each.hub.latency] for each in outcomes[SINGLE]]
    rows.append(at_most(f"{SINGLE}: delivered at all", "x hub", ratios))
    return rows


def bare(effort: Effort) -> list[Row]:
    """Floor and hub alone, without a promise: what this machine can do."""
    rows = []
    for name, load in LOADS.items():
        load = msgspec.structs.replace(load, seconds=effort.choose(2, 1))
        for word, bare_run in (("floor", floor.run), ("hub", hub.run)):
            outcomes = [bare_run(load) for _ in range(effort.runs)]
            if load.window == 1:
                rows.append(at_most(f"{word}, {name}", "ms", [[1000 * each.latency] for each in outcomes]))
            else:
                rows.append(at_least(f"{word}, {name}", "per s", [[each.rate] for each in outcomes]))
    return rows


def _absolute(unit: str, outcomes: Sequence[Trio], of: Callable[[Outcome], float]) -> str:
    """What the ratios are made of, and the processor time, which hangs less on what else the machine does."""
    parts = []
    for name, each in (("ours", "ours"), ("the floor", "floor"), ("the hub", "hub")):
        found = [getattr(trio, each) for trio in outcomes]
        rate = statistics.median(map(of, found))
        cost_us = 1e6 * statistics.median(outcome.cost for outcome in found)
        parts.append(f"{name} {rate:,.4g} {unit} at {cost_us:.1f} µs of processor time per message")
    return "; ".join(parts) + " (medians)"


def durable(effort: Effort) -> list[Row]:
    """A group on disk beside one in memory, in turns; for information, there is no bound."""
    on_disk: list[Outcome] = []
    in_memory: list[Outcome] = []
    batches: list[float] = []
    for _ in range(effort.runs):
        load = msgspec.structs.replace(LOADS[ONE], seconds=effort.choose(2, 1))
        on_disk.append(
            run(load, attributes={"durable": True}, look=lambda domain: batches.append(_entries_per_sync(domain)))
        )
        in_memory.append(run(load))
    ratios = [[disk.rate / memory.rate] for disk, memory in zip(on_disk, in_memory, strict=True)]
    rate, beside = (statistics.median(each.rate for each in found) for found in (on_disk, in_memory))
    note = f"on disk {rate:,.4g} per s, in memory {beside:,.4g} per s; "
    note += f"{statistics.median(batches):.0f} entries per sync at the leader (medians)"
    return [at_least(f"durable, {ONE}: rate", "x in memory", ratios, note=note)]


def _entries_per_sync(domain: DrivenDomain) -> float:
    """Of all that is on the disk of the leader; its first transactions, before there were any entries, are few."""
    name = leader_apart(domain)[0]
    delivered = domain.driver(name).look().groups[0].delivered
    database = domain.driver(name).state_directory / "state.db"
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return delivered / int(connection.execute("SELECT transactions FROM node").fetchone()[0])


def run(
    load: Load,
    *,
    attributes: dict[str, AttributeValue] | None = None,
    look: Callable[[DrivenDomain], None] = lambda domain: None,
    settings: Mapping[str, Setting] | None = None,
) -> Outcome:
    """Three daemons under ``load``; the leader of the group is not the name server. ``look`` is called at the end."""
    with DrivenDomain(nodes=3, settings=settings) as domain:
        group = domain.form(GROUP, leader_apart(domain), load, attributes=attributes)
        began = group.send()
        spent_s = spent_between([domain.pid(name) for name in group.nodes], *measured_time(load, began))
        time.sleep(AFTER_S)
        group.end()
        look(domain)
        return outcome_of(load, began, [told.notes for told in group.told()], spent_s)


def leader_apart(domain: DrivenDomain) -> list[str]:
    """All nodes, the name server last: the first one forms a group and leads it."""
    name_server = domain.wait_for_name_server()
    return sorted(domain.names, key=lambda name: (name == name_server, name))


def formation(effort: Effort) -> list[Row]:
    """From asking for a group that does not exist to the delivery of the first message in it."""
    runs: list[list[float]] = []
    for _ in range(effort.runs):
        with DrivenDomain(nodes=3) as domain:
            node = domain.driver(leader_apart(domain)[0])
            runs.append([])
            for number in range(effort.choose(20, 5)):
                node.tell(Join(f"{GROUP}-{number}", 1, FIRST_MESSAGE, send=True))
                node.answer(Joined)
                runs[-1].append(1000 * _first_message(node, f"{GROUP}-{number}"))
    return [at_most("group formed, first message delivered", "ms", runs, median_max=10)]


def _first_message(node: DrivenNode, group: str) -> float:
    """Seconds from the command to join to the first delivery of a message."""
    while True:
        node.tell(Tell(group))
        told = node.answer(Told)
        for at, count in told.notes.delivered:
            if count:
                return at - told.asked_at
