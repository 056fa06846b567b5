"""One story for both drivers: calls of the blocking one are awaited as well, and every name that is used is remembered.

    driver = Driver(groupsvc.connect)                      # or aio.connect
    async with await driver.connect(address) as session:
        group = await session.join("db")
        async for event in group.events(timeout=1.0): ...

A blocking call runs on a thread of its own, as in a program that has threads.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any

import groupsvc
from groupsvc import aio

NAMES = (
    "Session",
    "Group",
    "Subscription",
    "Barrier",
    "Lock",
    "ReadWriteLock",
    "Election",
    "Counter",
    "Latch",
    "Party",
)
BLOCKING = tuple(getattr(groupsvc, name) for name in NAMES)
WRAPPED = (*BLOCKING, *(getattr(aio, name) for name in NAMES))
MADE_WITHOUT_ASKING = {
    "barrier", "lock", "rwlock", "semaphore", "election", "counter", "latch", "party", "read", "write"
}  # fmt: skip
DOES_NOT_WAIT = {"on_state", "multicast_nowait", "held", "fileno", "check"}


class Used:
    """A session, a group, or what they make, and the names of it that were used."""

    def __init__(self, it: Any, names: set[tuple[str, str]]) -> None:
        self._it = it
        self._names = names

    def __getattr__(self, name: str) -> Any:
        self._names.add((type(self._it).__name__, name))
        found = getattr(self._it, name)
        if name in MADE_WITHOUT_ASKING:
            return lambda *given, **named: Used(found(*given, **named), self._names)
        if not inspect.ismethod(found) or name in DOES_NOT_WAIT:
            return found
        return lambda *given, **named: self._call(found, given, named)

    def _call(self, method: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if method.__name__ == "events":
            events = method(*given, **named)
            return _in_threads(events) if isinstance(events, Iterator) else events
        return self._awaited(method, given, named)

    async def _awaited(self, method: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if isinstance(self._it, BLOCKING):
            found = await asyncio.to_thread(method, *given, **named)
        else:
            found = await method(*given, **named)
        return Used(found, self._names) if isinstance(found, WRAPPED) else found

    async def __aenter__(self) -> Any:
        it: Any = self._it
        entered = await (asyncio.to_thread(it.__enter__) if isinstance(it, BLOCKING) else it.__aenter__())
        return self if entered is self._it else entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        it: Any = self._it
        if isinstance(it, BLOCKING):
            await asyncio.to_thread(it.__exit__, kind, error, trace)
        else:
            await it.__aexit__(kind, error, trace)


async def _in_threads(events: Iterator[groupsvc.Event]) -> AsyncIterator[groupsvc.Event]:
    while (event := await asyncio.to_thread(next, events, None)) is not None:
        yield event


class Driver:
    """One of the two."""

    def __init__(self, connect: Any) -> None:
        self.is_blocking = connect is groupsvc.connect
        self.names: set[tuple[str, str]] = set()

    async def connect(self, address: str, **options: Any) -> Used:
        """A session."""
        if self.is_blocking:
            return Used(await asyncio.to_thread(groupsvc.connect, address, **options), self.names)
        return Used(await aio.connect(address, **options), self.names)

    def callback(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The same, as this driver's programs would write it."""

        async def awaited(argument: Any) -> Any:
            return function(argument)

        return function if self.is_blocking else awaited
