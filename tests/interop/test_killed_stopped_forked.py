"""Programs that are stopped, fork, and are killed: what their groups see of it, and what they can do afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import groupsvc
from groupsvc import Cause, DefaultCast, GroupAttributes, Phases, Reason
from groupsvc.testing import LocalDomain

from .programs import PATIENCE_S, Program

VOTED = GroupAttributes(state_phases=Phases.N, time_limit=PATIENCE_S)


@pytest.fixture
def group(shared_domain: LocalDomain, request: pytest.FixtureRequest) -> Iterator[groupsvc.Group]:
    """A group of this test alone, seen by a provider on n1."""
    with shared_domain.connect("n1", default_timeout=PATIENCE_S) as session:
        yield session.join(f"{request.node.name}/{time.time_ns()}", name="a", attributes=VOTED, events=True)


def until(group: groupsvc.Group, kind: type, name: str) -> groupsvc.Event:
    """The next event of a kind about a provider of this name."""
    for event in group.events(timeout=PATIENCE_S):
        who = getattr(event, "providers", None) or (getattr(event, "provider", None),)
        if isinstance(event, kind) and name in [provider.name for provider in who]:
            return event
    raise AssertionError(f"no {kind.__name__} of {name}")


def default_cast_for(outcome: groupsvc.Outcome, name: str) -> DefaultCast:
    """Why the default vote was cast for this one."""
    return next(counted.default for counted in outcome.tally if counted.provider.name == name)


VOTER = """
session = groupsvc.connect(address)
group = session.join(name, name="b", on_proposal=lambda proposal: Vote.APPROVE)
print("in", flush=True)
threading.Event().wait()
"""


def test_a_stopped_program_is_unresponsive_and_stays_and_answers_again_when_it_goes_on(
    shared_domain: LocalDomain, group: groupsvc.Group
) -> None:
    """GS-27: not dead, so not removed; nobody waits for its vote; afterwards it is as good as before."""
    with Program(VOTER, shared_domain.address("n2"), group.name) as program:
        assert "in" == program.says()
        program.stop()
        until(group, groupsvc.Unresponsive, "b")
        outcome = group.propose_state(b"without it")
        assert outcome.approved
        assert DefaultCast.UNRESPONSIVE is default_cast_for(outcome, "b")
        program.go_on()
        until(group, groupsvc.Responsive, "b")
        assert ["a", "b"] == [provider.name for provider in group.providers]
        outcome = group.propose_state(b"with it")
        assert (Reason.EXPLICIT_APPROVE, DefaultCast.NOT) == (outcome.reason, default_cast_for(outcome, "b"))
        program.kill()
        left = until(group, groupsvc.Left, "b")
        assert isinstance(left, groupsvc.Left)
        assert Cause.FAILURE is left.cause


LEADER = """
import time
session = groupsvc.connect(address)
group = session.join(name, name="leader")
print("leads", group.is_oldest, flush=True)
last = groupsvc.clock.now()
while True:
    time.sleep(0.01)
    now, leads = groupsvc.clock.now(), group.is_oldest
    if now - last > 4.0:
        print("leads", leads, group.ended, flush=True)
    last = now
"""


def test_a_leader_that_hangs_stays_leader_until_it_is_expelled_and_does_not_believe_it_afterwards(
    shared_domain: LocalDomain,
) -> None:
    """K2: the first thing it does when it goes on is to look, before it has read that it was expelled."""
    name = f"leader/{time.time_ns()}"
    with (
        Program(LEADER, shared_domain.address("n2"), name) as program,
        shared_domain.connect("n1", default_timeout=PATIENCE_S) as session,
    ):
        assert "leads True" == program.says()
        group = session.join(name, name="next", events=True)
        program.stop()
        hangs = until(group, groupsvc.Unresponsive, "leader")
        assert isinstance(hangs, groupsvc.Unresponsive)
        assert (False, "leader") == (group.is_oldest, getattr(group.oldest, "name", None))
        assert group.expel(hangs.provider, reason="does not answer").approved
        until(group, groupsvc.Left, "leader")
        assert group.is_oldest
        program.go_on()
        assert "leads False" == program.says().rpartition(" ")[0]


FORKING = """
session = groupsvc.connect(address)
group = session.join(name, name="parent", on_proposal=lambda proposal: Vote.APPROVE, events=True)
held = group.held(group.fence)
child = os.fork()
if child:
    print(child, flush=True)
    threading.Event().wait()
