"""The election of ``elections.py`` for asyncio: a leader that loses the lead is cancelled where it awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..drivers.loop_pump import LoopPump
from ..holding import HeldInTurn
from ..sansio import arguments as check
from ..sansio.contending import Line
from ..views import Provider
from .aio_locks import Lock, OnLost
from .elections import check_function
from .looking import aio_providers_of

T = TypeVar("T")


class Election:
    """An election in the hands of tasks."""

    def __init__(self, pump: LoopPump, default_timeout: float, line: Line, *, on_lost: OnLost = "cancel") -> None:
        self._pump = pump
        self._default_timeout = default_timeout
        self._line = line
        self._on_lost = on_lost

    async def run(
        self, function: Callable[[HeldInTurn[asyncio.Event]], Awaitable[T]], *, timeout: float | None = None
    ) -> T:
        """Wait until I lead, await ``function(leadership)``, and step back; gives what the function returned.

        ``TimedOut`` if I do not lead in time. If the lead is lost the function is cancelled, and ``LockLost`` raised.
        """
        check_function(function, self._line)
        wait = check.seconds(timeout, self._default_timeout)
        async with Lock(self._pump, wait, self._line, on_lost=self._on_lost) as leadership:
            return await function(leadership)

    async def candidates(self, *, timeout: float | None = None) -> tuple[Provider, ...]:
        """All who lead or want to, the leader first; asked of the daemon, so true a moment ago."""
        wait = check.seconds(timeout, self._default_timeout)
        return await aio_providers_of(self._pump, self._line.group, wait)

    async def leader(self, *, timeout: float | None = None) -> Provider | None:
        """Who leads, or is the next to lead; None if nobody wants to."""
        candidates = await self.candidates(timeout=timeout)
        return candidates[0] if candidates else None

    def __repr__(self) -> str:
        return f"<Election for {self._line.what}>"
