"""What happened in a process group, as its members are told: one frozen value each, in the order of the stream.

The daemon's copy of a group makes these, the session passes them on, and the client library reads them: one form from
the entry to the application, so that nothing is translated, and nothing lost, on the way.

Providers are told everything; subscribers only what was approved, and never of a vote (GS-36). Every notice carries the
number of the entry it follows from; several may follow from one entry. Numbers of notices and the order of fields never
change: durable groups keep some of these on disk.
"""

from __future__ import annotations

from typing import Literal

import msgspec

AttributeValue = bool | int | float | str | list[str] | None

ProviderId = tuple[str, int, int]
"""Node, incarnation, number there: never used again."""

ProposalId = tuple[str, int, int]
"""The same for proposals."""

Vote = Literal["approve", "continue", "reject"]
DefaultVote = Literal["approve", "reject"]
Kind = Literal["join", "leave", "failure", "expel", "state", "message", "attributes"]
Cause = Literal["leave", "failure", "node_failure", "expelled", "goodbye", "overrun"]
Reason = Literal["explicit_approve", "explicit_reject", "default_approve", "default_reject", "time_limit", "one_phase"]
Refusal = Literal["busy", "stale_version", "not_a_member", "withdrawn", "full", "ended"]
"""Why a proposal never had its turn: the family of what its proposer is told is "certainly did not happen"."""


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of all values here."""


class Cast(Value):
    """One vote as it was counted. ``why``: "" if the provider cast it itself, else why a default was cast for it."""

    provider: ProviderId
    vote: Vote
    why: Literal["", "failed", "late", "raised", "unresponsive"] = ""


class Provider(Value):
    """A full member of the group."""

    id: ProviderId
    name: str
    data: bytes
    joined_seq: int

    @property
    def node(self) -> tuple[str, int]:
        """Where its process runs."""
        return self.id[:2]


class GroupView(Value):
    """The group after one entry: the same number, the same view everywhere."""

    seq: int
    fence: int
    providers: tuple[Provider, ...]
    state: bytes
    state_version: int
    default_vote: DefaultVote
    quorum_lost_seq: int = 0  # the newest ``Fenced`` with ``tail_may_be_lost``; 0: there was none


class VoteMessage(Value):
    """What a provider said with its vote."""

    provider: ProviderId
    phase: int
    payload: bytes


class Subject(Value, kw_only=True):
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
    codes: tuple[int, ...] = ()  # of those who leave, in their order, if they differ; ``code`` is 0 then


class Outcome(Value, kw_only=True):
    """How a ballot ended, and why."""

    ballot: int  # the entry that opened it
    subject: Subject
    approved: bool
    phases: int
    reason: Reason
    votes: tuple[Cast, ...] = ()  # of the last phase
    messages: tuple[VoteMessage, ...] = ()
    left_out: tuple[ProviderId, ...] = ()  # joiners that were no more when it ended
    defaults: tuple[tuple[int, Cast], ...] = ()  # cast by default in earlier phases, with the phase; the newest of them


RoundEnd = Literal["released", "broken", "reset"]
BrokenBy = Literal["", "timeout", "cancelled", "failure", "left", "mismatch", "too_large"]

Said = tuple[ProviderId, int, Literal["break", "continue", "wait"]]
"""What a party has said about a barrier: how many it takes (0: all providers), and what is to be done when one dies."""


class Round(Value, kw_only=True):
    """How a round of a barrier ended: the same for everybody who came to it."""

    barrier: str
    number: int
    end: RoundEnd
    parties: int = 0  # how many it takes; 0: all providers
    arrived: tuple[tuple[ProviderId, bytes], ...] = ()  # with what they brought, in the order of the providers
    broken_by: BrokenBy = ""
    who: tuple[ProviderId, ...] = ()  # whose doing that was
    missing: tuple[tuple[ProviderId, bool], ...] = ()  # providers that had not come, and whether they answer
    waited: float = 0.0  # seconds since the first one came, as the leader saw it
    said: tuple[Said, ...] = ()  # if it broke because they do not agree: what the first said, then those in ``who``


class Notice(Value):
    """The common form; ``seq`` is the entry."""

    seq: int


class Joined(Notice, tag=1):
    """New providers: a batch is one notice."""

    providers: tuple[Provider, ...]
    fence: int


class Failing(Notice, tag=2):
    """A provider is no more. It is listed until ``Left`` follows, in its turn."""

    provider: ProviderId
    cause: Cause


class Left(Notice, tag=3):
    """These are providers no longer."""

    providers: tuple[ProviderId, ...]
    cause: Cause
    fence: int
    code: int = 0
    reason: str = ""


class StateChanged(Notice, tag=4):
    """A new state value."""

    value: bytes
    version: int


class Message(Notice, tag=5):
    """A message to all providers. ``sender`` with number 0 is no provider."""

    sender: ProviderId
    payload: bytes


class PhaseOpened(Notice, tag=6, kw_only=True):
    """The providers of ``electorate`` are asked to vote."""

    ballot: int
    phase: int
    subject: Subject
    electorate: tuple[ProviderId, ...]
    time_limit: float
    messages: tuple[VoteMessage, ...]


class PhaseClosed(Notice, tag=7, kw_only=True):
    """A phase ended, and another one follows; ``votes`` say who was late or dead."""

    ballot: int
    phase: int
    votes: tuple[Cast, ...]
    default_vote: DefaultVote  # of the group, from now on


class Ended(Notice, tag=8):
    """A ballot, or a proposal without one, was decided."""

    outcome: Outcome
    default_vote: DefaultVote  # of the group, from now on


class Refused(Notice, tag=9):
    """A proposal never had its turn: for its proposer alone."""

    proposal: ProposalId
    why: Refusal


class AttributesChanged(Notice, tag=10):
    """The group's attributes are these from now on."""

    changes: tuple[tuple[str, AttributeValue], ...]


class Responsive(Notice, tag=11):
    """A provider does not answer its daemon, or does so again."""

    provider: ProviderId
    does: bool


class Emptied(Notice, tag=12):
    """The last provider has left, and nobody is about to come."""


class Fenced(Notice, tag=13):
    """Another view carries the group: the fence has grown.

    ``tail_may_be_lost``: the group had lost its quorum, and goes on with the best that was left of it.
    """

    fence: int
    tail_may_be_lost: bool = False


AnyNotice = (
    Joined | Failing | Left | StateChanged | Message | PhaseOpened | PhaseClosed | Ended | Refused
    | AttributesChanged | Responsive | Emptied | Fenced
)  # fmt: skip

FOR_SUBSCRIBERS = (Joined, Left, StateChanged, AttributesChanged, Emptied, Fenced)
"""What was approved, and nothing else."""
