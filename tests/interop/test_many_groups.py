"""A thousand groups in a domain of three: formed, used and left, in bounded time and memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

import groupsvc
from groupsvc import aio
from groupsvc.testing import LocalDomain

GROUPS = 1_000
PATIENCE_S = 100.0
"""For all of it together; it takes about six seconds on a quiet machine."""

PER_GROUP_KIB_MAX = 64
"""At a daemon that has members in two of three of them; 20 are what they need at rest."""

NAMES = [f"many/{number}" for number in range(GROUPS)]


def test_a_thousand_groups_are_formed_used_and_left(local_domain: LocalDomain) -> None:
    """Each has a provider on two nodes and one message; the list of groups is right at every node, before and after."""
    asyncio.run(asyncio.wait_for(scene(local_domain), PATIENCE_S))


async def scene(domain: LocalDomain) -> None:
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(aio.connect(domain.address(node), default_timeout=PATIENCE_S))
            for node in domain.names
        ]
        before = resident_kib(domain)
        firsts = await asyncio.gather(*(session.join(name) for session, name in turns(sessions, first=0)))
        seconds = await asyncio.gather(*(session.join(name, events=True) for session, name in turns(sessions, first=1)))
        for session in sessions:
            assert set(NAMES) == {info.name for info in await session.groups()}
        assert GROUPS == len({info.id for info in await sessions[0].groups()})
        ids = await asyncio.gather(*(group.multicast(group.name.encode()) for group in firsts))
        assert GROUPS == len(set(ids))
        await asyncio.gather(*(group.flush() for group in firsts))
        assert NAMES == [(await message_to(group)).decode() for group in seconds]
        for then, now in zip(before, resident_kib(domain), strict=True):
            assert now - then < GROUPS * PER_GROUP_KIB_MAX
        assert all(await asyncio.gather(*(group.leave() for group in firsts)))
        await asyncio.gather(*(group.sync() for group in seconds))
        assert {(group.me,) for group in seconds} == {group.providers for group in seconds}
        assert all(await asyncio.gather(*(group.leave() for group in seconds)))
        async with sessions[2].subscribe("_groups") as watching:
            while watching.providers:
                assert await watching.next_event(timeout=PATIENCE_S) is not None
        for session in sessions:
            assert () == await session.groups()


def turns(sessions: list[aio.Session], *, first: int) -> Iterable[tuple[aio.Session, str]]:
    """Every group with a session, node by node in turn."""
    return ((sessions[(number + first) % len(sessions)], name) for number, name in enumerate(NAMES))


async def message_to(group: aio.Group) -> bytes:
    """Its only one."""
    async for event in group.events(timeout=PATIENCE_S):
        if isinstance(event, groupsvc.Message):
            return event.payload
    raise AssertionError(f"no message came to {group.name}")


def resident_kib(domain: LocalDomain) -> list[int]:
    """The memory of each daemon."""
    page_kib = os.sysconf("SC_PAGE_SIZE") // 1024
    return [int(Path(f"/proc/{domain.pid(node)}/statm").read_text().split()[1]) * page_kib for node in domain.names]
