"""What the processes of a node want in a group's stream and what it has no room for yet, in order.

A's processes propose and speak. Usually there is room, and what they say is submitted within the same step. If A is not
in the group yet, or too much of A is on its way already, it waits here, behind whatever waits already: so what one
process says first is ordered first. Who puts something in sees to it that the line stays short: a provider may have
so many messages on their way, a node so many commands (``COMMANDS_MAX``).

A proposal that still waits can be taken out again: then it certainly did not happen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import attrs

COMMANDS_MAX = 10_000
"""Batches that wait in one group on one node; whoever wants more is told that it is full."""

WAITING_BYTES_MAX = 64 * 1024 * 1024
"""The same in bytes."""

RETRY_S = 0.1
"""So often what waits is tried again, if nothing else has happened: a disk may have room again."""


@attrs.frozen(eq=False)
class Waiting:
    """Some entries that go out together, and who is told under which number the last of them was submitted."""

    bodies: Sequence[bytes]
    proposal: int = 0
    submitted: Callable[[int], None] | None = None

    @property
    def size(self) -> int:
        """In bytes."""
        return sum(map(len, self.bodies))


class Line:
    """The entries of one node for one group, from here to its submitter."""

    def __init__(self, submit: Callable[[Sequence[bytes]], int]) -> None:
        self._submit = submit
        self._waiting: deque[Waiting] = deque()
        self._bytes = 0
        self.is_open = False  # once our own insertion was delivered here

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be put in."""
        return len(self._waiting) >= COMMANDS_MAX or self._bytes >= WAITING_BYTES_MAX

    def put(
        self, bodies: Sequence[bytes], *, proposal: int = 0, submitted: Callable[[int], None] | None = None
    ) -> None:
        """Submit these, now or when there is room."""
        what = Waiting(bodies, proposal, submitted)
        if self._waiting or not self.is_open or not self._try(what):
            self._waiting.append(what)
            self._bytes += what.size

    def move(self) -> None:
        """There may be room."""
        while self.is_open and self._waiting and self._try(self._waiting[0]):
            self._bytes -= self._waiting.popleft().size

    def _try(self, what: Waiting) -> bool:
        first = self._submit(what.bodies)
        if first and what.submitted is not None:
            what.submitted(first + len(what.bodies) - 1)
        return first > 0

    def take_out(self, proposal: int) -> bool:
        """Whether this proposal still waited; it does not any more."""
        for what in self._waiting:
            if what.proposal == proposal:
                self._waiting.remove(what)
                self._bytes -= what.size
                return True
        return False
