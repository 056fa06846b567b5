"""The semaphore of ``semaphores.py`` for asyncio."""

from __future__ import annotations

from ..drivers.loop_pump import LoopPump
from ..sansio.contending import Line
from .aio_locks import Lock, OnLost


class Semaphore(Lock):
    """A semaphore in the hands of tasks: used as a lock is."""

    def __init__(
        self, pump: LoopPump, default_timeout: float, line: Line, permits: int, *, on_lost: OnLost = "cancel"
    ) -> None:
        super().__init__(pump, default_timeout, line, on_lost=on_lost)
        self._permits = permits

    @property
    def permits(self) -> int:
        """How many may hold it at a time."""
        return self._permits
