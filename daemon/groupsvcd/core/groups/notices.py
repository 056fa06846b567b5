"""What happened in a process group, as its members are told: one frozen value each, in the order of the stream.

Providers are told everything; subscribers only what was approved, and never of a vote (GS-36). Every value carries the
number of the entry it follows from; several may follow from one entry.
"""

from __future__ import annotations

from typing import Literal

import attrs

from ..views import AttributeValue
from .commands import Cast, ProposalId, ProviderId

Kind = Literal["join", "leave", "failure", "expel", "state", "message", "attributes"]
Cause = Literal["leave", "failure", "node_failure", "expelled", "goodbye", "overrun"]
Reason = Literal["explicit_approve", "explicit_reject", "default_approve", "default_reject", "time_limit", "one_phase"]
Refusal = Literal["busy", "stale_version", "not_a_member", "withdrawn", "full"]
"""Why a proposal never had its turn: the family of what its proposer is told is "certainly did not happen"."""


@attrs.frozen
class Provider:
    """A full member of the group."""

    id: ProviderId
    name: str
    data: bytes
    joined_seq: int

    @property
    def node(self) -> tuple[str, int]:
        """Where its process runs."""
        return self.id[:2]


@attrs.frozen
class GroupView:
    """The group after one entry: the same number, the same view everywhere."""

    seq: int
    fence: int
    providers: tuple[Provider, ...]
    state: bytes
    state_version: int
    default_vote: str


@attrs.frozen
class VoteMessage:
    """What a provider said with its vote."""

    provider: ProviderId
    phase: int
    payload: bytes


@attrs.frozen(kw_only=True)
class Subject:
    """What a ballot is about."""

    kind: Kind
    proposals: tuple[ProposalId, ...] = ()  # none if the service itself proposes, as for a failure
    proposer: ProviderId | None = None
    joining: tuple[Provider, ...] = ()
    leaving: tuple[ProviderId, ...] = ()
    cause: Cause | None = None
    code: int = 0
    reason: str = ""
    state: bytes | None = None
    if_version: int = -1
    payload: bytes = b""
    changes: tuple[tuple[str, AttributeValue], ...] = ()


@attrs.frozen(kw_only=True)
class Outcome:
    """How a ballot ended, and why."""

    ballot: int  # the entry that opened it
    subject: Subject
    approved: bool
    phases: int
    reason: Reason
    votes: tuple[Cast, ...] = ()  # of the last phase
    messages: tuple[VoteMessage, ...] = ()
    left_out: tuple[ProviderId, ...] = ()  # joiners that were no more when it ended


@attrs.frozen
class Notice:
    """The common form; ``seq`` is the entry."""

    seq: int


@attrs.frozen
class Joined(Notice):
    """New providers: a batch is one notice."""

    providers: tuple[Provider, ...]


@attrs.frozen
class Failing(Notice):
    """A provider is no more. It is listed until ``Left`` follows, in its turn."""

    provider: ProviderId
    cause: Cause


@attrs.frozen
class Left(Notice):
    """These are providers no longer."""

    providers: tuple[ProviderId, ...]
    cause: Cause
    code: int = 0
    reason: str = ""


@attrs.frozen
class StateChanged(Notice):
    """A new state value."""

    value: bytes
    version: int


@attrs.frozen
class Message(Notice):
    """A message to all providers. ``sender`` with number 0 is no provider."""

    sender: ProviderId
    payload: bytes


@attrs.frozen(kw_only=True)
class PhaseOpened(Notice):
    """The providers of ``electorate`` are asked to vote."""

    ballot: int
    phase: int
    subject: Subject
    electorate: tuple[ProviderId, ...]
    time_limit: float
    messages: tuple[VoteMessage, ...]


@attrs.frozen(kw_only=True)
class PhaseClosed(Notice):
    """A phase ended, and another one follows; ``votes`` say who was late or dead."""

    ballot: int
    phase: int
    votes: tuple[Cast, ...]


@attrs.frozen
class Ended(Notice):
    """A ballot, or a proposal without one, was decided."""

    outcome: Outcome


@attrs.frozen
class Refused(Notice):
    """A proposal never had its turn: for its proposer alone."""

    proposal: ProposalId
    why: Refusal


@attrs.frozen
class AttributesChanged(Notice):
    """The group's attributes are these from now on."""

    changes: tuple[tuple[str, AttributeValue], ...]


@attrs.frozen
class Responsive(Notice):
    """A provider does not answer its daemon, or does so again."""

    provider: ProviderId
    does: bool


@attrs.frozen
class Emptied(Notice):
    """The last provider has left, and nobody is about to come."""


AnyNotice = (
    Joined | Failing | Left | StateChanged | Message | PhaseOpened | PhaseClosed | Ended | Refused
    | AttributesChanged | Responsive | Emptied
)  # fmt: skip

FOR_SUBSCRIBERS = (Joined, Left, StateChanged, AttributesChanged, Emptied)
"""What was approved, and nothing else."""