assert "use what is the parent's" == input()
calls = {
    "state": lambda: session.state.name,
    "join": lambda: session.join("other"),
    "groups": lambda: session.groups(),
    "propose": lambda: group.propose_state(b"x"),
    "multicast": lambda: group.multicast(b"x"),
    "next_event": lambda: group.next_event(timeout=0),
    "check": lambda: held.check(),
}
for what, call in calls.items():
    try:
        print(what, call(), flush=True)
    except groupsvc.UsageError as error:
        print(what, error, flush=True)
assert "join" == input()
with groupsvc.connect(address) as own:
    mine = own.join(name, name="child")
    print("child", mine.propose_state(b"child").approved, flush=True)
    input()
"""


def test_a_parent_is_unharmed_by_its_child_and_its_death_is_seen_though_the_child_lives(
    shared_domain: LocalDomain, group: groupsvc.Group
) -> None:
    """The child has a copy of the parent's socket, so the connection does not end with the parent."""
    with Program(FORKING, shared_domain.address("n2"), group.name) as program, ExitStack() as stack:
        child = int(program.says())
        stack.callback(lambda: kill(child))
        program.tell("use what is the parent's")
        assert "state LOST" == program.says()
        for what in ("join", "groups", "propose", "multicast", "next_event", "check"):
            text = f"this session belongs to process {program.pid}; a forked child calls groupsvc.connect() for its own"
            assert f"{what} {text}" == program.says()
        outcome = group.propose_state(b"after the fork")
        assert (Reason.EXPLICIT_APPROVE, DefaultCast.NOT) == (outcome.reason, default_cast_for(outcome, "parent"))
        program.kill()
        failing, left = until(group, groupsvc.Failing, "parent"), until(group, groupsvc.Left, "parent")
        assert isinstance(failing, groupsvc.Failing)
        assert isinstance(left, groupsvc.Left)
        assert Cause.FAILURE is failing.cause is left.cause
        os.kill(child, 0)  # it lives
        program.tell("join")
        assert "child True" == program.says()
        group.sync()
        assert b"child" == group.state
        kill(child)
        until(group, groupsvc.Left, "child")


FORKING_IN_ASYNCIO = """
import asyncio
from groupsvc import aio

async def use_what_is_the_parents(session, group):
    for call in (session.groups, group.sync, lambda: group.propose_state(b"x"), lambda: group.next_event(timeout=0)):
        try:
            print(await call(), flush=True)
        except groupsvc.UsageError as error:
            print(error, flush=True)
    async with aio.connect(address) as own, own.join(name, name="child") as mine:
        print("child", (await mine.propose_state(b"child")).approved, flush=True)

async def parent():
    async with aio.connect(address) as session, session.join(name, name="parent") as group:
        child = os.fork()
        if not child:
            try:
                asyncio.run(use_what_is_the_parents(session, group))
            finally:
                os._exit(0)
        await asyncio.to_thread(os.waitpid, child, 0)
        print("parent", (await group.propose_state(b"parent")).approved, flush=True)

asyncio.run(parent())
"""


def test_a_fork_in_asyncio_is_the_same(shared_domain: LocalDomain, group: groupsvc.Group) -> None:
    """The child runs a loop of its own."""
    with Program(FORKING_IN_ASYNCIO, shared_domain.address("n2"), group.name) as program:
        text = f"this session belongs to process {program.pid}; a forked child connects for its own"
        assert [text] * 4 == [program.says() for _ in range(4)]
        assert ("child True", "parent True") == (program.says(), program.says())
        assert 0 == program.ends()
        for name in ("child", "parent"):
            left = until(group, groupsvc.Left, name)
            assert isinstance(left, groupsvc.Left)
            assert Cause.LEAVE is left.cause


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
