"""What is sent in a measurement of the multicast, and what is read off afterwards.

The same load is put on the floor and on ours: senders with a window each (what they have submitted and not seen
delivered), messages of one size. Every process notes when it had submitted and delivered how many; the clock is the
same for all, as they run on one machine. Rates and latencies are computed from these notes when it is over.
"""

from __future__ import annotations

import bisect
import statistics
import struct
import time
from collections.abc import Sequence

import attrs
import msgspec

WARM_UP_S = 0.5
"""What happens before is not counted: connections, caches and queues are still cold."""

head = struct.Struct("!BQ")
"""How a message begins: who sent it (0, 1, 2 …) and its number there."""


class Load(msgspec.Struct, frozen=True):
    """Who sends, how much at a time, and for how long. One sender is one that does not lead."""

    senders: int
    size: int = 100
    window: int = 256
    seconds: float = 2.0

    def sends(self, process: int) -> bool:
        """Whether process 0 (the leader), 1 or 2 sends: the leader is the last to."""
        return (process - 1) % 3 < self.senders


LOADS: dict[str, Load] = {
    "one sender, 100 bytes": Load(senders=1),
    "three senders, 100 bytes": Load(senders=3),
    "one message at a time": Load(senders=1, window=1),
    "one sender, 10 kB": Load(senders=1, size=10_000),
}
"""What is measured; rates except for the window of one, where it is the time until all have delivered a message."""


class Notes(msgspec.Struct):
    """Of one process: (time, how many until then), in the order of time."""

    submitted: list[tuple[float, int]] = []
    delivered: list[tuple[float, int]] = []


@attrs.frozen
class Outcome:
    """What came out of one run."""

    rate: float  # messages per second that all processes delivered
    latencies: list[float]  # from the submission of a message to its delivery at the last process, if one sender sent

    @property
    def latency(self) -> float:
        """The median."""
        return statistics.median(self.latencies)


class Program:
    """The application in each process: sends what its window allows, and looks at everything that is delivered."""

    def __init__(self, me: int, load: Load) -> None:
        self.notes = Notes()
        self._me = me
        self._window = load.window if load.sends(me) else 0
        self._padding = bytes(load.size - head.size)
        self._n = 0
        self._expected = [1, 1, 1]
        self._delivered = 0

    @property
    def room(self) -> int:
        """How many messages may be submitted now."""
        return self._window - (self._n + 1 - self._expected[self._me]) if self._window else 0

    def fresh(self) -> list[bytes]:
        """The messages to submit now."""
        room = self.room
        if room == 0:
            return []
        first, self._n = self._n + 1, self._n + room
        self.notes.submitted.append((time.monotonic(), self._n))
        me, padding, pack = self._me, self._padding, head.pack
        return [pack(me, n) + padding for n in range(first, first + room)]

    def deliver(self, messages: Sequence[bytes]) -> None:
        """Messages in their order; raises if one is missing, doubled or out of order."""
        expected, unpack = self._expected, head.unpack_from
        for message in messages:
            who, n = unpack(message)
            if n != expected[who]:
                raise AssertionError(f"number {n} of {who} was delivered, {expected[who]} is the next")
            expected[who] = n + 1
        self._delivered += len(messages)
        self.notes.delivered.append((time.monotonic(), self._delivered))


def outcome_of(load: Load, begin: float, notes: Sequence[Notes]) -> Outcome:
    """Rate and latencies after the warm-up."""
    begin += WARM_UP_S
    end = begin + load.seconds
    rate = min(_until(each, end) - _until(each, begin) for each in notes) / load.seconds
    return Outcome(rate, _latencies(begin, end, notes) if load.senders == 1 else [])


def _until(notes: Notes, moment: float) -> int:
    position = bisect.bisect_right(notes.delivered, moment, key=lambda note: note[0])
    return notes.delivered[position - 1][1] if position else 0


def _latencies(begin: float, end: float, notes: Sequence[Notes]) -> list[float]:
    (sender,) = [each for each in notes if each.submitted]
    found = []
    for at, number in sender.submitted:
        if begin <= at < end:
            found.append(max(_when(each, number) for each in notes) - at)
    return found


def _when(notes: Notes, number: int) -> float:
    return notes.delivered[bisect.bisect_left(notes.delivered, number, key=lambda note: note[1])][0]
