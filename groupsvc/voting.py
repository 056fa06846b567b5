"""Proposals, votes, and how it ended: what ``on_proposal`` is given and what every ``Outcome`` says.

A asks, all vote, phase by phase, and everybody is told the same outcome with the same tally: who voted what in the last
phase, for whom the default was cast, then or in a phase before, and why. Nobody should have to guess why a join was
refused.

A ``Proposal`` is a value, and one thing more: ``vote`` reaches back to the session it came from. It may be called from
any thread, once, while the phase lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs

from .errors import Rejected, UsageError
from .views import Provider, View, provider_of, text_of
from .voting_words import Cause, DefaultCast, ProposalKind, Reason, Vote
from .wire import notices
from .wire.limits import PAYLOAD_BYTES_MAX, vote_message_bytes_max

Who = Callable[[notices.ProviderId], Provider]
"""Finds the provider behind an id."""


@attrs.frozen
class Answer:
    """A vote that says more: another state value, a message to all, another default vote from now on.

    Of ``limits.vote_messages_bytes_max`` for the messages of one phase each who votes has an equal share. What is said
    with a vote that counts is shown to all providers.
    """

    vote: Vote
    state: bytes | None = None
    message: bytes | None = None
    default_vote: Vote | None = None


CastHook = Callable[["Proposal", Answer | None], None]


class _Manual:
    """The type of ``MANUAL``."""

    def __repr__(self) -> str:
        return "groupsvc.MANUAL"


MANUAL: Final = _Manual()
"""``on_proposal=MANUAL``: the program votes on what it reads in ``Proposed`` events."""


@attrs.frozen
class VoteMessage:
    """What a provider said with its vote."""

    provider: Provider
    phase: int
    payload: bytes


@attrs.frozen
class Counted:
    """One vote as it was counted; ``default`` says why it is not the provider's own, if it is not."""

    provider: Provider
    vote: Vote
    default: DefaultCast = DefaultCast.NOT

    def __str__(self) -> str:
        why = {
            DefaultCast.NOT: "",
            DefaultCast.FAILED: " (by default: it has failed)",
            DefaultCast.LATE: " (by default: it did not vote in time)",
            DefaultCast.RAISED: " (by default: its program raised an error or gave no vote)",
            DefaultCast.UNRESPONSIVE: " (by default: it does not answer)",
        }[self.default]
        return f"{self.provider} {self.vote.name}{why}"


@attrs.frozen(kw_only=True)
class Proposal:
    """What is to be voted on, in one phase of its ballot.

    ``deadline`` is when the phase ends by this process's own ``groupsvc.clock.now()``, ``time_limit`` how long it was
    when it began. ``joining`` and so on are empty where the kind has none.
    """

    id: str
    group: str
    kind: ProposalKind
    phase: int
    proposer: Provider | None = None
    joining: tuple[Provider, ...] = ()
    leaving: tuple[Provider, ...] = ()
    cause: Cause | None = None
    code: int = 0
    reason: str = ""
    state: bytes | None = None
    if_version: int | None = None
    payload: bytes = b""
    attributes: tuple[tuple[str, notices.AttributeValue], ...] = ()
    messages: tuple[VoteMessage, ...] = ()
    electorate: tuple[Provider, ...] = ()
    time_limit: float = 0.0
    deadline: float = 0.0
    ballot: int = 0
    _cast: CastHook | None = attrs.field(default=None, repr=False, eq=False)

    def vote(
        self,
        vote: Vote | Answer,
        *,
        state: bytes | None = None,
        message: bytes | None = None,
        default_vote: Vote | None = None,
    ) -> None:
        """Vote in this phase; does not wait. ``TimedOut`` if the phase is over, ``UsageError`` if voted already.

        Where there are rules, what is said with a vote needs the right to say it. If it is missing the vote does not
        count, ``PermissionDenied`` is reported as an error of a callback is, and the program can vote again.
        """
        if self._cast is None:
            raise UsageError(
                f"{self.in_words} in group {self.group!r} is not open for a vote of yours", group=self.group
            )
        answer = vote if isinstance(vote, Answer) else Answer(vote, state, message, default_vote)
        problem = problem_with_answer(answer, self)
        if problem is not None:
            raise UsageError(f"cannot vote on {self.in_words} in group {self.group!r}: {problem}", group=self.group)
        self._cast(self, answer)

    @property
    def in_words(self) -> str:
        """What it is about, for a message or a log."""
        match self.kind:
            case ProposalKind.JOIN:
                return f"the join of {_names(self.joining)}"
            case ProposalKind.LEAVE:
                return f"the leave of {_names(self.leaving)}"
            case ProposalKind.FAILURE:
                return f"the failure of {_names(self.leaving)}"
            case ProposalKind.EXPEL:
                return f"the expulsion of {_names(self.leaving)}"
            case ProposalKind.STATE:
                return "a change of the state value"
            case ProposalKind.MESSAGE:
                return "a message"
            case ProposalKind.ATTRIBUTES:
                return f"a change of {', '.join(name for name, _ in self.attributes) or 'attributes'}"


