"""A family of decoders: what is read, by whom, what must hold of it, and valid bytes to begin with.

What must hold of each (X2): whatever the bytes are, a reader answers or refuses. A refusal is an error of one class and
changes nothing: ``PeerProtocolError`` for what comes from others, ``UsageError`` and ``BadConfig`` for files of an
operator. What was read, written and read again is the same, judged by bytes, as a NaN is not equal to itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from groupsvc.errors import PeerProtocolError

Read = Callable[[bytes], None]
"""Takes any bytes, and raises if a promise is broken."""


@attrs.frozen
class Family:
    """One harness. The first byte of an input chooses one of its ``readers``, the rest is what that reads."""

    name: str
    about: str
    decoders: tuple[str, ...]  # "module:name"; a test demands that every decoder of the product is named by a family
    readers: tuple[tuple[Read, tuple[bytes, ...]], ...]  # each with valid inputs

    def read(self, data: bytes) -> None:
        """One input of the fuzzer."""
        if data:
            self.readers[data[0] % len(self.readers)][0](data[1:])

    def seeds(self) -> list[bytes]:
        """Valid inputs of all its readers."""
        return [bytes([number]) + seed for number, (_, seeds) in enumerate(self.readers) for seed in seeds]


def round_trip(decode: Callable[[bytes], Any]) -> Read:
    """A reader of one kind of value: refused, or the same after it was written and read again."""

    def read(data: bytes) -> None:
        try:
            found = decode(data)
        except PeerProtocolError:
            return
        if found is not None:
            once = msgspec.msgpack.encode(found)
            assert msgspec.msgpack.encode(decode(once)) == once

    return read
