"""Every name of the contract, used with real daemons: one story, told to the blocking driver and to that of asyncio."""

from __future__ import annotations

import asyncio
import select
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

import pytest

import groupsvc
from groupsvc import Answer, Cause, GroupAttributes, Phases, ProposalKind, Reason, SessionState, Vote, aio
from groupsvc.testing import LocalDomain
from tests.unit.client import contract
from tests.unit.client.test_contract import METHODS

from .both_drivers import Driver, Used

PATIENCE_S = 30.0


@pytest.mark.parametrize("connect", [groupsvc.connect, aio.connect], ids=["blocking", "asyncio"])
def test_every_name_does_what_it_says(shared_domain: LocalDomain, connect: Any) -> None:
    """And none of them is left out."""
    driver = Driver(connect)
    asyncio.run(asyncio.wait_for(story(driver, shared_domain, f"names/{time.time_ns()}"), 3 * PATIENCE_S))
    promised = {one for one in METHODS if driver.is_blocking or one not in contract.NOT_IN_AIO}
    assert set() == promised - driver.names


async def story(driver: Driver, domain: LocalDomain, name: str) -> None:
    async with AsyncExitStack() as stack:
        one, two, three, reader = [
            await stack.enter_async_context(await driver.connect(domain.address(node), name=node))
            for node in ("n1", "n2", "n3", "n3")
        ]
        await about_sessions(one, two)
        merged = reader.events(timeout=PATIENCE_S)
        rules = GroupAttributes(state_phases=Phases.N, client_version="1")
        first = await one.join(name, name="a", data=b"of a", create=True, attributes=rules)
        second = await two.join(name, name="b", on_proposal=driver.callback(vote), create=False, events=True)
        watching = await three.subscribe(name, wait=1.0)
        await reader.subscribe(name)
        about_what_is_known(name, first, second, watching)
        await proposals(first, second)
        await messages(name, first, second, three)
        await barriers(first, second)
        about_holding(first)
        await locks(name, one, two)
        await what_is_like_locks(driver, name, one, two)
        await what_is_kept_open(name, one, two)
        await partings(one, name, first, second, watching, merged)
        await machines(f"{name}/table", one, two)
        await closing(driver, one)


async def about_sessions(one: Used, two: Used) -> None:
    """Who and where."""
    assert (SessionState.CONNECTED, "n1", "n2") == (one.state, one.node, two.node)
    assert one.id.startswith("n1/")
    status = await one.status()
    assert ("n1", False, "") == (status.node, status.is_suspended, status.trouble)
    assert {"n1", "n2", "n3"} <= {node.name for node in status.nodes if node.status == "up"}
    assert [status.name_server] == [node.name for node in status.nodes if node.is_name_server]


def about_what_is_known(name: str, first: Used, second: Used, watching: Used) -> None:
    """Asks nobody."""
    assert {name} == {one.name for one in (first, second, watching)}
    assert ("a", b"of a", "n1") == (first.me.name, first.me.data, first.me.node)
    assert (Phases.N, "1", Vote.APPROVE) == (
        first.attributes.state_phases,
        second.attributes.client_version,
        watching.attributes.default_vote,
    )
    assert (first.me, True, False) == (second.oldest, first.is_oldest, second.is_oldest)
    assert second.me.joined_seq <= watching.view.seq
    for one in (second, watching):
        assert (b"", 0, (first.me, second.me)) == (one.state, one.state_version, one.providers)
        assert one.fence == one.view.fence > 0


def vote(proposal: groupsvc.Proposal) -> Vote | Answer:
    """Once more, and then yes; but not to what must never be."""
    if proposal.state == b"never":
        return Vote.REJECT
    return Answer(Vote.CONTINUE, message=b"once more") if proposal.phase == 1 else Vote.APPROVE


async def proposals(first: Used, second: Used) -> None:
    """Each kind; what comes of it, and that it can be asked for."""
    outcome = await first.propose_state(b"red", if_version=0, time_limit=PATIENCE_S)
    assert (True, 2, Reason.EXPLICIT_APPROVE) == (outcome.approved, outcome.phases, outcome.reason)
    assert [(second.me, b"once more")] == [(said.provider, said.payload) for said in outcome.messages]
    assert outcome.require() is outcome
    again = await second.outcome(outcome.proposal.id)
    assert (outcome.proposal.id, outcome.tally) == (again.proposal.id, again.tally)
    outcome = await first.propose_state(b"never", phases=Phases.N, on_busy="fail")
    assert (False, Reason.EXPLICIT_REJECT) == (bool(outcome), outcome.reason)
    with pytest.raises(groupsvc.Rejected):
        outcome.require()
    assert (b"red", 1) == (first.state, first.state_version)
    with pytest.raises(groupsvc.StaleVersion) as stale:
        await first.propose_state(b"blue", if_version=0)
    assert (1, first.name) == (stale.value.version, stale.value.group)
    outcome = await first.send(b"by ballot", phases=2)
    assert (True, ProposalKind.MESSAGE, 2) == (outcome.approved, outcome.proposal.kind, outcome.phases)
    assert await first.change_attributes(time_limit=7.0)
    await second.sync()
    assert 7.0 == first.attributes.time_limit == second.attributes.time_limit


