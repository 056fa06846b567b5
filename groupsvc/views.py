"""What a group looks like: its providers, and everything its members agree on, as one frozen value.

A view is the group after one entry of its stream; the same number means the same view at every member. Messages change
nothing but the number, so a view can be had from the one before it with another number, and nobody makes one until
somebody looks (``View.at``).
"""

from __future__ import annotations

import functools

import attrs

from .positions import NOT_KNOWN, Numbering, Position
from .voting_words import Vote
from .wire import notices
from .wire.limits import NODE_NAME_BYTES_MAX

TEXTS_KEPT = 1024
"""Ids whose text is remembered: those who come to a barrier are the same in every round."""


@attrs.frozen
class Provider:
    """A full member of a group. ``id`` is "node/incarnation/number" and never used again."""

    id: str
    node: str
    name: str
    data: bytes = attrs.field(repr=False)
    joined_seq: int

    def __str__(self) -> str:
        return f"{self.name} ({self.id})" if self.name else self.id


@attrs.frozen
class View:
    """The group after entry ``seq``; providers in the order they joined, the oldest first.

    ``quorum_lost_seq`` is the entry with which the group last went on after it had lost its quorum
    (``on_quorum_lost="continue"``): what somebody was told before it may be missing. 0: never.
    """

    seq: int
    fence: int
    providers: tuple[Provider, ...]
    state: bytes
    state_version: int
    default_vote: Vote
    _numbering: Numbering = attrs.field(default=NOT_KNOWN, eq=False, repr=False)
    quorum_lost_seq: int = 0

    @property
    def position(self) -> Position:
        """Where it stands, for who wants to go on from there later: ``session.join(..., since=position)``."""
        return Position(self.seq, self._numbering)

    def at(self, seq: int) -> View:
        """The same after an entry that changed nothing."""
        return self if seq == self.seq else attrs.evolve(self, seq=seq)


@functools.lru_cache(TEXTS_KEPT)
def text_of(id: notices.ProviderId) -> str:
    """An id as people and programs hold it."""
    return f"{id[0]}/{id[1]}/{id[2]}"


def id_of(text: str) -> notices.ProviderId | None:
    """The other way round; None if it is none."""
    node, _, rest = text.partition("/")
    incarnation, _, number = rest.partition("/")
    if not node.isascii() or not 1 <= len(node) <= NODE_NAME_BYTES_MAX:
        return None
    if not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in (incarnation, number)):
        return None
    return node, int(incarnation), int(number)


def provider_of(found: notices.Provider) -> Provider:
    """A provider as applications see it."""
    return Provider(text_of(found.id), found.id[0], found.name, found.data, found.joined_seq)


def stranger(id: notices.ProviderId) -> Provider:
    """Somebody of whom only the id is known: it left before we came, or never got in."""
    return Provider(text_of(id), id[0], "", b"", 0)
