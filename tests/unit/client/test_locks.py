"""Locks of both drivers with a daemon in memory: what real daemons show seldom, or not at a moment of our choice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import groupsvc
from groupsvc import aio
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices
from tests.unit.client.daemon_in_memory import FakeGroup
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket, daemon_on_a_socket
from tests.unit.client.test_signals import TooLong, handler, ring

OTHER = notices.Provider(("n9", 1, 1), "other", b"", 1)


def held_by_another(daemon: DaemonOnASocket) -> FakeGroup:
    """The group of lock "a", with somebody who was there before."""
    group = daemon.memory.groups["_lock/a"] = FakeGroup()
    group.seq, group.providers[0] = 1, OTHER
    return group


def left(daemon: DaemonOnASocket, group: FakeGroup, member: int, *who: notices.Provider) -> wire.Told:
    """These have left: what a member is told of it."""
    group.seq += 1
    group.fence += 1
    for one in who:
        group.providers = {number: provider for number, provider in group.providers.items() if provider is not one}
    return wire.Told(member, notices.Left(group.seq, tuple(one.id for one in who), "goodbye", group.fence))


@pytest.fixture(autouse=True)
def no_keepers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps a line joins and leaves, too; here it would only be in the way of counting."""
    monkeypatch.setattr("groupsvc.sansio.contending.Keeper.look", lambda *_: None)


def in_line(daemon: DaemonOnASocket) -> int:
    """How many were let in and have not said goodbye."""
    requests = daemon.memory.requests
    return sum(isinstance(one, wire.JoinAsk) for one in requests) - sum(
        isinstance(one, wire.GoodbyeAsk) for one in requests
    )


def test_the_lock_is_an_exclusive_group_and_its_fence_that_of_the_view_in_which_it_was_my_turn(
    daemon: DaemonOnASocket, session: groupsvc.Session
) -> None:
    group = held_by_another(daemon)
    lock = session.lock("a")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lock.acquire, PATIENCE_S)
        (ask,) = daemon.wait_for(wire.JoinAsk)
        assert isinstance(ask, wire.JoinAsk)
        assert {"exclusive": True, "client_version": "lock"} == ask.attributes
        daemon.wait_for(wire.SessionAlive)
        assert not waiting.done()
        daemon.tell(left(daemon, group, 1, OTHER))
        assert waiting.result(PATIENCE_S)
    assert group.fence == lock.fence
    lock.release()
    daemon.wait_for(wire.GoodbyeAsk)


def test_nobody_is_told_that_it_is_his_turn_while_nobody_vouches_for_it(daemon: DaemonOnASocket) -> None:
    """etcd's: the lock came back after the lease had died."""
    daemon.memory.good_for = 0.0
    with groupsvc.connect(daemon.address) as session:
        assert session.lock("a").acquire(timeout=0.3) is False
        daemon.wait_for(wire.GoodbyeAsk)
        assert 0 == in_line(daemon)


def test_who_is_late_because_nobody_vouches_for_the_line_is_not_told_that_others_hold_it(
    daemon: DaemonOnASocket,
) -> None:
    daemon.memory.good_for = 0.0
    with (
        groupsvc.connect(daemon.address, default_timeout=0.2) as session,
        pytest.raises(groupsvc.TimedOut, match=r"within 0\.2 s; nobody could say whose turn it is"),
        session.lock("a"),
    ):
        pass


def test_who_tries_has_what_is_free_and_waits_for_no_holder(daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
    assert session.lock("b").try_acquire() is True
    held_by_another(daemon)
    lock = session.lock("a")
    assert lock.try_acquire(PATIENCE_S) is False
    assert not lock.is_held
    daemon.wait_for(wire.GoodbyeAsk)
    assert 1 == in_line(daemon)


def test_who_tries_is_not_told_that_others_hold_what_nobody_vouches_for(daemon: DaemonOnASocket) -> None:
    daemon.memory.good_for = 0.0
    with groupsvc.connect(daemon.address) as session:
        with pytest.raises(groupsvc.TimedOut, match=r"nobody said within 0.2 s whether lock 'a' is free"):
            session.lock("a").try_acquire(timeout=0.2)
        daemon.wait_for(wire.GoodbyeAsk)
        assert 0 == in_line(daemon)


def test_in_asyncio_who_tries_waits_for_no_holder(daemon: DaemonOnASocket) -> None:
    async def story() -> None:
        async with aio.connect(daemon.address) as session:
            assert await session.lock("b").try_acquire() is True
            assert await session.lock("a").try_acquire(PATIENCE_S) is False

    held_by_another(daemon)
    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))


