"""Node groups over real daemons: the same order everywhere, whatever becomes of the leader; and no traffic in between.

A program inside each daemon submits and looks at everything that is delivered; it breaks the daemon if an entry is
missing, doubled or out of order (B1, B4, B5). Here the whole orders are compared as well.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterable

import pytest

from bench.driven import DrivenDomain, Gathering
from bench.group_failover import wrong_with
from bench.load import Load, sender_of
from bench.multicast import leader_apart
from bench.stopped_receiver import stop_once

EACH = 2_000
THREE_SENDERS = Load(senders=3, count=EACH)
HISTORY_BYTES = 24 * 1024 * 1024
"""Beside it a stopped node may have 32 MiB of multicasts waiting for it."""
MANY = Load(senders=3, count=40 * EACH)


def counts(order: Iterable[int]) -> Counter[int]:
    """How many messages each sender has in an order; what is not the application's is left out."""
    return Counter(sender_of(entry) for entry in order if entry)


def delivered_everywhere(group: Gathering, messages: int) -> bool:
    return all(look is not None and look.delivered >= messages for look in group.looks())


def test_three_senders_are_delivered_everywhere_in_one_order() -> None:
    """B4: six thousand messages, from the first to the last the same at all three."""
    with DrivenDomain(nodes=3) as domain:
        group = domain.form("orders", domain.names, THREE_SENDERS, record=True)
        group.send()
        domain.wait_until(lambda: delivered_everywhere(group, 3 * EACH), "all is delivered", timeout=60)
        group.end()
        told = group.told()
        assert [] == wrong_with(group, told)
        for order in group.orders(told):
            assert {0: EACH, 1: EACH, 2: EACH} == counts(order)


@pytest.mark.faults
@pytest.mark.parametrize("is_name_server", [False, True], ids=["leader alone", "leader and name server"])
def test_nothing_is_lost_when_the_leader_is_killed_in_the_middle(is_name_server: bool) -> None:
    """B3, L4: the survivors deliver all of their own, and of the dead one the same."""
    with DrivenDomain(nodes=3) as domain:
        nodes = leader_apart(domain)
        if is_name_server:
            nodes.reverse()
        group = domain.form("orders", nodes, MANY, record=True)
        group.send()
        domain.wait_until(lambda: delivered_everywhere(group, EACH), "a part is delivered", timeout=60)
        os.kill(domain.pid(nodes[0]), signal.SIGKILL)
        domain.kill(nodes[0])
        survivors = group.without(nodes[0])
        domain.wait_until(survivors.is_drained, "all is delivered", timeout=60)
        told = survivors.told()
        assert [] == wrong_with(survivors, told)
        found = counts(survivors.orders(told)[0])
        assert (MANY.count, MANY.count) == (found[1], found[2])
        assert 0 < found[0] < MANY.count  # it was in the middle


def test_nodes_that_share_no_group_have_nothing_to_do_with_one_another() -> None:
    """GS-02: n2 and n3 have a group, n4 and n5 another; all of them are linked to n1, the only voter."""
    with DrivenDomain(nodes=5, voters=1) as domain:
        left = domain.form("left", ["n2", "n3"], Load(senders=2, count=EACH))
        right = domain.form("right", ["n4", "n5"], Load(senders=2, count=EACH))
        quiet = sent(domain, "n4")
        left.send()
        domain.wait_until(lambda: delivered_everywhere(left, EACH), "all is delivered on the left", timeout=60)
        left.end()
        assert {"n1", "n3"} == linked(domain, "n2")
        assert {"n1", "n2"} == linked(domain, "n3")
        assert {"n1", "n5"} == linked(domain, "n4")
        assert {"n1", "n4"} == linked(domain, "n5")
        # What is sent on the right meanwhile are signs of life, of which there are a few every second.
        assert sent(domain, "n4") - quiet < EACH // 10
        right.send()
        domain.wait_until(lambda: delivered_everywhere(right, EACH), "all is delivered on the right", timeout=60)


@pytest.mark.alone
@pytest.mark.faults
@pytest.mark.parametrize("size", [100, 10_000])
def test_a_stopped_receiver_holds_nobody_up_and_costs_a_bounded_amount(size: int) -> None:
    """X1: what is kept for it in the history and in the queue to it stays below 64 MiB; half the rate would be a fault.

    How close the rate comes to what it was is measured by ``bench``.
    """
    stop = stop_once(Load(senders=1, size=size), {"history_bytes_max": HISTORY_BYTES})
    assert 64 >= max(stop.grown_mib.values())
    assert stop.during >= stop.before / 2


def linked(domain: DrivenDomain, name: str) -> set[str]:
    return {link.node for link in domain.driver(name).look().links}


def sent(domain: DrivenDomain, name: str) -> int:
    return sum(link.frames_sent for link in domain.driver(name).look().links)
