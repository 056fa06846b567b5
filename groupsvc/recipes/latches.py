"""A latch: it opens when it has been counted down so many times, and stays open.

    with session.latch("loaded", 3) as loaded:
        load()
        loaded.count_down()
        loaded.wait(timeout=60)

All say the same number; who says another one is told ``UsageError``. How often is left is the state value of a group,
so a latch lasts as long as anybody has it open: the one who waits should open it before the others count. To wait for
members and not for numbers there are barriers, which also tell who is missing.

A latch has no fence: to be open is final, and nobody can hold it against another. Who was asleep and finds it open is
told something that is still true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..attributes import GroupAttributes
from ..sansio import arguments as check
from ..sansio.contending import Line
from ..views import View
from .places import Place, Step

if TYPE_CHECKING:
    from ..drivers.pump import Pump

COUNT_MAX = 1_000_000
"""Each step is an entry of the group's stream: more is no work for a latch."""


def latch_line(name: object, count: object) -> Line:
    """Where the latch of this name is."""
    called = check.recipe_name(name, "latch")
    times = check.count(count, "count", COUNT_MAX)
    return Line(f"latch {called!r} of {times}", f"_latch/{called}", GroupAttributes(client_version=f"latch of {times}"))


def left_in(view: View, count: int) -> int:
    """How often it is still to be counted down."""
    return int(view.state) if view.state else count


def step_of(count: int) -> Step:
    """Once less; nothing, if it is open."""

    def step(view: View) -> bytes | None:
        left = left_in(view, count)
        return b"%d" % (left - 1) if left else None

    return step


class Latch(Place):
    """A latch in the hands of a blocking program; a context manager that closes. Thread-safe."""

    def __init__(self, pump: Pump, default_timeout: float, line: Line, count: int) -> None:
        super().__init__(pump, default_timeout, line)
        self._count = count

    @property
    def count(self) -> int:
        """How often it must be counted down in all."""
        return self._count

    def count_down(self, *, timeout: float | None = None) -> int:
        """Once less; gives how often is left. An open latch stays open."""
        return int(self._change(step_of(self._count), self._until(timeout)))

    def left(self, *, timeout: float | None = None) -> int:
        """How often it is still to be counted down, as far as is known here."""
        return left_in(self._opened(self._until(timeout)).view, self._count)

    def wait(self, timeout: float | None = None) -> bool:
        """Until it is open; False if it is not in time."""
        return self._wait_until(lambda mine: not left_in(mine.view, self._count), self._until(timeout))
