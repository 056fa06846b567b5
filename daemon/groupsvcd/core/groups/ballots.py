"""One ballot: who votes, what the votes of a phase decide, and why it ended as it did (GS-23 to GS-26).

Any REJECT ends it; else any CONTINUE leads to another phase; else it is approved. If the proposer fixed the number of
phases, CONTINUE and APPROVE both lead on until the last one. Who has a vote is settled when a phase begins.

What is said with a vote that counts is shown to everybody. All of a phase goes into one entry and one frame, so every
voter has an equal share of what fits: more is refused where it is said, whatever the others say, and nothing that was
taken is left out afterwards. A common pot, first come first served, would have to be asked for at the leader.

The rules are functions of what stands in the stream: the leader says who voted what, everybody draws the conclusion.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

import attrs

from groupsvc.wire.limits import VOTE_MESSAGES_BYTES_MAX, vote_message_bytes_max
from groupsvc.wire.notices import Cast, ProviderId, Reason, Subject, VoteMessage

from .commands import DYNAMIC

PHASES_MAX = 1_000
"""More are refused where they are asked for. Where nobody answers, each is over as soon as it has begun."""

VOTE_MESSAGES_KEPT = 100
"""With so many, those that came with votes of earlier phases were shown and are gone, the oldest first."""

DEFAULTS_KEPT = 100
"""Of the default votes of earlier phases: an outcome names the newest; that there were any is in its reason."""


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

    @property
    def message_bytes_max(self) -> int:
        """What one vote may say in this phase."""
        return vote_message_bytes_max(len(self.electorate))

    def heard(self, phase: int, messages: Iterable[tuple[ProviderId, bytes]]) -> None:
        """These came with the votes of ``phase``: they stay until they are shown, all of them.

        Those of phases before were shown; the newest of them are shown again as far as there is room.
        """
        new = tuple(VoteMessage(provider, phase, payload) for provider, payload in messages)
        room = VOTE_MESSAGES_BYTES_MAX - sum(len(one.payload) for one in new)
        first = len(self.messages)
        while first > 0 and len(self.messages) - first + len(new) < VOTE_MESSAGES_KEPT:
            room -= len(self.messages[first - 1].payload)
            if room < 0:
                break
            first -= 1
        self.messages = (*self.messages[first:], *new)
