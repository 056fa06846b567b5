"""Messages to bytes and back: one list of tagged arrays per frame.

A frame's body is a list because a busy daemon sends everything it has for a peer at once; the list of one
is the idle case. Decoding checks every type and refuses what does not fit, with msgspec's reason. Text that is
no UTF-8 and arrays nested a thousand deep come out of msgspec as errors of other families; they are as much
the sender's fault and are refused the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec

from ..errors import PeerProtocolError

M = TypeVar("M")

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises over bytes that are not what they should be."""


class Codec(Generic[M]):
    """Encodes and decodes lists of one union of messages."""

    def __init__(self, union: Any) -> None:
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[tuple[M, ...]] = msgspec.msgpack.Decoder(tuple[union, ...])

    def encode(self, messages: Sequence[M]) -> bytes:
        """The body of a frame that carries ``messages``."""
        return self._encoder.encode(messages)

    def encode_one(self, message: M) -> bytes:
        """One message of a body that ``joined`` makes."""
        return self._encoder.encode(message)

    @staticmethod
    def joined(messages: Sequence[bytes]) -> bytes:
        """The same body as ``encode`` makes, from messages that are encoded already."""
        return b"".join((_list_header(len(messages)), *messages))

    def decode(self, body: bytes | memoryview) -> tuple[M, ...]:
        """The messages in ``body``; raises ``PeerProtocolError`` with the reason."""
        try:
            return self._decoder.decode(body)
        except UNREADABLE as problem:
            raise PeerProtocolError(f"body of {len(body)} bytes is no list of messages: {problem}") from None


class Reader(Generic[M]):
    """Decodes one kind of value that stands inside of messages, or on a disk; ``what`` is its name in a refusal."""

    def __init__(self, form: Any, what: str) -> None:
        self._decoder: msgspec.msgpack.Decoder[M] = msgspec.msgpack.Decoder(form)
        self._what = what

    def read(self, body: bytes) -> M:
        """The value that ``body`` stands for; raises ``PeerProtocolError`` with the reason."""
        try:
            return self._decoder.decode(body)
        except UNREADABLE as problem:
            raise PeerProtocolError(f"{len(body)} bytes are no {self._what}: {problem}") from None


def _list_header(length: int) -> bytes:
    """How MessagePack begins a list."""
    if length < 16:
        return bytes((0x90 | length,))
    return b"\xdc" + length.to_bytes(2, "big") if length < 1 << 16 else b"\xdd" + length.to_bytes(4, "big")
