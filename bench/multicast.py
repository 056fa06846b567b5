"""Ordered multicast over three real daemons, beside the floor in the same run.

A leads the group and is not the name server, B and C hold the stream with it; B sends, then all three. The program is
the same as that of the floor (see ``load``), only that here it lives in a daemon with everything that makes it a
service. Floor and ours take turns, so that whatever else the machine does meets both; the gate is the ratio, the
absolute numbers stand beside it.
"""

from __future__ import annotations

import contextlib
import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence

import msgspec

from groupsvcd.core.views import AttributeValue

from . import floor
from .driven import DrivenDomain, DrivenNode
from .driver import Join, Joined, Tell, Told
from .load import AFTER_S, LOADS, Load, Outcome, measured_time, outcome_of
from .processor import spent_between
from .row import Effort, Row, at_least, at_most

GROUP = "bench"
FIRST_MESSAGE = Load(senders=1, window=1, count=1)

ONE, THREE, SINGLE, LARGE = LOADS


def rates(effort: Effort) -> list[Row]:
    """Every load on the floor and on ours, in turns."""
    outcomes: dict[str, list[tuple[Outcome, Outcome]]] = {name: [] for name in LOADS}
    for _ in range(effort.runs):
        for name, load in LOADS.items():
            load = msgspec.structs.replace(load, seconds=effort.choose(2, 1))
            outcomes[name].append((floor.run(load), run(load)))
    rows = []
    for name, bound in ((ONE, 0.7), (LARGE, 0.6)):
        ratios = [[ours.rate / bare.rate] for bare, ours in outcomes[name]]
        note = _absolute("per s", outcomes[name], lambda outcome: outcome.rate)
        rows.append(at_least(f"{name}: rate", "x floor", ratios, median_min=bound, note=note))
    ratios = [[three.rate / one.rate] for (_, one), (_, three) in zip(outcomes[ONE], outcomes[THREE], strict=True)]
    note = _absolute("per s", outcomes[THREE], lambda outcome: outcome.rate)
    rows.append(at_least(f"{THREE}: rate", "x one sender's", ratios, median_min=1.2, note=note))
    ratios = [[ours.latency / bare.latency] for bare, ours in outcomes[SINGLE]]
    note = _absolute("ms", outcomes[SINGLE], lambda outcome: 1000 * outcome.latency)
    rows.append(at_most(f"{SINGLE}: delivered at all", "x floor", ratios, median_max=2.5, note=note))
    return rows


def _absolute(unit: str, outcomes: Sequence[tuple[Outcome, Outcome]], of: Callable[[Outcome], float]) -> str:
    """What the ratio is made of, and the processor time, which hangs less on what else the machine does."""
    bare, ours = (statistics.median(of(pair[side]) for pair in outcomes) for side in (0, 1))
    bare_us, ours_us = (1e6 * statistics.median(pair[side].cost for pair in outcomes) for side in (0, 1))
    return (
        f"ours {ours:,.4g} {unit}, the floor {bare:,.4g} {unit};"
        f" processor time per message {ours_us:.1f} µs, the floor {bare_us:.1f} µs (medians)"
    )


def durable(effort: Effort) -> list[Row]:
    """A group on disk beside one in memory, in turns; for information, there is no bound."""
    ratios: list[list[float]] = []
    outcomes: list[tuple[Outcome, Outcome]] = []
    batches: list[float] = []
    for _ in range(effort.runs):
        load = msgspec.structs.replace(LOADS[ONE], seconds=effort.choose(2, 1))
        ours = run(load, attributes={"durable": True}, look=lambda domain: batches.append(_entries_per_sync(domain)))
        outcomes.append((run(load), ours))
        ratios.append([ours.rate / outcomes[-1][0].rate])
    note = _absolute("per s", outcomes, lambda outcome: outcome.rate).replace("the floor", "in memory")
    note += f"; {statistics.median(batches):.0f} entries per sync at the leader"
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
) -> Outcome:
    """Three daemons under ``load``; the leader of the group is not the name server. ``look`` is called at the end."""
    with DrivenDomain(nodes=3) as domain:
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
