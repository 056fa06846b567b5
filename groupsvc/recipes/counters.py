"""A counter of the whole domain: every number is given once, and they grow.

    with session.counter("orders") as orders:
        number = orders.next()

The last number is the state value of a group, and lasts as long as anybody has the counter open. So that no number
comes again after that, numbers are not counted from 1: they begin with the fence of the group, which grows for ever,
times ``NUMBERS_PER_FENCE``. Between two numbers there may be a gap; who needs none takes many at once with ``take``.

A, B open the counter; fence 7. A gets 7·2²⁰, B 7·2²⁰ + 1. Both close it, and C opens it later: its fence is 10 by then,
and the first number 10·2²⁰. No more than 2²⁰ numbers are given under one fence, so none of them can be C's: who needs
more leaves and comes again, which makes the fence larger.

A number is its own fence: it is larger than all that were given before it, also by counters that were closed meanwhile.
What is written with it can refuse smaller ones, and needs no other number for that.
"""

from __future__ import annotations

from ..attributes import GroupAttributes
from ..sansio import arguments as check
from ..sansio.contending import Line
from ..views import View
from .places import Place, Step

NUMBERS_PER_FENCE = 1 << 20
"""So many can be given before the membership of the group changes."""

TAKEN_MAX = 1 << 16
"""At once: a sixteenth of them."""


def counter_line(name: object) -> Line:
    """Where the counter of this name is."""
    called = check.recipe_name(name, "counter")
    return Line(f"counter {called!r}", f"_counter/{called}", GroupAttributes(client_version="counter"))


class NoneLeft(Exception):
    """There are not so many numbers under this fence."""


def step_of(count: object, line: Line) -> Step:
    """So many numbers more; the state is the last one that was given."""
    wanted = check.count(count, "count", TAKEN_MAX, group=line.group)

    def step(view: View) -> bytes:
        lowest = view.fence * NUMBERS_PER_FENCE
        last = max(lowest, int(view.state or b"0") + 1) + wanted - 1
        if last >= lowest + NUMBERS_PER_FENCE:
            raise NoneLeft
        return b"%d" % last

    return step


def numbers(last: bytes, count: int) -> range:
    """So many up to the last."""
    return range(int(last) - count + 1, int(last) + 1)


class Counter(Place):
    """A counter in the hands of a blocking program; a context manager that closes. Thread-safe."""

    def next(self, *, timeout: float | None = None) -> int:
        """A number that nobody else has got or will get, larger than all before.

        ``OutcomeUnknown``: one may have been left out.
        """
        return self.take(1, timeout=timeout)[0]

    def take(self, count: int, *, timeout: float | None = None) -> range:
        """So many numbers without a gap."""
        step, until = step_of(count, self._line), self._until(timeout)
        while True:
            try:
                return numbers(self._change(step, until), count)
            except NoneLeft:
                self.close()  # who comes again makes the fence larger
