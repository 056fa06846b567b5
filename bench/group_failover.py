"""How long a group stands still when its leader is killed under full load, and whether anything was lost.

A leads the group, B and C hold the stream with it, all three send as fast as their windows allow; A is killed with
SIGKILL. The clock stops when both survivors have delivered a message that was ordered in the new view: what A had still
sent does not count. Then the survivors' whole orders are compared, entry by entry. Every program has checked already
that numbers follow one another, of the stream and of each sender.
"""

from __future__ import annotations

import os
import signal
import time

from .driven import DrivenDomain, Gathering
from .driver import Told
from .load import Load, when_delivered
from .multicast import GROUP, leader_apart
from .row import Effort, Row, at_most

LOAD = Load(senders=3)
BEFORE_S = 1.0
AFTER_S = 2.0
"""Under load before the kill, and after it."""

END_WAIT_S = 30.0


def killed(effort: Effort) -> list[Row]:
    """kill -9 of a leader that is name server, and of one that is not."""
    rows = []
    for is_name_server, name, bound in (
        (False, "leader of the group killed, next message", 0.3),
        (True, "leader and name server killed, next message", 0.6),
    ):
        runs, said, compared = [], [], 0
        for _ in range(effort.runs):
            took, entries, wrong = kill_once(is_name_server=is_name_server)
            runs.append([took])
            said += wrong
            compared += entries
        note = "; ".join(said) or f"{compared:,} entries compared: none lost, none doubled, the same order"
        rows.append(at_most(name, "s", runs, median_max=bound, note=note, also=not said))
    return rows


def kill_once(*, is_name_server: bool) -> tuple[float, int, list[str]]:
    """Seconds until both survivors have delivered something of the new view, entries compared, and what is wrong."""
    with DrivenDomain(nodes=3) as domain:
        nodes = leader_apart(domain)
        if is_name_server:
            nodes.reverse()
        group = domain.form(GROUP, nodes, LOAD, record=True)
        group.send()
        time.sleep(BEFORE_S)
        leader = nodes[0]
        killed_at = time.monotonic()
        os.kill(domain.pid(leader), signal.SIGKILL)
        domain.kill(leader)
        time.sleep(AFTER_S)
        survivors = group.without(leader)
        survivors.end(timeout=END_WAIT_S)
        told = survivors.told()
        took = max(_next_message(each, leader) for each in told) - killed_at
        return took, len(survivors.orders(told)[0]), wrong_with(survivors, told)


def _next_message(told: Told, old_leader: str) -> float:
    """When the first message of a view with another leader was delivered."""
    view = next(view for view in told.views if view.leader != old_leader)
    return when_delivered(told.notes, view.delivered + 1)


def wrong_with(group: Gathering, told: list[Told]) -> list[str]:
    """What differs between the orders of the nodes, and what was submitted and never delivered."""
    found = [
        f"{node} misses {each.outstanding} messages of its own"
        for node, each in zip(group.nodes, told, strict=True)
        if each.outstanding
    ]
    first, *others = group.orders(told)
    for node, order in zip(group.nodes[1:], others, strict=True):
        if order != first:
            same = next((at for at, (one, two) in enumerate(zip(first, order, strict=False)) if one != two), "the last")
            found.append(f"the orders of {group.nodes[0]} and {node} differ from entry {same} on")
    return found
