"""What an application may say: checked before anything is sent.

A wrong argument is the caller's bug and is told as such, at once, with what is allowed; the daemon would refuse it too,
but only after a round trip and with less to say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from ..attributes import Phases
from ..errors import UsageError
from ..views import Provider, id_of
from ..wire.limits import (
    GROUP_NAME_CHARS_MAX,
    PAYLOAD_BYTES_MAX,
    PROVIDER_DATA_BYTES_MAX,
    PROVIDER_NAME_CHARS_MAX,
    REASON_CHARS_MAX,
)
from ..wire.notices import ProviderId

_group_name = re.compile(r"[A-Za-z0-9._/-]+")

BY_DEFAULT = -1
DYNAMIC = 0
ONE_PHASE = 1
PHASES_MAX = 1_000
EXPELLED_MAX = 10_000
"""Named in one proposal: as many as a group has, and it still fits into a frame."""

ELSEWHERE = "keep what is large elsewhere, and its name here"
"""Advice about what every member keeps."""


def group_name(value: object, *, may_be_reserved: bool = False) -> str:
    """A name of a group; a leading ``_`` is for the service itself and its recipes."""
    if not isinstance(value, str):
        raise UsageError(f"a group is named by a string, not by a {type(value).__name__}")
    if not 1 <= len(value) <= GROUP_NAME_CHARS_MAX:
        raise UsageError(f"a group name has 1 to {GROUP_NAME_CHARS_MAX} characters, {value[:40]!r} has {len(value)}")
    if _group_name.fullmatch(value) is None:
        raise UsageError(f"{value!r} cannot name a group: allowed are a-z A-Z 0-9 . _ / -", group=value)
    if value.startswith("_") and not may_be_reserved:
        raise UsageError(f"{value!r} cannot name a group of yours: a leading _ is reserved", group=value)
    return value


def recipe_name(value: object, kind: str) -> str:
    """The name of a lock, or whatever ``kind`` is; it is part of the name of a group."""
    most = GROUP_NAME_CHARS_MAX - len(f"_{kind}/")
    if not isinstance(value, str) or not 1 <= len(value) <= most or _group_name.fullmatch(value) is None:
        text = f"{value!r:.60} cannot name a {kind}: a name is 1 to {most} of a-z A-Z 0-9 . _ / -"
        raise UsageError(text)
    return value


def seconds(value: object, otherwise: float) -> float:
    """A timeout: positive, infinite for ever, None for the session's own."""
    if value is None:
        return otherwise
    if type(value) is float and value > 0:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value <= 0:
        raise UsageError(f"timeout is {value!r}; it must be above 0 seconds, or math.inf to wait for ever")
    return float(value)


def patience(value: object) -> float:
    """How long to wait for an event: None for ever, 0 not at all."""
    if value is None:
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value) or value < 0:
        raise UsageError(f"timeout is {value!r}; it must be 0 or more seconds, or None to wait for ever")
    return float(value)


def payload(
    value: object,
    group: str | None,
    *,
    what: str = "a payload",
    most: int = PAYLOAD_BYTES_MAX,
    limit: str = "limits.payload_bytes_max",
    advice: str = "send it in parts",
) -> bytes:
    """Bytes of an application."""
    if type(value) is bytes and len(value) <= most:
        return value
    where = "" if group is None else f" for group {group!r}"
    if type(value) is not bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            text = f"{what}{where} is a {type(value).__name__}; encode it to bytes first"
            raise UsageError(text, group=group)
        value = bytes(value)
    if len(value) > most:
        text = f"{what}{where} has {len(value)} bytes, more than the {most} allowed ({limit}); {advice}"
        raise UsageError(text, group=group)
    return value


def text(value: object, what: str, most: int, *, group: str | None = None) -> str:
    """Words of an application that go on the wire."""
    if not isinstance(value, str) or len(value) > most:
        raise UsageError(f"{what} is a string of at most {most} characters, not {value!r:.60}", group=group)
    try:
        value.encode()
    except UnicodeEncodeError as problem:
        raise UsageError(f"{what} cannot be written in UTF-8: {problem.reason}", group=group) from None
    return value


def provider_name(value: object, group: str) -> str:
    """What a provider calls itself."""
    return "" if value is None else text(value, "the name of a provider", PROVIDER_NAME_CHARS_MAX, group=group)


def provider_data(value: object, group: str) -> bytes:
    """What a provider shows of itself."""
    return payload(
        value, group, what="the data of a provider", most=PROVIDER_DATA_BYTES_MAX,
        limit="limits.provider_data_bytes_max", advice=ELSEWHERE,
    )  # fmt: skip


def phases(value: object, group: str) -> int:
    """How many phases a proposal has; None leaves it to the group."""
    if value is None:
        return BY_DEFAULT
    if isinstance(value, Phases):
        return ONE_PHASE if value is Phases.ONE else DYNAMIC
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= PHASES_MAX:
        raise UsageError(
            f"phases is {value!r}; it must be Phases.ONE, Phases.N or a number from 1 to {PHASES_MAX}", group=group
        )
    return value


def time_limit(value: object, group: str) -> float:
    """How long a phase may take; None leaves it to the group."""
    if value is None:
        return float(BY_DEFAULT)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise UsageError(f"time_limit is {value!r}; it must be above 0 seconds", group=group)
    return float(value)


def version(value: object, group: str) -> int:
    """The version a state value must have; None: whatever there is."""
    if value is None:
        return BY_DEFAULT
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise UsageError(f"if_version is {value!r}; it must be a state_version, 0 or more", group=group)
    return value


def fails_if_busy(value: object, group: str) -> bool:
    """Whether a proposal does not wait for its turn."""
    if value not in ("queue", "fail"):
        raise UsageError(f'on_busy is {value!r}; it must be "queue" or "fail"', group=group)
    return value == "fail"


def providers(values: Iterable[object], group: str) -> tuple[ProviderId, ...]:
    """Providers by value or by id."""
    found: list[ProviderId] = []
    for value in values:
        id = id_of(value.id if isinstance(value, Provider) else value if isinstance(value, str) else "")
        if id is None:
            raise UsageError(f"{value!r} is no Provider and no id of one (node/incarnation/number)", group=group)
        found.append(id)
    if len(found) > EXPELLED_MAX:
        raise UsageError(f"{len(found)} providers at once are more than the {EXPELLED_MAX} allowed", group=group)
    if not found:
        raise UsageError(f"nobody was named to be expelled from group {group!r}", group=group)
    return tuple(found)


def reason(value: object, group: str) -> str:
    """A sentence or two for people."""
    return text(value, "a reason", REASON_CHARS_MAX, group=group)


def whole(value: object, name: str, group: str) -> int:
    """A plain number."""
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise UsageError(f"{name} is {value!r}; it must be an int", group=group)
    return value


def count(value: object, name: str, most: int, *, group: str | None = None, or_else: str = "") -> int:
    """How many, from one on; ``or_else`` says in words what may be given instead."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UsageError(f"{name} is {value!r}; it must be 1 to {most}{or_else}", group=group)
    return value
