"""What is sent in a measurement of the multicast, and what is read off afterwards.

The same load and the same program are put on the floor and on ours. The program is what an application is to a
multicast: it submits messages one by one, each by a call of its own, until its window (what it has submitted and not
seen delivered) is full, and it is handed every delivered message by a call of its own, with number, sender and payload.
How many of them travel together is the business of what lies below.

Every process notes when it had submitted and delivered how many; the clock is the same for all, as they run on one
machine. Rates and latencies are computed from these notes when it is over.
"""

from __future__ import annotations

import bisect
import math
import statistics
import struct
import time
from array import array
from collections.abc import Callable, Sequence

import attrs
import msgspec

WARM_UP_S = 0.5
"""What happens before is not counted: connections, caches and queues are still cold."""

AFTER_S = 0.3
"""The processes go on for so long after what is measured, so that nobody measures how the others end."""

PROCESSES_MAX = 16

head = struct.Struct("!BQ")
"""How a payload begins: who sent it (0, 1, 2 …) and its number there."""


class Load(msgspec.Struct, frozen=True):
    """Who sends, how much at a time, and for how long. One sender is one that does not lead."""

    senders: int
    size: int = 100
    window: int = 256
    seconds: float = 2.0
    count: int = 0  # each sender ends after so many; 0: it is told when to

    def sends(self, process: int) -> bool:
        """Whether process 0 (the leader), 1 or 2 sends: the leader is the last to."""
        return (process - 1) % 3 < self.senders


class Notes(msgspec.Struct):
    """Of one process: (time, how many until then), in the order of time."""

    submitted: list[tuple[float, int]] = []
    delivered: list[tuple[float, int]] = []


class Program:
    """The application in each process."""

    def __init__(self, me: int, load: Load, submit: Callable[[bytes], object]) -> None:
        self.notes = Notes()
        self.is_sending = False
        self._me = me
        self._submit = submit
        self._window = load.window
        self._last = load.count or 1 << 62
        self._padding = bytes(load.size - head.size)
        self._n = 0
        self._expected = [1] * PROCESSES_MAX
        self._seq = 0
        self._delivered = 0

    def begin_after(self, seq: int) -> None:
        """The next entry is the one after ``seq``."""
        self._seq = seq

    @property
    def delivered(self) -> int:
        """How many messages were handed up."""
        return self._delivered

    @property
    def outstanding(self) -> int:
        """How many of our own messages were submitted and not delivered."""
        return self._n + 1 - self._expected[self._me]

    def fill(self) -> None:
        """Submit one message after the other until the window is full."""
        if not self.is_sending or self.outstanding >= self._window or self._n >= self._last:
            return
        me, padding, submit, pack = self._me, self._padding, self._submit, head.pack
        while self.outstanding < self._window and self._n < self._last:
            self._n += 1
            submit(pack(me, self._n) + padding)
        self.notes.submitted.append((time.monotonic(), self._n))

    def deliver(self, seq: int, sender: int | str, payload: bytes) -> None:
        """The message with number ``seq``; raises if one is missing, doubled or out of order."""
        who, n = head.unpack_from(payload)
        if seq != self._seq + 1 or n != self._expected[who]:
            raise AssertionError(
                f"{seq} from {sender} is number {n} of {who};"
                f" {self._seq + 1} and number {self._expected[who]} should come next"
            )
        self._seq = seq
        self._expected[who] = n + 1
        self._delivered += 1

    def skip(self, seq: int) -> None:
        """The entry with number ``seq`` is none of the application's."""
        if seq != self._seq + 1:
            raise AssertionError(f"{seq} came, {self._seq + 1} should come next")
        self._seq = seq

    def note(self) -> None:
        """Everything that is there now was handed up."""
        self.notes.delivered.append((time.monotonic(), self._delivered))


SENDER_SHIFT = 56
"""In a recorded order: sender + 1 above it, its number below."""


