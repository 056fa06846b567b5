"""As much of protocol buffers as etcd's messages need: fields that are numbers, bytes, or messages of such.

A message is a list of (number, value) pairs; who sends knows what they mean, and who reads takes those it knows. It
takes the place of generated code, of which every release of the library wants another one.
"""

from __future__ import annotations

from collections.abc import Iterator

NUMBER, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
MASK = (1 << 64) - 1


def message(*fields: tuple[int, int | bytes]) -> bytes:
    """The fields in this order; a nested message is given as its bytes."""
    parts = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            _varint(parts, number << 3 | NUMBER)
            _varint(parts, value & MASK)
        else:
            _varint(parts, number << 3 | BYTES)
            _varint(parts, len(value))
            parts += value
    return bytes(parts)


def _varint(parts: bytearray, value: int) -> None:
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Every field in the order in which it comes."""
    at = 0
    while at < len(data):
        key, at = _read(data, at)
        number, kind = key >> 3, key & 7
        if kind == NUMBER:
            value, at = _read(data, at)
            yield number, value
        elif kind == BYTES:
            size, at = _read(data, at)
            yield number, data[at : at + size]
            at += size
        else:
            size = {EIGHT_BYTES: 8, FOUR_BYTES: 4}[kind]
            yield number, data[at : at + size]
            at += size


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
