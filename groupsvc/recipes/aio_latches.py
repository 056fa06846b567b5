"""The latch of ``latches.py`` for asyncio."""

from __future__ import annotations

from ..drivers.loop_pump import LoopPump
from ..sansio.contending import Line, check_may_wait
from .aio_places import Place
from .latches import left_in, step_of
from .places import place_lost


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
        until = self._until(timeout)
        check_may_wait(self._line, is_callback=self._pump.is_callback)
        group = await self._opened(until)
        membership = group._membership
        is_open = await group._wait_for(lambda: not left_in(membership.view, self._count), until)
        if not is_open and membership.has_ended:
            raise place_lost(self._pump.machine, self._line, membership)
        return is_open
