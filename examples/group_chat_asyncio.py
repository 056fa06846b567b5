"""The chat of ``group_chat.py`` with asyncio: the same names, with await, async with and async for."""

from __future__ import annotations

import asyncio

from groupsvc import Message, aio
from groupsvc.testing import LocalDomain

PEOPLE = {"anna": "n1", "bert": "n2", "carl": "n3"}
LINES_EACH = 3


async def main() -> None:
    """All talk at once, then the transcripts are compared."""
    with LocalDomain(nodes=3) as domain:
        everybody_is_here = asyncio.Barrier(len(PEOPLE))
        chats = [chat(name, domain.address(node), everybody_is_here) for name, node in PEOPLE.items()]
        transcripts = await asyncio.gather(*chats)

    print("what anna has read:")
    print("\n".join(f"  {line}" for line in transcripts[0]))
    for name, transcript in zip(PEOPLE, transcripts, strict=True):
        print(f"{name} has read {len(transcript)} lines, the same in the same order: {transcript == transcripts[0]}")


async def chat(name: str, address: str, everybody_is_here: asyncio.Barrier) -> list[str]:
    """One person: come, talk, read until everybody's last line has come."""
    async with aio.connect(address) as session, session.join("chat", name=name, events=True) as group:
        await everybody_is_here.wait()
        for number in range(1, LINES_EACH + 1):
            await group.multicast(f"line {number} of {name}".encode())
        found: list[str] = []
        async for event in group.events(timeout=10):
            if isinstance(event, Message) and event.sender is not None:
                found.append(f"{event.sender.name}: {event.payload.decode()}")
                if len(found) == LINES_EACH * len(PEOPLE):
                    break
        await everybody_is_here.wait()
        return found


if __name__ == "__main__":
    asyncio.run(main())