@attrs.frozen(kw_only=True)
class Outcome:
    """How a proposal ended, and why. It is false when rejected.

    ``tally`` has the votes of the last phase; ``defaults`` those that were cast by default in earlier ones, each with
    its phase (the newest hundred).
    """

    proposal: Proposal
    approved: bool
    phases: int
    reason: Reason
    tally: tuple[Counted, ...] = ()
    messages: tuple[VoteMessage, ...] = ()
    left_out: tuple[Provider, ...] = ()
    state: bytes | None = None
    view: View | None = attrs.field(default=None, repr=False)
    defaults: tuple[tuple[int, Counted], ...] = ()

    def __bool__(self) -> bool:
        return self.approved

    def require(self) -> Outcome:
        """Itself if approved, else ``Rejected``."""
        if not self.approved:
            raise Rejected(self, view=self.view)
        return self

    @property
    def in_words(self) -> str:
        """What it was about, how it ended, why, and who voted how."""
        verdict = "approved" if self.approved else "rejected"
        votes = "; ".join(str(one) for one in self.tally) or "nobody voted"
        why = f"{self.proposal.in_words} in group {self.proposal.group!r} was {verdict}: {self.reason.name}"
        earlier = "".join(f"; in phase {phase} {one}" for phase, one in self.defaults)
        return f"{why} in phase {self.phases} ({votes}{earlier})"


# --- From the wire -----------------------------------------------------------------------------------------


_TOO_MANY = f"more than the {PAYLOAD_BYTES_MAX} allowed (limits.payload_bytes_max)"


def problem_with_answer(answer: object, proposal: Proposal) -> str | None:
    """Why this cannot be a vote in this phase, or None: whatever a daemon would refuse is refused here."""
    if not isinstance(answer, Answer) or not isinstance(answer.vote, Vote):
        return f"{answer!r} is no Vote and no Answer"
    for name in ("state", "message"):
        value = getattr(answer, name)
        if value is not None and not isinstance(value, bytes):
            return f"{name} is a {type(value).__name__}, it must be bytes"
    state, message = len(answer.state or b""), len(answer.message or b"")
    voters = len(proposal.electorate)
    share = vote_message_bytes_max(voters)
    if message > share:
        return (
            f"message has {message} bytes, more than the {share} that each of {voters} may say in this phase"
            " (limits.vote_messages_bytes_max, in equal shares)"
        )
    if state and state + len(proposal.payload) > PAYLOAD_BYTES_MAX:
        and_payload = f" and the message that is voted on {len(proposal.payload)}" if proposal.payload else ""
        return f"state has {state} bytes{and_payload}, {_TOO_MANY}"
    if answer.default_vote not in (None, Vote.APPROVE, Vote.REJECT):
        return f"default_vote is {answer.default_vote!r}; it must be Vote.APPROVE or Vote.REJECT"
    return None


def proposal_of(group: str, subject: notices.Subject, who: Who, *, ballot: int, phase: int, **more: Any) -> Proposal:
    """A proposal as applications see it; ``more`` is what only an open one has."""
    return Proposal(
        id=text_of(subject.proposals[0]) if subject.proposals else f"{group}@{ballot}",
        group=group, kind=ProposalKind(subject.kind), phase=phase, ballot=ballot,
        proposer=None if subject.proposer is None else who(subject.proposer),
        joining=tuple(provider_of(one) for one in subject.joining),
        leaving=tuple(who(one) for one in subject.leaving),
        cause=None if subject.cause is None else Cause(subject.cause),
        code=subject.code, reason=subject.reason, state=subject.state,
        if_version=None if subject.if_version < 0 else subject.if_version,
        payload=subject.payload, attributes=subject.changes, **more,
    )  # fmt: skip


def outcome_of(group: str, found: notices.Outcome, who: Who, view: View | None) -> Outcome:
    """An outcome as applications see it."""
    proposal = proposal_of(group, found.subject, who, ballot=found.ballot, phase=found.phases)
    return Outcome(
        proposal=proposal, approved=found.approved, phases=found.phases, reason=Reason(found.reason),
        tally=tally_of(found.votes, who), messages=messages_of(found.messages, who),
        left_out=tuple(who(one) for one in found.left_out), state=found.subject.state, view=view,
        defaults=tuple((phase, _counted(one, who)) for phase, one in found.defaults),
    )  # fmt: skip


def tally_of(votes: tuple[notices.Cast, ...], who: Who) -> tuple[Counted, ...]:
    """Who voted what, and for whom a default was cast."""
    return tuple(_counted(one, who) for one in votes)


def _counted(cast: notices.Cast, who: Who) -> Counted:
    return Counted(who(cast.provider), Vote(cast.vote), DefaultCast(cast.why))


def messages_of(messages: tuple[notices.VoteMessage, ...], who: Who) -> tuple[VoteMessage, ...]:
    """What was said with votes."""
    return tuple(VoteMessage(who(one.provider), one.phase, one.payload) for one in messages)


def _names(providers: tuple[Provider, ...]) -> str:
    return ", ".join(str(one) for one in providers) or "nobody"
