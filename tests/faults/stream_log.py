"""What programs of a stream have sent and received, in few bytes, and whether it fits together.

A sender has a number for each of its lives (a session that was lost is followed by another life), and counts its
messages from 1. A receiver writes down of each message its place in the order, the sender's life and its count:
sixteen bytes. It has stays, too: from a join until its session is lost.

What must hold (B1, B3, B4, B5, in the words of users): nothing is lost, nothing is doubled, and there is one order.

- One order: whoever has something at place 70 has the same there.
- Nothing is left out: a stay has every place that anybody has between its first and its last one.
- Nothing is doubled or out of order: of each life, counts in the one order are 1, 2, 3, … without a gap; unless no
  receiver was there, as when all nodes were killed and a sender was the first to come back.
- Nothing is lost: what a sender knows to be delivered is there, whatever was killed since.

``Orders`` takes what was written since it last looked, so that hours can be judged in pieces; what it keeps of older
pieces is two numbers for each life. A group that has ended and was formed again counts from 1: it has another order, by
the numbering that its receivers were told (``groupsvc.Position``).
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from pathlib import Path

import attrs

RECORD = struct.Struct("<QII")
"""Place, life, count."""

LIVES_PER_PROGRAM = 1_000_000
PAYLOAD_BYTES = 64
PROBLEMS_MAX = 50
END = 1 << 63

STAY, OVER = ".stay", ".over"
TOLD_TO_END = "told to end"
"""What a receiver writes into the second file when it has come to its end, and not to that of its session."""
_head = struct.Struct("<II")


def payload_of(life: int, count: int) -> bytes:
    """A message that is like no other, and shows whether its bytes are as they were sent."""
    head = _head.pack(life, count)
    return (head * (PAYLOAD_BYTES // len(head)))[:PAYLOAD_BYTES]


def read_payload(payload: bytes) -> tuple[int, int]:
    """Life and count; ``ValueError`` if nobody has sent this."""
    life, count = _head.unpack_from(payload)
    if payload != payload_of(life, count):
        raise ValueError(f"nobody has sent {payload[:24]!r}")
    return life, count


@attrs.define
class Stay:
    """What one receiver was given in one stay, as far as it is not judged yet."""

    who: str
    file: Path
    is_over: bool = False
    taken: int = 0  # bytes of the file that were read
    last: int = 0  # the last place that was judged
    unjudged: bytes = b""

    def read_on(self) -> None:
        """What was written since."""
        with self.file.open("rb") as file:
            file.seek(self.taken)
            new = file.read()
        new = new[: len(new) - len(new) % RECORD.size]
        self.taken += len(new)
        self.unjudged += new

    @property
    def upto(self) -> int:
        """It has everything up to this place, from where it began."""
        return _place(self.unjudged, len(self.unjudged) // RECORD.size - 1) if self.unjudged else self.last

    def cut(self, upto: int) -> bytes:
        """The records up to this place, which are unjudged no longer."""
        end = _find(self.unjudged, upto + 1) * RECORD.size
        piece, self.unjudged = self.unjudged[:end], self.unjudged[end:]
        return piece


def _place(records: bytes, number: int) -> int:
    return int(RECORD.unpack_from(records, number * RECORD.size)[0])


def _find(records: bytes, place: int) -> int:
    """The number of the first record at this place or behind it; they are in the order of places."""
    numbers = range(len(records) // RECORD.size)
    return bisect_left(numbers, place, key=lambda number: _place(records, number))


@attrs.define
class Order:
    """The one order, as far as it is judged: all stays, and how far each life has come."""

    delivered: int = 0  # messages in the one order
    problems: list[str] = attrs.field(factory=list)
    counts: dict[int, int] = attrs.field(factory=dict)  # by life
    unwatched: list[tuple[int, int]] = attrs.field(factory=list)  # from which place to which no receiver was there
    _places: dict[int, int] = attrs.field(factory=dict)  # by life, of its newest message
    _stays: dict[Path, Stay] = attrs.field(factory=dict)
    forgotten: dict[str, int] = attrs.field(factory=dict)  # by receiver: bytes of files that are no more
    is_watched_to_the_end: bool = False  # whether a receiver stayed until it was told to end
    _upto: int = 0  # places that were judged
    _known_to_all: int = 0  # the place that all open stays had come to when we looked the time before

    def judge(self, files: list[Path], *, is_end: bool) -> None:
        """Everything up to the place that all open stays had come to the time before; at the end, everything."""
        for file in files:
            if file not in self._stays:
                self._stays[file] = Stay(file.name.partition("@")[0], file)
        for stay in self._stays.values():
            over = stay.file.with_suffix(OVER)
            stay.is_over = over.exists()  # before it is read
            stay.read_on()
            self.is_watched_to_the_end |= stay.is_over and over.read_text() == TOLD_TO_END
        open_stays = [stay for stay in self._stays.values() if not stay.is_over]
        tops = [stay.upto for stay in (self._stays.values() if is_end else open_stays)]
        self._judge_upto(max(tops, default=0) if is_end else self._known_to_all)
        self._known_to_all = min(tops, default=self._known_to_all)
        for file, stay in list(self._stays.items()):
            if stay.is_over and not stay.unjudged:
                del self._stays[file]
                who = stay.who.partition("-")[0]
                self.forgotten[who] = self.forgotten.get(who, 0) + stay.taken
                file.unlink()
                file.with_suffix(OVER).unlink()

    def _judge_upto(self, upto: int) -> None:
        pieces = [(stay, piece) for stay in self._stays.values() if (piece := stay.cut(upto))]
        if not pieces:
            return
        order = max((piece for _, piece in pieces), key=len)
        if not all(_is_part(piece, order) for _, piece in pieces):
            order = self._merged(pieces)  # stays that meet in no single one, or that do not fit
        self._note_unwatched(pieces, upto)
        for stay, piece in pieces:
            self._look_for_gaps(stay, piece, order)
        self._recount(order)
        self._upto = max(upto, self._upto)

    def _note_unwatched(self, pieces: list[tuple[Stay, bytes]], upto: int) -> None:
        """Places at which no receiver was there to see anything."""
        watched = []
        for stay, piece in pieces:
            first = self._upto + 1 if stay.last else _place(piece, 0)
            goes_on = stay.unjudged or not stay.is_over
            watched.append((first, upto if goes_on else _place(piece, len(piece) // RECORD.size - 1)))
        seen = self._upto
        for first, last in sorted(watched):
            if first > seen + 1:
                self.unwatched.append((seen + 1, first - 1))
            seen = max(seen, last)

    def _merged(self, pieces: list[tuple[Stay, bytes]]) -> bytes:
        order: dict[int, tuple[int, int]] = {}
        for stay, piece in pieces:
            for place, life, count in RECORD.iter_unpack(piece):
                if order.setdefault(place, (life, count)) != (life, count):
                    self._found(f"B4: {stay.who} has {life}/{count} at {place}, where others have {order[place]}")
        return b"".join(RECORD.pack(place, *order[place]) for place in sorted(order))

    def _look_for_gaps(self, stay: Stay, piece: bytes, order: bytes) -> None:
        """From where it began, or went on, to its last record it has all."""
        began = order if stay.last else order[_find(order, _place(piece, 0)) * RECORD.size :]
        if not began.startswith(piece):
            had = {place for place, _, _ in RECORD.iter_unpack(piece)}
            wanted = [place for place, _, _ in RECORD.iter_unpack(began) if place <= max(had)]
            missing = next((place for place in wanted if place not in had), 0)
            words = f"not {missing}, for one" if missing else "one of them twice, or in another order"
            self._found(f"B3: {stay.who} has {len(piece) // RECORD.size} of {len(wanted)} messages; {words}")
        stay.last = _place(piece, len(piece) // RECORD.size - 1)

    def _recount(self, order: bytes) -> None:
        counts, places = self.counts, self._places
        for place, life, count in RECORD.iter_unpack(order):
            expected = counts.get(life, 0) + 1
            if count != expected and not (count > expected and self._was_unwatched(places.get(life, 0), place)):
                self._found(f"B5: {life}/{count} is at {place}, and {life}/{expected} was due")
            counts[life], places[life] = max(count, expected - 1), place
        self.delivered += len(order) // RECORD.size
        if _place(order, 0) <= self._upto:
            self._found(f"B4: something has come at {_place(order, 0)} when {self._upto} had been judged")

    def _was_unwatched(self, after: int, before: int) -> bool:
        return any(first < before and last > after for first, last in self.unwatched)

    def settle(self, life: int, count: int) -> None:
        """At the end: the sender of this life knows that so many were delivered."""
        seen = self.counts.get(life, 0)
        if seen < count and self.is_watched_to_the_end and not self._was_unwatched(self._places.get(life, 0), END):
            self._found(f"B2: of {life} {count} were said to be delivered, {seen} are there")

    def _found(self, text: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(text)


@attrs.define
class Orders:
    """Of one name: that of each group which had it, one after the other."""

    directory: Path
    _orders: dict[str, Order] = attrs.field(factory=dict)  # by numbering

    def judge(self, *, is_end: bool = False) -> None:
        """What was written since; at the end, all.

        Who was about to join when we looked the time before, and had no file yet, has one by now: not too often.
        """
        files: dict[str, list[Path]] = {}
        for file in sorted(self.directory.glob(f"*{STAY}")):
            files.setdefault(file.stem.partition("@")[2], []).append(file)
        for numbering in files.keys() | self._orders.keys():
            self._orders.setdefault(numbering, Order()).judge(files.get(numbering, []), is_end=is_end)

    def settle(self, known: dict[int, int]) -> None:
        """At the end: by life, what its sender knows to be delivered."""
        for life, count in known.items():
            found = [order for order in self._orders.values() if life in order.counts]
            for order in found or list(self._orders.values())[-1:]:
                order.settle(life, count)

    @property
    def delivered(self) -> int:
        """Messages in all of them."""
        return sum(order.delivered for order in self._orders.values())

    @property
    def problems(self) -> list[str]:
        """Of all."""
        return [problem for order in self._orders.values() for problem in order.problems]

    def forgotten(self, who: str) -> int:
        """Bytes of a receiver's stays that are over, judged and removed."""
        return sum(order.forgotten.get(who, 0) for order in self._orders.values())


def _is_part(piece: bytes, order: bytes) -> bool:
    """Whether the order has it somewhere, as it is."""
    return order.startswith(piece, _find(order, _place(piece, 0)) * RECORD.size)
