"""What a group can be asked to be: every attribute by name, its kind and its range.

Attributes are settled by whoever forms the group (GS-22), and the directory is where that is decided. So it is here
that they are judged, before the group exists: a name nobody knows, a number out of its range, a word that means
nothing. All that is wrong is said in one answer, each with the attribute, its value and what is allowed.

Judging them where they are used was rejected: a group with ``commit_k = 5`` of three replicas would exist, and every
member would find another way to live with it.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import msgspec

from ..views import AttributeValue
from .commands import shown
from .limits import (
    ATTRIBUTES_BYTES_MAX,
    ATTRIBUTES_MAX,
    BATCH_WINDOW_S_MAX,
    CHECKPOINT_EVERY_MAX,
    CLIENT_VERSION_CHARACTERS_MAX,
    GROUP_SERVERS_MAX,
    GROUP_SERVERS_WANTED,
    HISTORY_BYTES_LEAST,
    HISTORY_BYTES_MOST,
    HISTORY_ENTRIES_MOST,
    INLINE_BYTES_MOST,
    LOGICAL_LIFETIME_MAX,
    SYNC_WINDOW_MAX,
    TIME_LIMIT_S_MAX,
)

Attributes = dict[str, AttributeValue]

_encoder = msgspec.msgpack.Encoder(order="deterministic")


@attrs.frozen
class WholeNumber:
    """From ``least`` to ``most``; the most of some is another attribute of the group."""

    least: int
    most: int | Callable[[Attributes], int]
    most_is: str = ""  # what ``most`` is called, if it is not the same in all groups

    def allowed(self, value: AttributeValue, attributes: Attributes) -> str:
        """What is allowed, if ``value`` is not; else ""."""
        most = self.most if isinstance(self.most, int) else self.most(attributes)
        if type(value) is int and self.least <= value <= most:
            return ""
        named = f"{self.most_is}, which is {most}" if self.most_is else f"{most}"
        return f"a whole number from {self.least} to {named}"


@attrs.frozen
class YesOrNo:
    """True or false."""

    def allowed(self, value: AttributeValue, attributes: Attributes) -> str:
        """What is allowed, if ``value`` is not; else ""."""
        return "" if type(value) is bool else "true or false"


@attrs.frozen
class OneOf:
    """One of some words."""

    words: Callable[[Attributes], tuple[str, ...]]

    def allowed(self, value: AttributeValue, attributes: Attributes) -> str:
        """What is allowed, if ``value`` is not; else ""."""
        words = self.words(attributes)
        return "" if value in words else " or ".join(words)


@attrs.frozen
class Seconds:
    """A time, from ``least`` to ``most``."""

    least: float
    most: float

    def allowed(self, value: AttributeValue, attributes: Attributes) -> str:
        """What is allowed, if ``value`` is not; else ""."""
        is_number = isinstance(value, int | float) and type(value) is not bool
        if is_number and self.least <= value <= self.most:  # type: ignore[operator]
            return ""
        return f"seconds from {self.least:g} to {self.most:g}"


@attrs.frozen
class Text:
    """Any text of so many characters."""

    most: int

    def allowed(self, value: AttributeValue, attributes: Attributes) -> str:
        """What is allowed, if ``value`` is not; else ""."""
        return "" if type(value) is str and len(value) <= self.most else f"a text of at most {self.most} characters"


@attrs.frozen
class NotYet:
    """Nothing at all: the name is settled, what it will mean is not built."""

    what: str

    def allowed(self, value: AttributeValue, attributes: Attributes) -> str:
        """What is allowed, if ``value`` is not; else ""."""
        return "" if value is None else f"null: {self.what}"


def _words(*words: str) -> OneOf:
    return OneOf(lambda attributes: words)


def _replicas(attributes: Attributes) -> int:
    wanted = attributes.get("replicas", GROUP_SERVERS_WANTED)
    return wanted if type(wanted) is int and 1 <= wanted <= GROUP_SERVERS_MAX else GROUP_SERVERS_MAX


def _when_quorum_is_lost(attributes: Attributes) -> tuple[str, ...]:
    return ("wait",) if attributes.get("durable") is True else ("continue", "dissolve", "wait")


def _when_delivered(attributes: Attributes) -> tuple[str, ...]:
    """What is delivered on arrival may be lost; a durable group promises that nothing is."""
    return ("safe",) if attributes.get("durable") is True else ("safe", "fast")


_UP_TO_REPLICAS = WholeNumber(1, _replicas, "replicas")

ATTRIBUTES: dict[str, WholeNumber | YesOrNo | OneOf | Seconds | Text | NotYet] = {
    "replicas": WholeNumber(1, GROUP_SERVERS_MAX),
    "commit_k": _UP_TO_REPLICAS,
    "data_k": _UP_TO_REPLICAS,
    "checkpoint_k": _UP_TO_REPLICAS,
    "checkpoint_every": WholeNumber(1, CHECKPOINT_EVERY_MAX),
    "inline_bytes_max": WholeNumber(0, INLINE_BYTES_MOST),
    "logical_lifetime": WholeNumber(1, LOGICAL_LIFETIME_MAX),
    "history_entries_max": WholeNumber(1, HISTORY_ENTRIES_MOST),
    "history_bytes_max": WholeNumber(HISTORY_BYTES_LEAST, HISTORY_BYTES_MOST),
    "sync_window": WholeNumber(1, SYNC_WINDOW_MAX),
    "delivery": OneOf(_when_delivered),
    "durable": YesOrNo(),
    "machine": YesOrNo(),
    "processes": YesOrNo(),
    "exclusive": YesOrNo(),
    "state_machine": YesOrNo(),
    "source_group": NotYet("groups that follow another one are not built yet; leave it out"),
    "on_quorum_lost": OneOf(_when_quorum_is_lost),
    "client_version": Text(CLIENT_VERSION_CHARACTERS_MAX),
    "batch": _words("none", "joins", "leaves", "both"),
    "batch_window": Seconds(0, BATCH_WINDOW_S_MAX),
    "join_phases": _words("one", "n"),
    "leave_phases": _words("one", "n"),
    "failure_phases": _words("one", "n"),
    "state_phases": _words("one", "n"),
    "message_phases": _words("one", "n"),
    "default_vote": _words("approve", "reject"),
    "time_limit": Seconds(0, TIME_LIMIT_S_MAX),
}
"""Every attribute that a group can have."""


def problem_with_attributes(attributes: Attributes) -> str:
    """Everything that is wrong with these, as one text, or ""."""
    if len(attributes) > ATTRIBUTES_MAX:
        return f"{len(attributes)} attributes are more than the {ATTRIBUTES_MAX} that a group can have"
    if len(_encoder.encode(attributes)) > ATTRIBUTES_BYTES_MAX:
        return f"the attributes take more than {ATTRIBUTES_BYTES_MAX} bytes"
    return "; ".join(filter(None, (_problem_with(name, attributes) for name in sorted(attributes))))


def _problem_with(name: str, attributes: Attributes) -> str:
    kind = ATTRIBUTES.get(name)
    if kind is None:
        return f"attribute {shown(name)} is not known"
    value = attributes[name]
    allowed = kind.allowed(value, attributes)
    if not allowed:
        return ""
    depends = name in ("on_quorum_lost", "delivery")
    of_what = " of a durable group" if depends and attributes.get("durable") is True else ""
    return f"attribute {name} = {in_words(value)}{of_what} must be {allowed}"


def in_words(value: AttributeValue) -> str:
    """A value as it stands in a sentence, not longer than a line."""
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    return str(value) if type(value) is int else shown(str(value))
