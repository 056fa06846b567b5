"""Bytes that are nearly right: what a fuzzer without knowledge of the forms would rarely come to.

Half of the changes are made to the bytes, half to the value that they are in MessagePack: a leaf becomes another one, a
line comes twice or is left out, a table is turned round; and bytes inside, which are mostly such values themselves, in
the same way. Everything is drawn from the random numbers that are given, so the same seed gives the same inputs.
"""

from __future__ import annotations

import contextlib
import math
from random import Random
from typing import Any

import msgspec

DEPTH_MAX = 8
INPUT_BYTES_MAX = 4_096
"""Of most inputs: most forms are small, and what is wrong with a decoder shows with little."""
LONG_BYTES_MAX = 65_536
LONG_ONE_IN = 50
"""Some inputs are longer: limits that count bytes or parts are only met there."""
TIMES_MAX = 2_000
"""So often something is repeated in one of them."""
HOSTILE = (
    b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdb\x7f\xff\xff\xff", b"\xc1",
    b"\xff\xfe", b"\x91" * 2_000, b"[" * 2_000, b"\x00", b"\n", b'"', b"{}", b"null", b"1e400",
)  # fmt: skip
"""Lengths of what is not there, nesting without end, no UTF-8, and the marks of the text formats."""

LEAVES: tuple[Any, ...] = (
    0, 1, -1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 0.5, math.nan, math.inf, True, False, None, "", "x",
    "x" * 300, "\0", b"", b"\xc1", b"\x90", [], [[]], {}, {"x": None},
)  # fmt: skip


def mutated(data: bytes, rng: Random, bytes_max: int = LONG_BYTES_MAX) -> bytes:
    """Another input, somewhat like this one; once in a while a long one."""
    head, body = data[:1], data[1:]
    if rng.randrange(LONG_ONE_IN):
        bytes_max = min(bytes_max, INPUT_BYTES_MAX)
    elif bytes_max > INPUT_BYTES_MAX:
        body = _lengthened(body, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        body = _value_changed(body, rng) if rng.random() < 0.5 else _bytes_changed(body, rng)
    return (head + body)[:bytes_max]


def _bytes_changed(body: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(body) + 1)
    upto = min(len(body), at + rng.choice((1, 1, 2, 8, 64)))
    match rng.randrange(6):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + bytes([rng.randrange(256)]) + body[at + 1 :]
        case 2:
            return body[:at] + rng.randbytes(rng.randrange(1, 9)) + body[at:]
        case 3:
            return body[:at] + body[upto:]
        case 4:
            return body[:upto] + body[at:]
        case _:
            return body[:at] + rng.choice(HOSTILE) + body[at:]


def _lengthened(body: bytes, rng: Random) -> bytes:
    """A part of it many times: of the value if it is a list, else of the bytes."""
    times = rng.randrange(2, TIMES_MAX)
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        value = msgspec.msgpack.decode(body)
        if isinstance(value, list) and value and rng.random() < 0.8:
            at = rng.randrange(len(value))
            return msgspec.msgpack.encode([*value[:at], *[value[at]] * times, *value[at:]])
    at = rng.randrange(len(body) + 1)
    return body[:at] + body[at : at + rng.choice((1, 8, 64))] * times + body[at:]


def _value_changed(body: bytes, rng: Random) -> bytes:
    try:
        value = msgspec.msgpack.decode(body)
        return msgspec.msgpack.encode(_changed(value, rng, DEPTH_MAX))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError, ValueError, OverflowError):
        return _bytes_changed(body, rng)


def _changed(value: Any, rng: Random, depth: int) -> Any:
    if isinstance(value, list) and value and depth:
        at = rng.randrange(len(value))
        match rng.randrange(12):
            case 0:
                return [*value, value[at]]
            case 1:
                return value[:at] + value[at + 1 :]
            case 2:
                return value[::-1]
            case 3:
                return [*value, rng.choice(LEAVES)]
        return [*value[:at], _changed(value[at], rng, depth - 1), *value[at + 1 :]]
    if isinstance(value, dict) and value and depth:
        key = rng.choice(list(value))
        if rng.random() < 0.2:
            return {other: value[other] for other in value if other != key}
        return {**value, key: _changed(value[key], rng, depth - 1)}
    if isinstance(value, bytes) and len(value) > 1 and depth and rng.random() < 0.8:
        return _value_changed(value, rng)
    return rng.choice(LEAVES)
