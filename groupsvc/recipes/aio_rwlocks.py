"""The lock for readers and writers of ``rwlocks.py`` for asyncio."""

from __future__ import annotations

from ..drivers.loop_pump import LoopPump
from ..sansio.contending import Line
from .aio_locks import Lock, OnLost


class ReadWriteLock:
    """In the hands of tasks; each ``read()`` and ``write()`` gives a ``Lock``."""

    def __init__(
        self, pump: LoopPump, default_timeout: float, lines: tuple[Line, Line], *, on_lost: OnLost = "cancel"
    ) -> None:
        self._pump = pump
        self._default_timeout = default_timeout
        self._reading, self._writing = lines
        self._on_lost = on_lost

    def read(self) -> Lock:
        """A lock that others who read can hold, too."""
        return Lock(self._pump, self._default_timeout, self._reading, on_lost=self._on_lost)

    def write(self) -> Lock:
        """A lock that nobody else holds, to read or to write."""
        return Lock(self._pump, self._default_timeout, self._writing, on_lost=self._on_lost)

    def __repr__(self) -> str:
        return f"<ReadWriteLock in {self._reading.group}>"
