"""Loops that end, tasks that are cancelled, processes that fork: nobody is left waiting."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import pytest

import groupsvc
from groupsvc import MANUAL, Vote, aio
from groupsvc.drivers import loop_pump
from groupsvc.testing.scripted_daemon import ScriptedDaemon
from groupsvc.wire import client_messages as wire
from tests.unit.client.daemon_on_a_socket import PATIENCE_S, DaemonOnASocket, daemon_on_a_socket


async def proposed(daemon: DaemonOnASocket) -> tuple[aio.Session, groupsvc.Proposal]:
    """A session, and a phase that waits for its vote."""
    session = await aio.connect(daemon.address)
    group = await session.join("db", on_proposal=MANUAL, events=True)
    daemon.tell(daemon.memory.opened(1))
    async for event in group.events():
        if isinstance(event, groupsvc.Proposed):
            return session, event.proposal
    raise AssertionError("it ended")


def voted_elsewhere(proposal: groupsvc.Proposal) -> BaseException | None:
    """What comes of it on another thread."""
    found: list[BaseException | None] = []

    def vote() -> None:
        try:
            proposal.vote(Vote.REJECT)
            found.append(None)
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=vote, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert found, "it waits for ever"
    return found[0]


def test_a_vote_on_a_loop_that_stands_still_is_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_pump, "VOTE_S", 0.05)
    loop = asyncio.new_event_loop()
    with daemon_on_a_socket() as daemon:
        session, proposal = loop.run_until_complete(proposed(daemon))
        error = voted_elsewhere(proposal)
        assert isinstance(error, groupsvc.TimedOut)
        assert "its event loop" in str(error)
        loop.run_until_complete(session.groups())
        assert not [one for one in daemon.memory.requests if isinstance(one, wire.CastVote)], "certainly not cast"
        loop.run_until_complete(session.close())
    loop.close()


def test_a_vote_on_a_loop_that_was_closed_has_failed() -> None:
    loop = asyncio.new_event_loop()
    with daemon_on_a_socket() as daemon:
        session, proposal = loop.run_until_complete(proposed(daemon))
        loop.run_until_complete(session.close())
        loop.close()
        error = voted_elsewhere(proposal)
    assert isinstance(error, groupsvc.Failed)
    assert "its event loop is closed" in str(error)


def test_a_forked_child_cannot_vote_for_its_parent() -> None:
    async def scene() -> int:
        session, proposal = await proposed(daemon)
        pid = os.fork()
        if not pid:
            try:
                proposal.vote(Vote.REJECT)
            except groupsvc.UsageError:
                os._exit(0)
            finally:
                os._exit(1)
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        await session.close()
        return ended

    with daemon_on_a_socket() as daemon:
        assert 0 == asyncio.run(scene())
        assert not [one for one in daemon.memory.requests if isinstance(one, wire.CastVote)]


def test_connecting_that_was_cancelled_holds_up_nobody() -> None:
    async def connect(address: str) -> None:
        async with asyncio.timeout(0.05):
            await aio.connect(address, timeout=60.0)

    with ScriptedDaemon(lambda request: None, greets=False) as silent:
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            asyncio.run(connect(silent.address))
        assert time.monotonic() - began < PATIENCE_S


def test_who_reads_a_group_that_was_left_ends_also_if_the_daemon_is_silent() -> None:
    async def scene() -> None:
        session = await aio.connect(daemon.address, default_timeout=0.1)
        group = await session.join("db", events=True)
        assert isinstance(await group.next_event(), groupsvc.Joined)
        reader = asyncio.ensure_future(group.next_event())
        await asyncio.wait((reader,), timeout=0.05)
        daemon.memory.handle = lambda request: []  # type: ignore[method-assign]
        with pytest.raises(groupsvc.OutcomeUnknown):
            await group.goodbye()
        assert await asyncio.wait_for(reader, PATIENCE_S) is None
        await session.close()

    with daemon_on_a_socket(good_for=0.0) as daemon:
        asyncio.run(scene())
