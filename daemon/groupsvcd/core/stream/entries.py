"""An entry of a stream: who sent it, its number there, and the opaque body.

The leader wraps what an origin submits and never looks inside. ``origin`` is empty for what the leader
orders on its own account: a new leader finds out anew what is to be done, so nobody ever repeats it.
"""

from __future__ import annotations

import msgspec


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One entry as it stands in the log."""

    origin: str
    incarnation: int
    n: int
    body: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)


def encode_entry(origin: str, incarnation: int, n: int, body: bytes) -> bytes:
    """The bytes of an entry."""
    return _encoder.encode(Entry(origin, incarnation, n, body))


def decode_entry(entry: bytes) -> Entry:
    """The entry the bytes stand for."""
    return _decoder.decode(entry)
