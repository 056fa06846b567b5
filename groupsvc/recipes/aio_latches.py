"""The latch of ``latches.py`` for asyncio."""

from __future__ import annotations

from ..drivers.loop_pump import LoopPump
from ..sansio.contending import Line
from .aio_places import Place
from .latches import left_in, step_of


class Latch(Place):
    """A latch in the hands of tasks; an async context manager that closes."""

    def __init__(self, pump: LoopPump, default_timeout: float, line: Line, count: int) -> None:
        super().__init__(pump, default_timeout, line)
        self._count = count

    @property
    def count(self) -> int:
        """How often it must be counted down in all."""
        return self._count

    async def count_down(self, *, timeout: float | None = None) -> int:
        """Once less; gives how often is left. An open latch stays open."""
        return int(await self._change(step_of(self._count), self._until(timeout)))

    async def left(self, *, timeout: float | None = None) -> int:
        """How often it is still to be counted down, as far as is known here."""
        return left_in((await self._opened(self._until(timeout))).view, self._count)

    async def wait(self, timeout: float | None = None) -> bool:
        """Until it is open; False if it is not in time."""
        return await self._wait_until(lambda mine: not left_in(mine.view, self._count), self._until(timeout))
