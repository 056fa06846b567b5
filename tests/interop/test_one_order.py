"""Fifty thousand messages of four senders on three nodes: every receiver has every one, once, in the one order."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from itertools import pairwise

import groupsvc
from groupsvc.testing import LocalDomain

EACH = 12_500
NODES = ("n1", "n2", "n3", "n1")
"""Two of the senders share a daemon, which must not mix them up."""

PATIENCE_S = 60.0
"""For all of it; it takes about five seconds on a quiet machine."""


def test_fifty_thousand_messages_have_one_order_at_every_receiver(shared_domain: LocalDomain) -> None:
    """Total order, FIFO per sender, none missing, none twice: compared entry by entry, with the numbers of entries."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(shared_domain.connect(node, default_timeout=PATIENCE_S)) for node in NODES]
        groups = [
            session.join("fifty-thousand", name=f"s{number}", events=True) for number, session in enumerate(sessions)
        ]
        orders: list[list[groupsvc.Message]] = [[] for _ in groups]
        threads = [threading.Thread(target=send, args=(group,)) for group in groups]
        threads += [threading.Thread(target=read, args=pair) for pair in zip(groups, orders, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        for group, order in zip(groups, orders, strict=True):
            group.sync()
            assert [] == [event for event in group.events(timeout=0) if isinstance(event, groupsvc.Message)]
            assert len(NODES) * EACH == len(order)
            assert all(one.seq < other.seq for one, other in pairwise(order))
        for messages in zip(*orders, strict=True):
            assert 1 == len({(one.seq, one.payload, one.sender, one.origin) for one in messages}), messages
        for group in groups:
            mine = [message.payload for message in orders[0] if message.sender == group.me]
            assert [payload(group, number) for number in range(EACH)] == mine


def payload(group: groupsvc.Group, number: int) -> bytes:
    return f"{group.me.name}:{number}".encode()


def send(group: groupsvc.Group) -> None:
    for number in range(EACH):
        group.multicast(payload(group, number))
    group.flush()


def read(group: groupsvc.Group, order: list[groupsvc.Message]) -> None:
    for event in group.events(timeout=PATIENCE_S):
        if isinstance(event, groupsvc.Message):
            order.append(event)
            if len(order) == len(NODES) * EACH:
                return