def test_a_broken_connection_that_comes_back_costs_nothing(daemon: DaemonOnASocket, session: groupsvc.Session) -> None:
    """SUSPENDED, then RESUMED: the same fence, never lost; and who waited waits on."""
    states: list[str] = []
    again = threading.Event()

    @session.on_state
    def hear(state: groupsvc.SessionState) -> None:
        states.append(state.name)
        if state is groupsvc.SessionState.CONNECTED:
            again.set()

    with session.lock("a") as held, ThreadPoolExecutor(1) as pool:
        fence = held.fence
        waiting = pool.submit(session.lock("a").acquire, PATIENCE_S)
        daemon.wait_for(wire.JoinAsk, 2)
        daemon.server.cut()
        assert again.wait(PATIENCE_S)
        held.check()
        assert (fence, False) == (held.fence, held.lost.is_set())
        assert not waiting.done()
        group = daemon.memory.groups["_lock/a"]
        daemon.tell(left(daemon, group, 2, group.providers[1]))
        assert waiting.result(PATIENCE_S)
    assert ["SUSPENDED", "CONNECTED"] == states


def test_an_alarm_at_any_moment_of_an_acquire_leaves_nobody_in_the_line() -> None:
    chance = random.Random(7)
    with daemon_on_a_socket() as daemon, groupsvc.connect(daemon.address) as session:
        held_by_another(daemon)
        hits = 0
        with handler(signal.SIGALRM, ring):
            while hits < 150:
                try:
                    signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.004))
                    session.lock("a").acquire(timeout=PATIENCE_S)
                except TooLong:
                    hits += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        session.groups()  # what was said before it has been heard
        asked = len(daemon.wait_for(wire.JoinAsk))
        daemon.wait_for(wire.GoodbyeAsk, asked)
        assert 0 == in_line(daemon)


async def one_turn() -> None:
    """Of the loop: everybody else has his turn."""
    loop = asyncio.get_running_loop()
    turn: asyncio.Future[None] = loop.create_future()
    loop.call_soon(turn.set_result, None)
    await turn


def test_a_task_cancelled_at_any_moment_leaves_nobody_in_the_line() -> None:
    async def story() -> None:
        async with aio.connect(daemon.address) as session:
            for steps in range(150):
                task = asyncio.create_task(session.lock("a").acquire(timeout=PATIENCE_S))
                for _ in range(steps % 50):
                    await one_turn()
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await session.groups()

    with daemon_on_a_socket() as daemon:
        held_by_another(daemon)
        asyncio.run(asyncio.wait_for(story(), PATIENCE_S))
        asked = sum(isinstance(one, wire.JoinAsk) for one in daemon.memory.requests)
        daemon.wait_for(wire.GoodbyeAsk, asked)
        assert 0 == in_line(daemon)


def test_a_forked_child_neither_has_nor_releases_the_lock_of_its_parent(
    daemon: DaemonOnASocket, session: groupsvc.Session
) -> None:
    lock = session.lock("a")
    with lock:
        child = os.fork()
        if not child:
            found = 0
            for call in (lock.check, lock.release, lock.acquire):
                try:
                    call()
                except groupsvc.UsageError:
                    found += 1
            os._exit(found)
        assert 3 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        lock.check()
        assert not [one for one in daemon.memory.requests if isinstance(one, wire.GoodbyeAsk)]


def test_the_holder_is_told_of_its_end_and_the_next_block_begins_anew(
    daemon: DaemonOnASocket, session: groupsvc.Session
) -> None:
    lock = session.lock("a")

    def hold() -> None:
        with lock as held:
            daemon.tell(wire.MemberLost(1, dissolved=False, reason="the node was cut off"))
            assert held.lost.wait(PATIENCE_S)

    with pytest.raises(groupsvc.LockLost, match=r"lock 'a' was lost while it was held \(the node was cut off\)"):
        hold()
    daemon.memory.groups.clear()
    with lock as held:
        held.check()


def test_a_holder_is_told_by_its_own_clock_that_nobody_vouches_for_it(
    daemon: DaemonOnASocket, session: groupsvc.Session
) -> None:
    """Its daemon says nothing bad; it only stops saying that all is well."""
    with session.lock("a") as held:
        assert not held.suspended.is_set()
        daemon.memory.good_for = 0.001
        assert held.suspended.wait(PATIENCE_S)
        assert not held.lost.is_set()
        assert session.lock("b").acquire(timeout=0.2) is False
        daemon.memory.good_for = 10.0
        until_not_set(held.suspended)
        held.check()


def until_not_set(event: threading.Event) -> None:
    """Nothing waits for that; so ask, for a while."""
    until = time.monotonic() + PATIENCE_S
    while event.is_set():
        assert time.monotonic() < until
