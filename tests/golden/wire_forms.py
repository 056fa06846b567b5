"""Every form that daemons and programs write for others, or for a later release, as bytes.

Of each form there are two: one in which every field says something, and one that ends with the last field that must be
there. The values mean nothing; they are counted up, so that two fields cannot be exchanged without a difference.

A file of ``wire-N`` has them as they are in wire version N::

    LEADER_ALIVE whole
      950a01020304
"""

from __future__ import annotations

import textwrap
import typing
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import msgspec
from msgspec import inspect

from groupsvc.tables import Row, Write
from groupsvc.wire.client_messages import AnyClientReply, AnyClientRequest
from groupsvc.wire.kinds import Kind
from groupsvcd.core.domain.commands import AnyCommand as DirectoryCommand
from groupsvcd.core.domain.directory import Snapshot
from groupsvcd.core.groups.commands import AnyCommand as GroupCommand
from groupsvcd.core.groups.commands import AnyRuling
from groupsvcd.core.groups.stored_group import StoredGroup
from groupsvcd.core.nodegroups.about import About
from groupsvcd.core.nodegroups.controls import AnyControl
from groupsvcd.core.nodegroups.roll import Checkpoint, StoredRoll
from groupsvcd.core.peer_messages import AnyPeerMessage
from groupsvcd.core.stream.entries import Entry, Reference

BETWEEN_DAEMONS: Mapping[str, Any] = {
    "messages": AnyPeerMessage,
    "directory_commands": DirectoryCommand,
    "control_entries": AnyControl,
    "group_commands": GroupCommand,
    "rulings": AnyRuling,
    "entries_and_states": Entry | Reference | Snapshot | About | StoredRoll | Checkpoint | StoredGroup,
}
"""What belongs to the wire version: by the name of its file in ``wire-N``."""

BETWEEN_PROGRAM_AND_DAEMON: Mapping[str, Any] = {
    "requests": AnyClientRequest,
    "replies": AnyClientReply,
    "tables": Write | Row,
}
"""What belongs to the version that is settled by Hello, and what programs keep in groups: ``client-N``."""

Forms = dict[str, bytes]

encode = msgspec.msgpack.Encoder(order="deterministic").encode
"""As states are written; of everything else the order is that of the fields anyway."""


def classes_of(union: Any) -> tuple[type[msgspec.Struct], ...]:
    """The members of a union."""
    return typing.get_args(union)


def forms_of(union: Any) -> Forms:
    """All classes of a union, each whole and as short as it may be."""
    found = {}
    for cls in classes_of(union):
        for title, value in (("whole", whole(cls)), ("least", least(cls))):
            found[f"{name_of(cls)} {title}"] = encode(value)
    return found


def name_of(cls: type[msgspec.Struct]) -> str:
    """What it is called in the document, or in the code."""
    tag = cls.__struct_config__.tag
    is_kind = isinstance(tag, int) and tag in set(Kind) and cls.__name__.upper() == Kind(tag).name.replace("_", "")
    return Kind(tag).name if is_kind and isinstance(tag, int) else cls.__name__


def whole(cls: type[msgspec.Struct]) -> list[Any]:
    """An array with a value for every field."""
    return _struct(_struct_type(cls), count(1))


def least(cls: type[msgspec.Struct]) -> list[Any]:
    """The same without the fields that may be left out."""
    info = _struct_type(cls)
    optional = sum(1 for field in info.fields if not field.required)
    made = whole(cls)
    return made[: len(made) - optional] if optional else made


def _struct_type(cls: type[msgspec.Struct]) -> inspect.StructType:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    assert info.array_like, cls
    return info


def _struct(info: inspect.StructType, numbers: Iterator[int]) -> list[Any]:
    tag = [] if info.tag is None else [info.tag]
    return tag + [_value(field.type, numbers) for field in info.fields]


def _value(info: inspect.Type, numbers: Iterator[int]) -> Any:
    match info:
        case inspect.IntType():
            return next(numbers)
        case inspect.FloatType():
            return next(numbers) + 0.5
        case inspect.BoolType():
            return True
        case inspect.StrType():
            return f"s{next(numbers)}"
        case inspect.BytesType():
            return f"b{next(numbers)}".encode()
        case inspect.AnyType():
            return next(numbers)
        case inspect.LiteralType():
            return info.values[-1]
        case inspect.EnumType():
            return list(info.cls)[-1].value
        case inspect.StructType():
            return _struct(info, numbers)
        case inspect.DataclassType():
            return {field.encode_name: _value(field.type, numbers) for field in info.fields}
        case inspect.TupleType():
            return [_value(one, numbers) for one in info.item_types]
        case inspect.VarTupleType() | inspect.ListType():
            kinds = _members(info.item_type)
            return [_value(one, numbers) for one in (kinds if len(kinds) > 1 else kinds * 2)]
        case inspect.DictType():
            kinds = _members(info.value_type)
            return {_value(info.key_type, numbers): _value(one, numbers) for one in kinds}
        case inspect.UnionType():
            return _value(_members(info)[0], numbers)
    raise AssertionError(f"no value for {info}")


def _members(info: inspect.Type) -> list[inspect.Type]:
    if not isinstance(info, inspect.UnionType):
        return [info]
    return [one for one in info.types if not isinstance(one, inspect.NoneType)]


def to_text(forms: Forms) -> str:
    """A file of forms."""
    return "".join(
        f"{title}\n{textwrap.indent(textwrap.fill(made.hex(), 100), '  ')}\n" for title, made in forms.items()
    )


def from_text(text: str) -> Forms:
    """The forms in a file."""
    found: dict[str, str] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith(" "):
            found[title] += line.strip()
        else:
            title = line
            assert title not in found, title
            found[title] = ""
    return {title: bytes.fromhex(digits) for title, digits in found.items()}
