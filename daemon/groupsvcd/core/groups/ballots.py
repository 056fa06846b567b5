"""One ballot: who votes, what the votes of a phase decide, and why it ended as it did (GS-23 to GS-26).

Any REJECT ends it; else any CONTINUE leads to another phase; else it is approved. If the proposer fixed the number of
phases, CONTINUE and APPROVE both lead on until the last one. Who has a vote is settled when a phase begins.

The rules are functions of what stands in the stream: the leader says who voted what, everybody draws the conclusion.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import attrs

from groupsvc.wire.notices import Cast, ProviderId, Reason, Subject, VoteMessage

from .commands import DYNAMIC

VOTE_MESSAGES_KEPT = 100
"""Of those that came with votes of earlier phases; older ones were shown and are gone."""

DEFAULTS_KEPT = 100
"""Of the default votes of earlier phases: an outcome names the newest; that there were any is in its reason."""

VOTE_MESSAGES_BYTES_MAX = 2 * 1024 * 1024
"""The same in bytes, and what the votes of one phase can say in all: with a state value it fits into a frame."""


class Verdict(enum.Enum):
    """What the votes of one phase decide."""

    APPROVED = "approved"
    REJECTED = "rejected"
    CONTINUES = "continues"


def verdict_of(votes: Iterable[str], phase: int, phases: int) -> Verdict:
    """The verdict of phase number ``phase`` of ``phases`` (``DYNAMIC``: as many as are asked for)."""
    found = set(votes)
    if "reject" in found:
        return Verdict.REJECTED
    if phases != DYNAMIC:
        return Verdict.CONTINUES if phase < phases else Verdict.APPROVED
    return Verdict.CONTINUES if "continue" in found else Verdict.APPROVED


def reason_of(votes: Sequence[Cast], earlier: Sequence[tuple[int, Cast]], *, approved: bool) -> Reason:
    """Whether somebody decided it, or defaults did; ``earlier``: the defaults that led to this last phase."""
    if approved:
        return "default_approve" if earlier or any(cast.why for cast in votes) else "explicit_approve"
    rejecting = [cast for cast in votes if cast.vote == "reject"]
    if any(not cast.why for cast in rejecting):
        return "explicit_reject"
    return "time_limit" if any(cast.why == "late" for cast in rejecting) else "default_reject"


@attrs.define(kw_only=True)
class Ballot:
    """A ballot that is running. ``id`` is the number of the entry that opened it."""

    id: int
    subject: Subject
    phases: int
    time_limit: float
    electorate: tuple[ProviderId, ...]
    phase: int = 1
    state: bytes | None = None  # the newest that was proposed in it
    messages: tuple[VoteMessage, ...] = ()
    gone: tuple[ProviderId, ...] = ()  # joiners that died meanwhile
    defaults: tuple[tuple[int, Cast], ...] = ()  # of phases that have ended

    def led_on(self, votes: Iterable[Cast]) -> None:
        """The phase has ended with these votes, and another one follows."""
        new = ((self.phase, cast) for cast in votes if cast.why)
        self.defaults = (*self.defaults, *new)[-DEFAULTS_KEPT:]
        self.phase += 1

    def heard(self, phase: int, messages: Iterable[tuple[ProviderId, bytes]]) -> None:
        """These came with the votes of ``phase``."""
        new = (VoteMessage(provider, phase, payload) for provider, payload in messages)
        kept = (*self.messages, *new)[-VOTE_MESSAGES_KEPT:]
        size = sum(len(one.payload) for one in kept)
        while size > VOTE_MESSAGES_BYTES_MAX:
            size -= len(kept[0].payload)
            kept = kept[1:]
        self.messages = kept
