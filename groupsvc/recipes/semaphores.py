"""A semaphore: at most so many holders at a time in the whole domain, first come, first served.

    with session.semaphore("licences", 5):
        ...

The first ``permits`` in the line hold it. All who use one must say the same number: who says another one is told
``UsageError`` as long as somebody is there. A fence is larger than those of all who had left before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attributes import GroupAttributes
from ..sansio import arguments as check
from ..sansio.contending import Line
from ..views import Provider
from ..wire.limits import PROVIDERS_MAX
from .locks import Lock

if TYPE_CHECKING:
    from ..drivers.pump import Pump


def semaphore_line(name: object, permits: object) -> Line:
    """Where one stands in line for the semaphore of this name."""
    called = check.recipe_name(name, "semaphore")
    count = check.count(permits, "permits", PROVIDERS_MAX)

    def is_among_the_first(line: Sequence[Provider], me: Provider) -> bool:
        return any(provider.id == me.id for provider in line[:count])

    attributes = GroupAttributes(exclusive=True, client_version=f"semaphore of {count}")
    group = f"_semaphore/{called}"
    return Line(f"semaphore {called!r} of {count}", group, attributes, is_among_the_first, is_kept=True)


class Semaphore(Lock):
    """A semaphore in the hands of a blocking program: used as a lock is. Thread-safe."""

    def __init__(self, pump: Pump, default_timeout: float, line: Line, permits: int) -> None:
        super().__init__(pump, default_timeout, line)
        self._permits = permits

    @property
    def permits(self) -> int:
        """How many may hold it at a time."""
        return self._permits
