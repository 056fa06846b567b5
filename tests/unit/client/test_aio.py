"""The asyncio driver: the same machine on the program's own loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import groupsvc
from groupsvc import SessionState, Vote, aio
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket, daemon_on_a_socket

Play = Callable[[DaemonOnASocket, aio.Session], Awaitable[None]]


def play(scene: Play) -> None:
    """One scene with an open session."""

    async def run(daemon: DaemonOnASocket) -> None:
        async with asyncio.timeout(PATIENCE_S), aio.connect(daemon.address, name="test") as session:
            await scene(daemon, session)

    with daemon_on_a_socket() as daemon:
        asyncio.run(run(daemon))


async def came(daemon: DaemonOnASocket, kind: type[wire.AnyClientRequest], count: int = 1) -> wire.AnyClientRequest:
    """The newest request of a kind, as soon as there are so many."""
    found = await asyncio.get_running_loop().run_in_executor(None, daemon.wait_for, kind, count)
    return found[-1]


def test_who_is_suspended_does_not_believe_that_it_leads() -> None:
    """K2: who is oldest is known as it was; but nobody vouches for it."""

    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        async with session.join("db", events=True) as group:
            assert group.is_oldest
            for said, kind, good_for in (("suspended", groupsvc.Suspended, 0.0), ("resumed", groupsvc.Resumed, 10.0)):
                daemon.memory.good_for = good_for
                daemon.tell(wire.SessionNews(said, ""))  # type: ignore[arg-type]
                async for event in group.events(timeout=PATIENCE_S):
                    if isinstance(event, kind):
                        break
                assert ((said == "resumed"), group.me) == (group.is_oldest, group.oldest)

    play(scene)


def test_join_propose_read_leave() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        assert ("n1", "n1/7/5", SessionState.CONNECTED) == (session.node, session.id, session.state)
        async with session.join("db", name="alpha", events=True) as group:
            assert group.is_oldest
            assert (await group.propose_state(b"x", if_version=0)).approved
            with pytest.raises(groupsvc.StaleVersion):
                await group.propose_state(b"y", if_version=0)
            kinds = [type(event).__name__ async for event in group.events(timeout=0)]
            assert ["Joined", "StateChanged", "Approved"] == kinds
            assert await group.next_event(timeout=0.01) is None
        assert isinstance(daemon.memory.requests[-1], wire.LeaveAsk)

    play(scene)


def test_what_is_entered_can_be_awaited() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        group = await session.join("db")
        watcher = await session.subscribe("db")
        assert group.view.providers == watcher.view.providers
        await watcher.close()
        await group.goodbye()
        other = await aio.connect(daemon.address)
        await other.close()
        await other.close()
        with pytest.raises(groupsvc.UsageError, match="closed"):
            await other.groups()

    play(scene)


def test_messages_of_one_turn_of_the_loop_go_together_and_come_back_in_order() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        group = await session.join("db", events=True)
        for number in range(3000):
            group.multicast_nowait(b"%d" % number)
        await group.flush()
        assert len([one for one in daemon.memory.requests if isinstance(one, wire.Multicast)]) < 10
        for number in range(3000, 10_000):
            await group.multicast(b"%d" % number)
        await group.flush()
        found = [event.payload async for event in group.events(timeout=0) if isinstance(event, groupsvc.Message)]
        assert [b"%d" % number for number in range(10_000)] == found

    play(scene)


def test_too_many_on_their_way() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        group = await session.join("db")
        for _ in range(groupsvc.limits.outstanding_max):
            group.multicast_nowait(b"x")
        with pytest.raises(groupsvc.WouldBlock):
            group.multicast_nowait(b"x")

    play(scene)


@pytest.mark.parametrize("kind", ["plain", "coroutine", "later", "raises", "no vote"])
def test_on_proposal(kind: str) -> None:
    def plain(proposal: groupsvc.Proposal) -> Vote:
        return Vote.REJECT

    async def coroutine(proposal: groupsvc.Proposal) -> Vote:
        await asyncio.get_running_loop().run_in_executor(None, len, ())
        return Vote.REJECT

    def later(proposal: groupsvc.Proposal) -> None:
        threading.Thread(target=lambda: proposal.vote(Vote.REJECT)).start()

    def raises(proposal: groupsvc.Proposal) -> Vote:
        raise ZeroDivisionError

    def no_vote(proposal: groupsvc.Proposal) -> object:
        return True

    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        callbacks = {"plain": plain, "coroutine": coroutine, "later": later, "raises": raises, "no vote": no_vote}
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
        await session.join("db", on_proposal=callbacks[kind])  # type: ignore[arg-type]
        daemon.tell(daemon.memory.opened(1))
        vote = await came(daemon, wire.CastVote)
        assert isinstance(vote, wire.CastVote)
        assert (None if kind in ("raises", "no vote") else "reject") == vote.vote
        expected = {"raises": [ZeroDivisionError], "no vote": [TypeError]}
        assert expected.get(kind, []) == [type(error) for error in reported]

    play(scene)


def test_what_is_said_with_a_vote_and_denied_is_reported_and_no_vote() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        reported: asyncio.Queue[object] = asyncio.Queue()
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: reported.put_nowait(context["exception"])
        )
        await session.join("db", on_proposal=lambda proposal: groupsvc.Answer(Vote.APPROVE, message=b"mine"))
        daemon.tell(daemon.memory.opened(1))
        cast = await came(daemon, wire.CastVote)
        assert isinstance(cast, wire.CastVote)
        daemon.tell(wire.Problem(cast.id, "failed", "permission denied", "no rule allows it"))
        assert isinstance(await reported.get(), groupsvc.PermissionDenied)
        again = await came(daemon, wire.CastVote, 2)
        assert isinstance(again, wire.CastVote)
        assert again.vote is None

    play(scene)


def test_a_callback_that_waited_for_something_cancelled_has_failed_and_the_next_is_asked() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)

        async def cancelled(state: SessionState) -> None:
            await vote_of_another()

        async def vote_of_another(proposal: groupsvc.Proposal | None = None) -> Vote:
            other: asyncio.Future[Vote] = asyncio.get_running_loop().create_future()
            other.cancel()
            return await other

        answers = iter([vote_of_another, lambda proposal: Vote.REJECT])
        session.on_state(cancelled)
        await session.join("db", on_proposal=lambda proposal: next(answers)(proposal))  # type: ignore[no-any-return]
        daemon.tell(wire.SessionNews("suspended", "no lease"))
        for count in (1, 2):
            daemon.tell(daemon.memory.opened(1))
            await came(daemon, wire.CastVote, count)
        assert [None, "reject"] == [one.vote for one in daemon.memory.requests if isinstance(one, wire.CastVote)]

    play(scene)


def test_a_callback_may_call_but_not_propose() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        found: list[object] = []

        async def vote(proposal: groupsvc.Proposal) -> Vote:
            found.append(await group.sync())
            try:
                await group.propose_state(b"x")
            except groupsvc.UsageError as error:
                found.append(error)
            return Vote.APPROVE

        group = await session.join("db", on_proposal=vote)
        daemon.tell(daemon.memory.opened(1))
        await came(daemon, wire.CastVote)
        assert isinstance(found[1], groupsvc.UsageError)

    play(scene)


def test_a_cancelled_call_leaves_the_session_as_it_was() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        daemon.memory.script = lambda request: [] if isinstance(request, wire.JoinAsk) else None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await session.join("db")
        ask = daemon.memory.requests[-1]
        daemon.memory.script = None
        daemon.tell(*daemon.memory.answers(ask))
        await came(daemon, wire.GoodbyeAsk)
        assert () == await session.groups()

    play(scene)


def test_broken_connections_lose_nothing() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        group = await session.join("db", events=True)
        for number in range(5):
            daemon.server.cut()
            assert (await group.propose_state(b"%d" % number)).approved
        changed = [event.value async for event in group.events(timeout=0) if isinstance(event, groupsvc.StateChanged)]
        assert [b"0", b"1", b"2", b"3", b"4"] == changed

    play(scene)


def test_a_daemon_that_forgot_us_and_states_are_told() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        states: asyncio.Queue[SessionState] = asyncio.Queue()
        session.on_state(states.put)
        group = await session.join("db", events=True)
        held = group.held(group.fence)
        held.check()
        daemon.memory.knows_the_session = False
        daemon.server.cut()
        assert ["Joined", "Suspended", "Lost"] == [type(event).__name__ async for event in group.events()]
        await held.lost.wait()
        with pytest.raises(groupsvc.Lost):
            held.check()
        assert SessionState.SUSPENDED is await states.get()
        assert SessionState.LOST is await states.get()
        await session.close()
        assert SessionState.CLOSED is await states.get()

    play(scene)


def test_many_tasks_at_once_and_all_events_in_one_iterator() -> None:
    async def scene(daemon: DaemonOnASocket, session: aio.Session) -> None:
        merged = session.events()
        one, two = await session.join("one"), await session.join("two")
        outcomes = await asyncio.gather(*(group.propose_state(b"x") for group in (one, two) for _ in range(50)))
        assert all(outcomes)
        found = [(await anext(merged)).group for _ in range(202)]
        assert 101 == found.count("one") == found.count("two")
        with pytest.raises(groupsvc.UsageError, match=r"session\.events\(\)"):
            await one.next_event()

    play(scene)


def test_another_loop_is_told_so() -> None:
    with daemon_on_a_socket() as daemon:
        first = asyncio.new_event_loop()

        async def connect() -> aio.Session:
            return await aio.connect(daemon.address)

        async def use(session: aio.Session) -> None:
            with pytest.raises(groupsvc.UsageError, match="another event loop"):
                await session.join("db")
            with pytest.raises(groupsvc.UsageError, match="the loop it was connected on"):
                await session.close()

        session = first.run_until_complete(connect())
        asyncio.run(use(session))
        first.run_until_complete(session.close())
        first.close()


def test_no_daemon(tmp_path: Path) -> None:
    async def connect() -> None:
        await aio.connect(f"ipc://{tmp_path}/none.sock")

    with pytest.raises(groupsvc.DaemonUnreachable, match="groupsvc dev"):
        asyncio.run(connect())