async def messages(name: str, first: Used, second: Used, outside: Used) -> None:
    """In one order with everything else."""
    ids = [await first.multicast(b"1"), first.multicast_nowait(b"2")]
    assert 2 == len(set(ids))
    await first.flush()
    await outside.multicast(name, b"3")
    seq = await second.sync()
    not_of_the_stream = groupsvc.Suspended | groupsvc.Resumed  # on a machine that hardly gets anything done
    read = [event async for event in second.events(timeout=0) if not isinstance(event, not_of_the_stream)]
    assert seq >= read[-1].seq
    said = [(event.sender, event.payload) for event in read if isinstance(event, groupsvc.Message)]
    assert [(first.me, b"by ballot"), (first.me, b"1"), (first.me, b"2"), (None, b"3")] == said
    assert [
        "Joined", "Approved",
        "Proposed", "PhaseEnded", "Proposed", "StateChanged", "Approved",
        "Proposed", "Rejected",
        "Proposed", "PhaseEnded", "Proposed", "Message", "Approved",
        "Proposed", "PhaseEnded", "Proposed", "AttributesChanged", "Approved",
        "Message", "Message", "Message",
    ] == kinds(read)  # fmt: skip
    assert all(event.view.seq == event.seq for event in read)


async def barriers(first: Used, second: Used) -> None:
    """Released together, broken together, and reset together."""
    here, there = (one.barrier("step", parties=2, on_failure="continue") for one in (first, second))
    assert ("step", 2) == (here.name, there.parties)
    both = await asyncio.gather(here.wait(b"1", timeout=PATIENCE_S), there.wait(b"2", timeout=PATIENCE_S))
    assert both[0] == both[1]
    assert (1, {first.me.id: b"1", second.me.id: b"2"}) == (both[0].round, both[0].payloads)
    gathered = await asyncio.gather(here.all_gather(b"1"), there.all_gather(b"2"))
    assert [{first.me.id: b"1", second.me.id: b"2"}] * 2 == gathered
    assert [b"of b"] * 2 == await asyncio.gather(
        here.broadcast(root=second.me), there.broadcast(b"of b", root=second.me.id)
    )
    assert [b"of a"] * 2 == await asyncio.gather(here.broadcast(b"of a"), there.broadcast())
    add = lambda one, other: one + b"+" + other  # noqa: E731
    assert [b"1+2"] * 2 == await asyncio.gather(here.reduce(b"1", add), there.reduce(b"2", add))
    assert [True] * 2 == await asyncio.gather(here.vote(True), there.vote(True))
    assert [False] * 2 == await asyncio.gather(here.vote(True), there.vote(False))
    found = await asyncio.gather(here.broadcast(root="n9/1/1"), there.wait(), return_exceptions=True)
    assert isinstance(found[0], groupsvc.Failed)
    with pytest.raises(groupsvc.BarrierBroken) as broken:
        await here.wait(timeout=0.2)
    error = broken.value
    assert ("timeout", (first.me,), 9, 2, (first.me,)) == (
        error.why, error.who, error.round, error.expected, error.arrived
    )  # fmt: skip
    assert (((second.me, True),), 0) == (tuple((one.provider, one.responds) for one in error.missing), error.never_came)
    await asyncio.gather(here.reset(timeout=PATIENCE_S), there.reset(timeout=PATIENCE_S))
    assert 11 == (await asyncio.gather(here.wait(), there.wait()))[0].round


def kinds(events: list[Any]) -> list[str]:
    return [type(event).__name__ for event in events]


def about_holding(first: Used) -> None:
    """By one's own clock."""
    held = first.held(first.fence)
    held.check()
    assert held.valid_for > 0
    assert not held.lost.is_set()


async def locks(name: str, one: Used, two: Used) -> None:
    """One after the other."""
    here, there = one.lock(name), two.lock(name, reentrant=True)
    async with here as held:
        here.check()
        assert (True, held.fence, held.lost) == (here.is_held, here.fence, here.lost)
        assert held.suspended is here.suspended
        assert here.valid_for > 0
        assert not await there.acquire(timeout=0.1)
        assert not await there.try_acquire()
    assert await there.acquire()
    assert held.fence < there.fence
    await there.release()


async def what_is_like_locks(driver: Driver, name: str, one: Used, two: Used) -> None:
    """Semaphores, locks for readers and writers, elections."""
    here, there = one.semaphore(name, 2), two.semaphore(name, permits=2)
    assert 2 == here.permits
    assert await here.acquire()
    assert await there.try_acquire()
    assert not await here.acquire(timeout=0.1)
    for semaphore in (here, there):
        semaphore.check()
        assert (True, False) == (semaphore.is_held, semaphore.lost.is_set())
        assert isinstance(semaphore.suspended.is_set(), bool)
        assert semaphore.valid_for > 0 < semaphore.fence
        await semaphore.release()
    async with one.rwlock(name).read(), two.rwlock(name).read():
        assert not await two.rwlock(name).write().acquire(timeout=0.1)
    election = one.election(name)
    assert (None, ()) == (await election.leader(), await election.candidates())
    assert "led" == await election.run(driver.callback(lambda leadership: leadership.check() or "led"))


