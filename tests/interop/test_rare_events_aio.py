"""What a program with a loop is told seldom, from real daemons: who hangs, who is too slow, what was doubted."""

from __future__ import annotations

import asyncio
import time

import pytest

import groupsvc
from groupsvc import Cause, GroupAttributes, Phases, Vote, aio, limits
from groupsvc.sansio.event_buffer import EventBuffer
from groupsvc.testing import LocalDomain

PATIENCE_S = 20.0


@pytest.fixture
def name() -> str:
    """A group of this test alone."""
    return f"rare/{time.time_ns()}"


async def until(group: aio.Group, kind: type[groupsvc.Event]) -> groupsvc.Event:
    """The next event of this kind."""
    async for event in group.events(timeout=PATIENCE_S):
        if isinstance(event, kind):
            return event
    raise AssertionError(f"no {kind.__name__} came")


def test_a_callback_that_blocks_the_loop_is_unresponsive_and_not_dead(shared_domain: LocalDomain, name: str) -> None:
    """Nobody else of that process answers the daemon meanwhile: it is the loop itself that hangs."""

    def hangs(proposal: groupsvc.Proposal) -> Vote:
        time.sleep(7.0)
        return Vote.APPROVE

    async def story() -> None:
        async with aio.connect(shared_domain.address("n1")) as session:
            attributes = GroupAttributes(state_phases=Phases.N)
            group = await session.join(name, name="a", attributes=attributes, on_proposal=approves, events=True)
            task = asyncio.create_task(asyncio.to_thread(asyncio.run, slow_program_of_its_own()))
            await is_in
            assert (await group.propose_state(b"x", time_limit=0.2)).approved
            silent = await until(group, groupsvc.Unresponsive)
            assert isinstance(silent, groupsvc.Unresponsive)
            assert "b" == silent.provider.name
            again = await until(group, groupsvc.Responsive)
            assert isinstance(again, groupsvc.Responsive)
            assert ("b", 2) == (again.provider.name, len(group.providers))
            loop_of_b.call_soon_threadsafe(is_over.set)
            await task

    def approves(proposal: groupsvc.Proposal) -> Vote:
        return Vote.APPROVE

    async def slow_program_of_its_own() -> None:
        nonlocal is_over, loop_of_b
        is_over, loop_of_b = asyncio.Event(), asyncio.get_running_loop()
        async with aio.connect(shared_domain.address("n2")) as session:
            await session.join(name, name="b", on_proposal=hangs)
            loop_of_a.call_soon_threadsafe(is_in.set_result, None)
            await is_over.wait()

    is_over: asyncio.Event
    loop_of_b: asyncio.AbstractEventLoop
    with asyncio.Runner() as runner:
        loop_of_a = runner.get_loop()
        is_in = loop_of_a.create_future()
        runner.run(asyncio.wait_for(story(), 3 * PATIENCE_S))


def test_a_provider_that_does_not_read_leaves_and_is_told(shared_domain: LocalDomain, name: str) -> None:
    async def story() -> None:
        async with (
            aio.connect(shared_domain.address("n1")) as one,
            aio.connect(shared_domain.address("n2")) as two,
        ):
            first = await one.join(name, name="a", events=True)
            slow = await two.join(name, name="slow", events=True)
            slow._membership.buffer = slow._membership.reads = EventBuffer(limit=50)
            for number in range(200):
                await first.multicast(b"%d" % number)
            left = await until(first, groupsvc.Left)
            assert isinstance(left, groupsvc.Left)
            assert (Cause.OVERRUN, "slow") == (left.cause, left.providers[0].name)
            found = [event async for event in slow.events(timeout=PATIENCE_S)]
            assert ["Overrun", "Lost"] == [type(event).__name__ for event in found[-2:]]

    asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE_S))


@pytest.mark.faults
def test_a_node_without_the_majority_suspends_and_resumes(shared_domain: LocalDomain, name: str) -> None:
    async def story() -> None:
        async with aio.connect(shared_domain.address("n3")) as session:
            group = await session.join(name, events=True)
            held = group.held(group.fence)
            try:
                shared_domain.pause("n1")
                shared_domain.pause("n2")
                await until(group, groupsvc.Suspended)
                assert not group.is_oldest
                with pytest.raises(groupsvc.Suspended):
                    held.check()
            finally:
                shared_domain.resume("n1")
                shared_domain.resume("n2")
            await until(group, groupsvc.Resumed)
            held.check()
            assert group.is_oldest

    asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE_S))


def test_who_sends_faster_than_its_daemon_takes_would_block(shared_domain: LocalDomain, name: str) -> None:
    async def story() -> None:
        async with aio.connect(shared_domain.address("n3")) as session:
            group = await session.join(name)
            for _ in range(limits.outstanding_max):
                group.multicast_nowait(b"x")
            with pytest.raises(groupsvc.WouldBlock):
                group.multicast_nowait(b"one more")
            await group.flush()
            group.multicast_nowait(b"there is room again")
            await group.flush()

    asyncio.run(asyncio.wait_for(story(), 3 * PATIENCE_S))
