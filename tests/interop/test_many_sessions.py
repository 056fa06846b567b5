"""Two hundred sessions at one daemon, of four processes: all take part, and nothing of them is left behind."""

from __future__ import annotations

import contextlib
import os
import time
from contextlib import ExitStack

import pytest

import groupsvc
from groupsvc import GroupAttributes, Phases, Reason, Vote
from groupsvc.testing import LocalDomain

from .programs import Program

PROCESSES = 4
EACH = 50
SESSIONS = PROCESSES * EACH
SETTLED_S = 1.0
"""Connections are tried anew after 0.2 s at most."""
PATIENCE_S = 60.0
"""For all of it together; it takes about ten seconds on a quiet machine."""

CROWD = """
each = int(sys.argv[3])
votes = []

def vote(proposal):
    votes.append(proposal.phase)
    return Vote.APPROVE

sessions = [groupsvc.connect(address) for _ in range(each)]
groups = [one.join(name, name=f"{os.getpid()}-{number}", on_proposal=vote, events=True)
          for number, one in enumerate(sessions)]
print("in", flush=True)
assert "speak" == input()
for group in groups:
    group.multicast(group.me.name.encode())
for group in groups:
    group.flush()
print("spoken", flush=True)
everybody = int(input())
orders = []
for group in groups:
    order = []
    while len(order) < everybody:
        event = group.next_event(timeout=30)
        assert event is not None, f"{len(order)} messages of {everybody} have come"
        if isinstance(event, groupsvc.Message):
            order.append(event.payload)
    orders.append(order)
assert all(order == orders[0] for order in orders)
print(len(votes), b" ".join(orders[0]).decode(), flush=True)
assert "leave" == input()
for group in groups:
    group.leave().require()
for one in sessions:
    one.close()
print("closed", flush=True)
"""


def test_two_hundred_sessions_join_vote_speak_and_leave_without_a_trace(local_domain: LocalDomain) -> None:
    """One order for all of them, one vote of each in the ballot, and then the daemon has what it had before."""
    address, name = local_domain.address("n1"), "crowd"
    before = {node: settled(local_domain.pid(node)) for node in local_domain.names}
    with ExitStack() as stack:
        session = stack.enter_context(local_domain.connect("n2", default_timeout=PATIENCE_S))
        attributes = GroupAttributes(state_phases=Phases.N, time_limit=PATIENCE_S)
        group = session.join(name, name="host", attributes=attributes)
        crowds = [stack.enter_context(Program(CROWD, address, name, str(EACH))) for _ in range(PROCESSES)]
        assert ["in"] * PROCESSES == [crowd.says() for crowd in crowds]
        group.sync()
        assert SESSIONS + 1 == len({provider.id for provider in group.providers})
        outcome = group.propose_state(b"full")
        assert (True, 1, Reason.EXPLICIT_APPROVE) == (outcome.approved, outcome.phases, outcome.reason)
        assert [Vote.APPROVE] * (SESSIONS + 1) == [counted.vote for counted in outcome.tally]
        assert {one.id for one in group.providers} == {counted.provider.id for counted in outcome.tally}
        for crowd in crowds:
            crowd.tell("speak")
        assert ["spoken"] * PROCESSES == [crowd.says() for crowd in crowds]
        for crowd in crowds:
            crowd.tell(str(SESSIONS))
        told = [crowd.says().split(" ") for crowd in crowds]
        assert [str(EACH)] * PROCESSES == [votes for votes, *_ in told], "each session was asked once"
        assert all(order == told[0][1:] for _, *order in told)
        assert sorted(told[0][1:]) == sorted(one.name for one in group.providers if one.name != "host")
        for crowd in crowds:
            crowd.tell("leave")
        assert ["closed"] * PROCESSES == [crowd.says() for crowd in crowds]
        group.sync()
        assert [group.me] == list(group.providers)
        assert [0] * PROCESSES == [crowd.ends() for crowd in crowds]
    for node in local_domain.names:
        local_domain.wait_until(
            lambda node=node: has_no_more_than(before[node], local_domain.pid(node)),
            f"{node} has no more open than {before[node]}",
        )


def test_one_too_many_is_told_the_limit_by_its_name_and_harms_nobody() -> None:
    """And when one has gone there is room for another."""
    with LocalDomain(nodes=1, settings={"limits": {"clients_max": 5}}) as domain, ExitStack() as stack:
        room = 4  # the domain itself asks its daemon how it is
        sessions = [stack.enter_context(domain.connect("n1")) for _ in range(room)]
        group = sessions[0].join("db")
        with pytest.raises(groupsvc.Busy) as caught:
            domain.connect("n1")
        expected = (
            "daemon has 5 clients and takes no more (limits.clients_max); close some, or raise it in its configuration"
        )
        assert expected in str(caught.value)
        assert group.propose_state(b"unharmed").approved
        sessions.pop().close()

        def is_let_in() -> bool:
            with contextlib.suppress(groupsvc.Busy):
                stack.enter_context(domain.connect("n1"))
                return True
            return False

        domain.wait_until(is_let_in, "there is room for one more")


def opened_by(pid: int) -> tuple[int, int]:
    """How many descriptors and threads a process has."""
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


def settled(pid: int) -> tuple[int, int]:
    """The same, when all nodes have connected to one another: a domain is up before that."""
    found, since = opened_by(pid), time.monotonic()
    while time.monotonic() < since + SETTLED_S:
        time.sleep(0.05)
        if (now := opened_by(pid)) != found:
            found, since = now, time.monotonic()
    return found


def has_no_more_than(before: tuple[int, int], pid: int) -> bool:
    return all(now <= then for now, then in zip(opened_by(pid), before, strict=True))