async def what_is_kept_open(name: str, one: Used, two: Used) -> None:
    """Counters, latches and parties."""
    async with one.counter(name) as here, two.counter(name) as there:
        numbers = [await here.next(), await there.next(), *await here.take(3), await there.next(timeout=PATIENCE_S)]
        assert sorted(set(numbers)) == numbers
    async with one.latch(name, 2) as here, two.latch(name, count=2) as there:
        assert (2, 2) == (here.count, await there.left())
        waiting = asyncio.create_task(here.wait(timeout=PATIENCE_S))
        assert not await there.wait(timeout=0.1)
        assert [1, 0, 0] == [await there.count_down() for _ in range(3)]
        assert await waiting
    here, there = one.party(name, data=b"1"), two.party(name, data=b"2")
    assert () == await here.members()
    assert "n1" == (await here.enter()).node
    assert b"1" == (await there.members())[0].data
    assert not await here.wait_for(2, timeout=0.1)
    async with there:
        assert await here.wait_for(2, timeout=PATIENCE_S)
        assert [b"1", b"2"] == [one.data for one in await there.members()]
        assert await here.fence() == await there.fence(timeout=PATIENCE_S)
    for kept_open in (here, one.counter(name), one.latch(name, 2)):
        await kept_open.close()


async def partings(
    one: Used, name: str, first: Used, second: Used, watching: Used, merged: AsyncIterator[groupsvc.Event]
) -> None:
    """Expelled, left, and gone at once; who watches sees all of it, and the end."""
    assert await first.next_event(timeout=0) is None
    assert await first.expel(second.me, reason="enough", time_limit=PATIENCE_S)
    causes = [event.cause async for event in merged_until_left(merged) if isinstance(event, groupsvc.Left)]
    assert [Cause.EXPELLED] == causes
    assert "enough" == (await until_left(second, Cause.EXPELLED)).reason
    with pytest.raises(groupsvc.NotAMember):
        await second.multicast(b"too late")
    again = await one.join(name, name="again")
    assert await again.leave(code=3)
    found = await until_left(first, Cause.LEAVE)
    assert (Cause.LEAVE, 3, ("again",)) == (found.cause, found.code, tuple(who.name for who in found.providers))
    assert name in {info.name for info in await one.groups()}
    await first.goodbye()
    seen = [event async for event in watching.events(timeout=PATIENCE_S)]
    assert [Cause.EXPELLED, Cause.LEAVE, Cause.GOODBYE] == [
        event.cause for event in seen if isinstance(event, groupsvc.Left)
    ]
    assert "Dissolved" == kinds(seen)[-1]
    assert await watching.next_event(timeout=0) is None
    await watching.close()


async def merged_until_left(merged: AsyncIterator[groupsvc.Event]) -> AsyncIterator[groupsvc.Event]:
    async for event in merged:
        yield event
        if isinstance(event, groupsvc.Left):
            return


async def until_left(group: Used, cause: Cause) -> groupsvc.Left:
    while (event := await group.next_event(timeout=PATIENCE_S)) is not None:
        if isinstance(event, groupsvc.Left) and event.cause is cause:
            return event
    raise AssertionError("nobody left")


async def machines(name: str, one: Used, two: Used) -> None:
    """Who joins later begins with all that was said: with the newest checkpoint, and what came after it."""
    before, after = Words(), Words()
    async with await one.join(name, machine=before, attributes=GroupAttributes(checkpoint_every=2)) as first:
        for word in (b"one", b"two", b"three"):
            await first.multicast(word)
        await first.flush()
        async with await two.join(name, machine=after, since=groupsvc.CHECKPOINT, timeout=PATIENCE_S):
            assert [b"one", b"two", b"three"] == before.words == after.words


class Words:
    """A state machine."""

    def __init__(self) -> None:
        self.words: list[bytes] = []

    def apply(self, entry: groupsvc.Message) -> None:
        self.words.append(entry.payload)

    def snapshot(self) -> list[bytes]:
        return list(self.words)

    def restore(self, blocks: Sequence[bytes]) -> None:
        self.words = list(blocks)


async def closing(driver: Driver, session: Used) -> None:
    """Told to who listens; and nothing is possible afterwards."""
    states: asyncio.Queue[SessionState] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    session.on_state(lambda state: loop.call_soon_threadsafe(states.put_nowait, state))
    if driver.is_blocking:
        poll = select.poll()
        poll.register(session.fileno(), select.POLLIN)
        assert poll.poll(PATIENCE_S * 1000), "signs of life come all the time"
        await session.dispatch()
    await session.close()
    assert SessionState.CLOSED is session.state is await states.get()
    with pytest.raises(groupsvc.UsageError, match="closed"):
        await session.groups()
