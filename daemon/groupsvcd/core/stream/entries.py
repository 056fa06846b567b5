"""An entry of a stream: who sent it, its number there, and the opaque body.

The leader wraps what an origin submits and never looks inside. ``origin`` is empty for what the leader
orders on its own account: a new leader finds out anew what is to be done, so nobody ever repeats it.

A large payload travels apart from its order; what stands in the log is a *reference* to it. The two differ in
their first byte, so that nobody has to decode entries to find out.

What an origin submits at once mostly becomes entries that follow one another. Such a *run* stays together from the
leader's pen to the delivery: nobody on the way looks at its entries one by one. An Order and a log consist of *pieces*,
each the bytes of one entry, or a run. On disk and in repairs there are no runs, only entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, repeat
from typing import Annotated, overload
from zlib import crc32

import msgspec

from groupsvc.errors import PeerProtocolError
from groupsvc.wire.codec import UNREADABLE

from .payloads import PayloadId


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One entry as it stands in the log."""

    origin: str
    incarnation: int
    n: int
    body: bytes


class Reference(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry whose body is a payload of ``size`` bytes with checksum ``crc``, kept elsewhere."""

    origin: str
    incarnation: int
    n: int
    size: int
    crc: int


class Run(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """Entries that one origin submitted in a row; ``n`` is the number of the first."""

    origin: Annotated[str, msgspec.Meta(min_length=1)]  # the leader's own come one by one
    incarnation: int
    n: int
    bodies: Annotated[tuple[bytes, ...], msgspec.Meta(min_length=1)]

    def part(self, start: int, end: int) -> Run:
        """The entries at positions ``start … end - 1``."""
        if start == 0 and end >= len(self.bodies):
            return self
        return Run(self.origin, self.incarnation, self.n + start, self.bodies[start:end])

    def entries(self) -> list[Entry]:
        """One by one."""
        return list(map(Entry, repeat(self.origin), repeat(self.incarnation), count(self.n), self.bodies))


class Entries(Sequence[Entry]):
    """Entries as they are handed up: whoever can do with ``runs`` has them, for others they are made one by one."""

    __slots__ = ("_entries", "runs")

    def __init__(self, runs: list[Run]) -> None:
        self.runs = runs
        self._entries: list[Entry] | None = None

    def _one_by_one(self) -> list[Entry]:
        if self._entries is None:
            self._entries = [entry for run in self.runs for entry in run.entries()]
        return self._entries

    @overload
    def __getitem__(self, position: int) -> Entry: ...

    @overload
    def __getitem__(self, position: slice) -> list[Entry]: ...

    def __getitem__(self, position: int | slice) -> Entry | list[Entry]:
        return self._one_by_one()[position]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._one_by_one())

    def __len__(self) -> int:
        return sum(len(run.bodies) for run in self.runs)


def runs_of(entries: Sequence[Entry]) -> list[Run]:
    """These entries in runs: those they came in, or one for each."""
    if isinstance(entries, Entries):
        return entries.runs
    return [Run(entry.origin, entry.incarnation, entry.n, (entry.body,)) for entry in entries]


Piece = bytes | Run
"""Of an Order or a log: the bytes of one entry, or a run."""

BODY_HEAD_BYTES = 5
"""What MessagePack puts before a body, at most."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)
_reference_decoder = msgspec.msgpack.Decoder(Reference)

_REFERENCE = _encoder.encode(Reference("", 0, 0, 0, 0))[:1]


def encode_entry(origin: str, incarnation: int, n: int, body: bytes) -> bytes:
    """The bytes of an entry."""
    return _encoder.encode(Entry(origin, incarnation, n, body))


def one_by_one(pieces: Iterable[Piece]) -> Iterator[bytes]:
    """The bytes of every entry, as ``encode_entry`` makes them."""
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            yield from map(_encoder.encode, piece.entries())


def length_of(piece: Piece) -> int:
    """How many entries it is."""
    return 1 if isinstance(piece, bytes) else len(piece.bodies)


def size_of(piece: Piece) -> int:
    """How many bytes it is in a frame, about."""
    return len(piece) if isinstance(piece, bytes) else sum(map(len, piece.bodies), BODY_HEAD_BYTES * len(piece.bodies))


def part_of(piece: Piece, start: int, end: int) -> Piece:
    """Its entries at positions ``start … end - 1``, of which there is at least one."""
    return piece if isinstance(piece, bytes) else piece.part(start, end)


def behind(pieces: Iterable[Piece], count: int) -> list[Piece]:
    """What comes after the first ``count`` entries."""
    found: list[Piece] = []
    for piece in pieces:
        length = length_of(piece)
        if count < length:
            found.append(part_of(piece, count, length))
        count = max(count - length, 0)
    return found


def encode_reference(origin: str, incarnation: int, n: int, size: int, crc: int) -> bytes:
    """The bytes of an entry that refers to a payload."""
    return _encoder.encode(Reference(origin, incarnation, n, size, crc))


def is_reference(entry: bytes) -> bool:
    """Whether the body of this entry is kept elsewhere; in a run there is none like that."""
    return entry[:1] == _REFERENCE


def decode_entry(entry: bytes) -> Entry:
    """The entry the bytes stand for; it is no reference. Raises ``PeerProtocolError``."""
    try:
        return _decoder.decode(entry)
    except UNREADABLE as problem:
        raise PeerProtocolError(f"{len(entry)} bytes are no entry: {problem}") from None


def decode_reference(entry: bytes) -> Reference:
    """The reference the bytes stand for; raises ``PeerProtocolError``."""
    try:
        return _reference_decoder.decode(entry)
    except UNREADABLE as problem:
        raise PeerProtocolError(f"{len(entry)} bytes are no reference: {problem}") from None


def payload_of(entry: bytes) -> PayloadId:
    """Which payload a reference refers to."""
    reference = decode_reference(entry)
    return (reference.origin, reference.incarnation, reference.n)


def fits(reference: Reference, payload: bytes) -> bool:
    """Whether these bytes are what the reference refers to."""
    return len(payload) == reference.size and crc32(payload) == reference.crc