def sender_of(recorded: int) -> int:
    """Who sent this entry of a recorded order, which is one of the application's."""
    return (recorded >> SENDER_SHIFT) - 1


class RecordingProgram(Program):
    """Also keeps the whole order, for comparison with that of others; entries that are not the application's are 0."""

    def __init__(self, me: int, load: Load, submit: Callable[[bytes], object]) -> None:
        super().__init__(me, load, submit)
        self.order = array("Q")
        self.first_seq = 1

    def begin_after(self, seq: int) -> None:
        super().begin_after(seq)
        self.first_seq = seq + 1

    def deliver(self, seq: int, sender: int | str, payload: bytes) -> None:
        super().deliver(seq, sender, payload)
        who, n = head.unpack_from(payload)
        self.order.append(who + 1 << SENDER_SHIFT | n)

    def skip(self, seq: int) -> None:
        super().skip(seq)
        self.order.append(0)


class Ledger(RecordingProgram):
    """A machine whose state is the whole order: whoever joins, or comes back, has all of it from the first entry on."""

    def snapshot(self) -> bytes:
        """Everything up to here."""
        return msgspec.msgpack.encode((self._delivered, self._expected, self.order.tobytes()))

    def restore(self, seq: int, state: bytes) -> None:
        """Everything up to ``seq``, as another one has it."""
        self._delivered, self._expected, order = msgspec.msgpack.decode(state, type=tuple[int, list[int], bytes])
        self.order = array("Q")
        self.order.frombytes(order)
        self._seq = seq


@attrs.frozen
class Outcome:
    """What came out of one run."""

    rate: float  # messages per second that all processes delivered
    cost: float  # seconds of processor time per message, of all processes together
    latencies: list[float]  # from the submission of a message to its delivery at the last process, if one sender sent

    @property
    def latency(self) -> float:
        """The median."""
        return statistics.median(self.latencies)


def measured_time(load: Load, began: float) -> tuple[float, float]:
    """From when to when the processes are looked at, if they began to send at ``began``."""
    return began + WARM_UP_S, began + WARM_UP_S + load.seconds


def outcome_of(load: Load, began: float, notes: Sequence[Notes], spent_s: float) -> Outcome:
    """What the notes say about the measured time, in which so much processor time was spent."""
    begin, end = measured_time(load, began)
    rate = rate_between(begin, end, notes)
    cost = spent_s / max(1.0, rate * load.seconds)
    return Outcome(rate, cost, _latencies(begin, end, notes) if load.senders == 1 else [])


def rate_between(begin: float, end: float, notes: Sequence[Notes]) -> float:
    """Messages per second that all delivered in this time."""
    return min(_until(each, end) - _until(each, begin) for each in notes) / (end - begin)


def _until(notes: Notes, moment: float) -> int:
    position = bisect.bisect_right(notes.delivered, moment, key=lambda note: note[0])
    return notes.delivered[position - 1][1] if position else 0


def _latencies(begin: float, end: float, notes: Sequence[Notes]) -> list[float]:
    (sender,) = [each for each in notes if each.submitted]
    found = []
    for at, number in sender.submitted:
        if begin <= at < end:
            found.append(max(when_delivered(each, number) for each in notes) - at)
    return found


def when_delivered(notes: Notes, number: int) -> float:
    """When so many messages had been delivered; never, if that was after the last note."""
    position = bisect.bisect_left(notes.delivered, number, key=lambda note: note[1])
    return notes.delivered[position][0] if position < len(notes.delivered) else math.inf


LOADS: dict[str, Load] = {
    "one sender, 100 bytes": Load(senders=1),
    "three senders, 100 bytes": Load(senders=3),
    "one message at a time": Load(senders=1, window=1),
    "one sender, 10 kB": Load(senders=1, size=10_000),
}
"""What is measured; rates except for the window of one, where it is the time until all have delivered a message."""
