"""What a group can be asked to be (``GroupAttributes``), and its form on the wire.

The attributes are settled by whoever forms the group. Who joins later with attributes of its own states what it relies
on: what it *says* must be so in the group, else ``AttributesMismatch`` names it. To say ``time_limit=30.0`` is not the
same as to say nothing, although 30 is the default; so it is remembered what was said, and only that travels.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from .errors import UsageError
from .voting_words import Vote
from .wire.notices import AttributeValue

TEXT_CHARS_MAX = 200
"""Of an attribute that is a text, as group names."""


class Phases(enum.Enum):
    """ONE: what is proposed happens, nobody is asked. N: it is voted on, as often as the votes ask for."""

    ONE = "one"
    N = "n"


class Batch(enum.Enum):
    """What is collected for a while and voted on as one."""

    NONE = "none"
    JOINS = "joins"
    LEAVES = "leaves"
    BOTH = "both"


def _no_continue(instance: object, attribute: attrs.Attribute[Any], value: Vote) -> None:
    if value not in (Vote.APPROVE, Vote.REJECT):
        raise UsageError(
            f"default_vote is {value!r}; it must be Vote.APPROVE or Vote.REJECT, nobody goes on by default"
        )


def _is(enumeration: type[enum.Enum]) -> Any:
    def check(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
        if not isinstance(value, enumeration):
            raise UsageError(f"{attribute.name} is {value!r}; it must be a {enumeration.__name__}")

    return check


def _phases() -> Any:
    return attrs.field(default=Phases.ONE, validator=_is(Phases))


@attrs.frozen(kw_only=True)
class GroupAttributes:
    """How a group works; what is None is left to the service."""

    if not TYPE_CHECKING:  # type checkers know the signature from the fields

        def __init__(self, **said: Any) -> None:
            self.__attrs_init__(**said)
            object.__setattr__(self, "_said", frozenset(said))

    client_version: str = ""
    batch: Batch = attrs.field(default=Batch.NONE, validator=_is(Batch))
    batch_window: float = 0.05
    join_phases: Phases = _phases()
    leave_phases: Phases = _phases()
    failure_phases: Phases = _phases()
    state_phases: Phases = _phases()
    message_phases: Phases = _phases()
    default_vote: Vote = attrs.field(default=Vote.APPROVE, validator=_no_continue)
    time_limit: float = 30.0
    replicas: int = 3
    data_k: int | None = None
    commit_k: int | None = None
    checkpoint_k: int | None = None
    checkpoint_every: int | None = None
    logical_lifetime: int | None = None
    inline_bytes_max: int | None = None
    delivery: Literal["safe", "fast"] = "safe"
    durable: bool = False
    on_quorum_lost: Literal["continue", "dissolve", "wait"] | None = None
    exclusive: bool = False
    state_machine: bool = False
    source_group: str | None = None
    history_entries_max: int | None = None
    history_bytes_max: int | None = None
    _said: frozenset[str] = attrs.field(default=frozenset(), init=False, eq=False, repr=False)


_FIELDS = {name: field for name, field in attrs.fields_dict(GroupAttributes).items() if field.init}
_ENUMS: dict[str, type[enum.Enum]] = {
    "batch": Batch,
    "default_vote": Vote,
    **dict.fromkeys(("join_phases", "leave_phases", "failure_phases", "state_phases", "message_phases"), Phases),
}


def stated(attributes: GroupAttributes) -> dict[str, AttributeValue]:
    """What goes on the wire: everything that was said."""
    said = {name: getattr(attributes, name) for name in _FIELDS if name in attributes._said}
    return {name: _plain(value) for name, value in said.items() if value is not None}


def changed(changes: Mapping[str, object]) -> dict[str, AttributeValue]:
    """The same for changes of some attributes; ``UsageError`` for a name nobody knows, or a value that cannot be."""
    if not changes:
        raise UsageError("change_attributes needs at least one attribute, as in change_attributes(time_limit=5.0)")
    unknown = sorted(set(changes) - set(_FIELDS))
    if unknown:
        raise UsageError(f"no group has an attribute {unknown[0]!r}; there are {', '.join(_FIELDS)}")
    try:
        GroupAttributes(**changes)  # type: ignore[arg-type]  # what is of a wrong kind is what we look for
    except TypeError as problem:
        raise UsageError(str(problem)) from None
    return {name: _plain(value) for name, value in changes.items()}


def attributes_of(found: Mapping[str, AttributeValue]) -> GroupAttributes:
    """What the daemon says of a group; attributes of a newer daemon that we do not know are left out."""
    known: dict[str, Any] = {name: value for name, value in found.items() if name in _FIELDS}
    for name, enumeration in _ENUMS.items():
        if name in known:
            known[name] = enumeration(known[name])
    return GroupAttributes(**known)


def _plain(value: object) -> AttributeValue:
    plain = value.value if isinstance(value, enum.Enum) else value
    if isinstance(plain, str) and (len(plain) > TEXT_CHARS_MAX or not plain.isprintable()):
        raise UsageError(
            f"{plain!r:.60} cannot be the value of an attribute: at most {TEXT_CHARS_MAX} printable characters"
        )
    if isinstance(plain, int) and not -(1 << 63) <= plain < 1 << 63:
        raise UsageError(f"{plain!r:.60} cannot be the value of an attribute: it is out of range")
    if plain is None or isinstance(plain, bool | int | float | str):
        return plain
    raise UsageError(f"{value!r:.60} cannot be the value of an attribute")
