"""The counter of ``counters.py`` for asyncio."""

from __future__ import annotations

from .aio_places import Place
from .counters import NoneLeft, numbers, step_of


class Counter(Place):
    """A counter in the hands of tasks; an async context manager that closes."""

    async def next(self, *, timeout: float | None = None) -> int:
        """A number that nobody else has got or will get, larger than all before.

        ``OutcomeUnknown``: one may have been left out.
        """
        return (await self.take(1, timeout=timeout))[0]

    async def take(self, count: int, *, timeout: float | None = None) -> range:
        """So many numbers without a gap."""
        step, until = step_of(count, self._line), self._until(timeout)
        while True:
            try:
                return numbers(await self._change(step, until), count)
            except NoneLeft:
                await self.close()  # who comes again makes the fence larger
