"""Strategies for every message, made from the field types of its class.

A new message is tested the moment it is part of its union; a field of a type that nobody has met yet fails
loudly here, and not by being left out.
"""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec
from hypothesis import strategies as st

from groupsvc.wire.client_messages import AnyClientReply, AnyClientRequest
from groupsvc.wire.frames import DOMAIN_ID_BYTES
from groupsvc.wire.history import HistoryEvent
from groupsvc.wire.kinds import FrameKind
from groupsvc.wire.limits import NODE_NAME_BYTES_MAX
from groupsvcd.core.peer_messages import AnyPeerMessage
from groupsvcd.core.stream.entries import Run

# What MessagePack can say: from the smallest signed to the largest unsigned number of 64 bits.
WIRE_INTS = st.integers(min_value=-(2**63), max_value=2**64 - 1)
# JSON is read by others too; msgspec itself takes as much.
JSON_INTS = st.integers(min_value=-(2**63), max_value=2**64 - 1)
FLOATS = st.floats(allow_nan=False)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def plain_data(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What a field of type Any may hold: leaves, lists and tables with text keys."""
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    )


PLAIN = plain_data(st.none() | st.booleans() | WIRE_INTS | FLOATS | st.text(max_size=20) | st.binary(max_size=20))
PLAIN_JSON = plain_data(st.none() | st.booleans() | JSON_INTS | FINITE | st.text(max_size=20))


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    simple: dict[Any, st.SearchStrategy[Any]] = {
        int: WIRE_INTS,
        float: FLOATS,
        str: st.text(max_size=40),
        bool: st.booleans(),
        bytes: st.binary(max_size=60),
        types.NoneType: st.none(),
        Any: PLAIN,
    }
    if kind in simple:
        return simple[kind]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin in (types.UnionType, typing.Union):
        return st.one_of(*map(values_of, arguments))
    if origin is list:
        return st.lists(values_of(arguments[0]), max_size=4)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    if origin is dict:
        return st.dictionaries(values_of(arguments[0]), values_of(arguments[1]), max_size=3)
    if kind is Run:
        bodies = st.lists(st.binary(max_size=60), min_size=1, max_size=4).map(tuple)
        return st.builds(Run, st.text(min_size=1, max_size=40), WIRE_INTS, WIRE_INTS, bodies)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return structs(kind)
    raise TypeError(f"no strategy for fields of type {kind!r}; add one here")


def structs(cls: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Values of one class, fields with defaults sometimes left at them."""
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{name: values_of(hints[name]) for name in cls.__struct_fields__})


def classes_of(union: Any) -> tuple[type[msgspec.Struct], ...]:
    """The message classes of a union."""
    assert isinstance(union, types.UnionType)
    return typing.get_args(union)


PEER_CLASSES = classes_of(AnyPeerMessage)
REQUEST_CLASSES = classes_of(AnyClientRequest)
REPLY_CLASSES = classes_of(AnyClientReply)


def batches(classes: tuple[type[msgspec.Struct], ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    """What one frame may carry: any number of any of these messages."""
    return st.lists(st.sampled_from(classes).flatmap(structs), max_size=5).map(tuple)


NODE_NAMES = st.text(min_size=1, max_size=NODE_NAME_BYTES_MAX).filter(
    lambda name: len(name.encode()) <= NODE_NAME_BYTES_MAX
)
DOMAINS = st.binary(min_size=DOMAIN_ID_BYTES, max_size=DOMAIN_ID_BYTES)
INCARNATIONS = st.integers(min_value=0, max_value=2**64 - 1)
FRAME_KINDS = st.sampled_from(FrameKind)
BODIES = st.binary(max_size=300)

HISTORY_EVENTS = st.builds(
    HistoryEvent,
    v=st.integers(0, 9),
    i=st.integers(0, 2**53),
    boot=st.text(max_size=10),
    t=FINITE,
    local=FINITE,
    wall_ns=JSON_INTS,
    node=st.text(max_size=10),
    inc=JSON_INTS,
    who=st.text(max_size=10),
    type=st.sampled_from(["invoke", "ok", "fail", "info", "event"]),
    op=st.text(max_size=10),
    group=JSON_INTS,
    epoch=JSON_INTS,
    seq=JSON_INTS,
    origin=st.text(max_size=10),
    n=JSON_INTS,
    mid=st.text(max_size=10),
    crc=st.integers(0, 2**32 - 1),
    args=st.dictionaries(st.text(max_size=5), PLAIN_JSON, max_size=3),
    result=st.dictionaries(st.text(max_size=5), PLAIN_JSON, max_size=3),
)
