"""An entry of a stream: who sent it, its number there, and the opaque body.

The leader wraps what an origin submits and never looks inside. ``origin`` is empty for what the leader
orders on its own account: a new leader finds out anew what is to be done, so nobody ever repeats it.

A large payload travels apart from its order; what stands in the log is a *reference* to it. The two differ in
their first byte, so that nobody has to decode entries to find out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count, repeat
from zlib import crc32

import msgspec

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


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)
_reference_decoder = msgspec.msgpack.Decoder(Reference)

_REFERENCE = _encoder.encode(Reference("", 0, 0, 0, 0))[0]


def encode_entry(origin: str, incarnation: int, n: int, body: bytes) -> bytes:
    """The bytes of an entry."""
    return _encoder.encode(Entry(origin, incarnation, n, body))


def encode_run(origin: str, incarnation: int, first_n: int, bodies: Iterable[bytes]) -> list[bytes]:
    """The bytes of entries that one origin submitted in a row; the same as ``encode_entry`` makes of each."""
    return list(map(_encoder.encode, zip(repeat(origin), repeat(incarnation), count(first_n), bodies, strict=False)))


def encode_reference(origin: str, incarnation: int, n: int, size: int, crc: int) -> bytes:
    """The bytes of an entry that refers to a payload."""
    return _encoder.encode(Reference(origin, incarnation, n, size, crc))


def is_reference(entry: bytes) -> bool:
    """Whether the body of this entry is kept elsewhere."""
    return entry[0] == _REFERENCE


def references_in(entries: Sequence[bytes]) -> list[int]:
    """The positions of those whose bodies are kept elsewhere; mostly there are none."""
    return [position for position, entry in enumerate(entries) if entry[0] == _REFERENCE]


def decode_entries(entries: Iterable[bytes]) -> list[Entry]:
    """The entries the bytes stand for; none is a reference."""
    return list(map(_decoder.decode, entries))


def decode_entry(entry: bytes) -> Entry:
    """The entry the bytes stand for; it is no reference."""
    return _decoder.decode(entry)


def decode_reference(entry: bytes) -> Reference:
    """The reference the bytes stand for."""
    return _reference_decoder.decode(entry)


def payload_of(entry: bytes) -> PayloadId:
    """Which payload a reference refers to."""
    reference = _reference_decoder.decode(entry)
    return (reference.origin, reference.incarnation, reference.n)


def fits(reference: Reference, payload: bytes) -> bool:
    """Whether these bytes are what the reference refers to."""
    return len(payload) == reference.size and crc32(payload) == reference.crc
