"""A lock for readers and writers: many may read at a time, who writes is alone.

    table = session.rwlock("table")
    with table.read():
        ...
    with table.write() as held:
        ...

One line for both. A writer has its turn when it is the first; a reader, when no writer stands in front of it. So a
writer waits only for those who came before it, and no stream of readers can keep it out. Who reads and wants to write
must stop reading first: its own read stands in front of it, and ``acquire`` returns False when the time is up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attributes import GroupAttributes
from ..sansio import arguments as check
from ..sansio.contending import Line, is_first
from ..views import Provider
from .locks import Lock

if TYPE_CHECKING:
    from ..drivers.pump import Pump

READS, WRITES = b"read", b"write"


def rwlock_lines(name: object) -> tuple[Line, Line]:
    """The line as one stands in it to read, and to write."""
    called = check.recipe_name(name, "rwlock")
    group, attributes = f"_rwlock/{called}", GroupAttributes(exclusive=True, client_version="rwlock")
    reading = Line(f"rwlock {called!r} for reading", group, attributes, is_behind_no_writer, READS, is_kept=True)
    return reading, Line(f"rwlock {called!r} for writing", group, attributes, is_first, WRITES, is_kept=True)


def is_behind_no_writer(line: Sequence[Provider], me: Provider) -> bool:
    """Readers take turns together."""
    for provider in line:
        if provider.id == me.id:
            return True
        if provider.data != READS:
            return False
    return False


class ReadWriteLock:
    """In the hands of a blocking program; each ``read()`` and ``write()`` gives a ``Lock``."""

    def __init__(self, pump: Pump, default_timeout: float, lines: tuple[Line, Line]) -> None:
        self._pump = pump
        self._default_timeout = default_timeout
        self._reading, self._writing = lines

    def read(self) -> Lock:
        """A lock that others who read can hold, too."""
        return Lock(self._pump, self._default_timeout, self._reading)

    def write(self) -> Lock:
        """A lock that nobody else holds, to read or to write."""
        return Lock(self._pump, self._default_timeout, self._writing)

    def __repr__(self) -> str:
        return f"<ReadWriteLock in {self._reading.group}>"
