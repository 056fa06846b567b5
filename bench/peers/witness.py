"""The program of ``load`` with a memory of the order, so that three processes can be shown to have seen the same one.

The program itself finds what is missing, doubled or out of order of one sender. Two receivers that see two senders'
messages in different orders it does not find, if the service gives no numbers: here every process keeps a checksum of
who said what up to each of the first sixteen messages and each sixteenth after them, and those of the same message must
be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from ..load import Load, Notes, Program, head

EVERY = 16


class WitnessNotes(Notes):
    """Also: the checksum of the order up to the message with this number."""

    order: list[tuple[int, int]] = []


class Witness(Program):
    """The application in each process."""

    notes: WitnessNotes

    def __init__(self, me: int, load: Load, submit: Callable[[bytes], object]) -> None:
        super().__init__(me, load, submit)
        self.notes = WitnessNotes()
        self._sum = 0

    def deliver(self, seq: int, sender: int | str, payload: bytes) -> None:
        super().deliver(seq, sender, payload)
        self._sum = crc32(payload[: head.size], self._sum)
        if self._delivered <= EVERY or not self._delivered % EVERY:
            self.notes.order.append((self._delivered, self._sum))


def compared(notes: Sequence[WitnessNotes]) -> int:
    """How many messages all have, in the same order; raises if the orders differ."""
    first, *others = ([*each.order] for each in notes)
    for other in others:
        for one, two in zip(first, other, strict=False):
            if one != two:
                raise AssertionError(f"two processes saw different orders before message {one[0]}")
    return min(each.delivered[-1][1] if each.delivered else 0 for each in notes)
