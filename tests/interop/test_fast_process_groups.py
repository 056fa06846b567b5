"""Process groups with ``delivery="fast"`` on real daemons: one order, votes and state, and a leader that is killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import groupsvc
from groupsvc import Group, GroupAttributes, Phases, Vote
from groupsvc.testing import LocalDomain

EACH = 1_000
NODES = ("n3", "n1", "n2")
"""The first leads the group."""

PATIENCE_S = 60.0
FAST = GroupAttributes(delivery="fast", state_phases=Phases.N)


@pytest.fixture
def fast(shared_domain: LocalDomain) -> Iterator[list[Group]]:
    """A provider on each node; all vote for everything but ``no``."""
    name = f"fast/{time.time_ns()}"
    with ExitStack() as stack:
        sessions = [stack.enter_context(shared_domain.connect(node, default_timeout=PATIENCE_S)) for node in NODES]
        yield [
            session.join(name, name=node, attributes=FAST, events=True, on_proposal=_vote)
            for node, session in zip(NODES, sessions, strict=True)
        ]


def _vote(proposal: groupsvc.Proposal) -> Vote:
    return Vote.REJECT if proposal.state == b"no" else Vote.APPROVE


def _messages(group: Group, count: int) -> list[tuple[int, bytes, str]]:
    """The next so many, with the numbers of their entries and who sent them."""
    found: list[tuple[int, bytes, str]] = []
    for event in group.events(timeout=PATIENCE_S):
        if isinstance(event, groupsvc.Message):
            found.append((event.seq, event.payload, event.origin))
            if len(found) == count:
                break
    return found


def _speak(group: Group) -> None:
    for number in range(EACH):
        group.multicast(f"{group.me.name}:{number}".encode())
    group.flush()


def test_messages_of_all_come_to_all_in_one_order(fast: list[Group]) -> None:
    """B1, B4, B5: as in a group that waits for its servers."""
    orders: list[list[tuple[int, bytes, str]]] = [[] for _ in fast]

    def read(group: Group, order: list[tuple[int, bytes, str]]) -> None:
        order.extend(_messages(group, len(NODES) * EACH))

    threads = [threading.Thread(target=_speak, args=(group,)) for group in fast]
    threads += [threading.Thread(target=read, args=pair) for pair in zip(fast, orders, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert orders[0] == orders[1] == orders[2]
    for group in fast:
        mine = [payload for _, payload, origin in orders[0] if origin == group.me.id]
        assert [f"{group.me.name}:{number}".encode() for number in range(EACH)] == mine


def test_votes_and_state_are_those_of_any_group(fast: list[Group]) -> None:
    """G2, G3, G6, G9: one outcome, a rejection changes nothing, of two that replace the same version one succeeds."""
    assert fast[1].propose_state(b"yes").approved
    outcome = fast[2].propose_state(b"no")
    assert (False, 3) == (outcome.approved, len(outcome.tally))
    version = fast[0].state_version
    fast[0].propose_state(b"first", if_version=version).require()
    with pytest.raises(groupsvc.Failed):
        fast[1].propose_state(b"second", if_version=version)
    for group in fast:
        group.sync()
        assert (b"first", version + 1) == (group.state, group.state_version)


@pytest.mark.faults
def test_who_lives_goes_on_in_one_order_when_the_leader_is_killed(
    fast: list[Group], shared_domain: LocalDomain
) -> None:
    """B6: what one of the two that live was told, the other is told, with the same number; and both can speak."""
    speaking = [threading.Thread(target=_speak, args=(group,)) for group in fast[1:]]
    for thread in speaking:
        thread.start()
    first = [_messages(group, EACH // 2) for group in fast[1:]]
    shared_domain.kill("n3")
    rest = [_messages(group, 2 * EACH - EACH // 2) for group in fast[1:]]
    for thread in speaking:
        thread.join(PATIENCE_S)
    orders = [before + after for before, after in zip(first, rest, strict=True)]
    assert orders[0] == orders[1]
    for group in fast[1:]:
        mine = [payload for _, payload, origin in orders[0] if origin == group.me.id]
        assert [f"{group.me.name}:{number}".encode() for number in range(EACH)] == mine
    assert fast[1].propose_state(b"without n3").approved
    fast[2].sync()
    assert (b"without n3", ["n1", "n2"]) == (fast[2].state, [one.name for one in fast[2].providers])
