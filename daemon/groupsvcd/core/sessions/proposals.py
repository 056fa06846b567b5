"""What a provider proposes, from the request to how it ended.

A proposal is an entry: once it was submitted it is ordered, and has its turn or not. At the deadline of its program the
node has it withdrawn, which is an entry, too. Whichever comes first decides: if the withdrawal, it never had its turn
and *failed*; if it had, its outcome is the answer. Only if neither is known a moment later, because the node is cut off
or a ballot runs, it is *unknown*; then ``OutcomeAsk`` tells later.
"""

from __future__ import annotations

from collections.abc import Callable

from groupsvc.wire.client_messages import (
    CastVote,
    ChangeAttributesAsk,
    ChangeStateAsk,
    Done,
    ExpelAsk,
    LeaveAsk,
    OutcomeIs,
    Problem,
    ProposalAsk,
    SendAsk,
)
from groupsvc.wire.limits import PAYLOAD_BYTES_MAX, VOTE_MESSAGES_BYTES_MAX
from groupsvc.wire.notices import Ended, Refused

from ..domain.attributes import problem_with_attributes
from ..groups import commands as cmd
from ..groups.ballot_box import VoteProblem
from ..groups.local_group import LocalGroup
from ..groups.papers import Paper
from .calls import LAST_WORD_S, Call
from .membership import Membership
from .refusals import WORDS
from .session import Session

NOT_IN = "is a subscription, or has not joined yet; join the group to take part"

TARGETS_RECORDED_MAX = 20
"""Of those who are to be expelled, in a record for an audit."""

VOTE_PROBLEMS: dict[VoteProblem, str] = {
    "past phase": "that phase is over, or never was; nothing was counted",
    "no vote": "this provider has no vote in that phase; nothing was counted",
    "voted already": "this provider has voted in that phase; its first vote counts",
    "too large": (
        f"its message has more than its equal share of {VOTE_MESSAGES_BYTES_MAX} bytes (VOTE_MESSAGES_BYTES_MAX), or"
        f" its state and the message that is voted on more than {PAYLOAD_BYTES_MAX} (PAYLOAD_BYTES_MAX); nothing was"
        " counted, vote again with less"
    ),
}


def provider_of(session: Session, request_id: int, member: int) -> Membership | None:
    """The provider that a request is about; if it is none of this session's, that is answered."""
    part = session.parts.get(member)
    if isinstance(part, Membership) and part.provider is not None:
        return part
    if part is None:
        text = f"member {member} is none of this session, or no member any more; join again"
        session.tell(Problem(request_id, "failed", "not a member", text))
    else:
        session.tell(Problem(request_id, "usage", "usage", f"member {member} {NOT_IN}"))
    return None


class Proposing:
    """One proposal that is under way."""

    def __init__(self, session: Session, request_id: int, timeout: float, local: LocalGroup) -> None:
        self._local = local
        self._processes = session.desk.processes
        self._trouble = session.desk.trouble
        self.number = session.proposal_of(request_id)
        self._call: Call = session.call(request_id, timeout, self._is_late)
        self._call.proposal = (*self._processes.me, self.number)

    def propose(self, command: cmd.AnyProposal) -> None:
        """Off it goes."""
        if self._local.is_full:
            self._call.fail("full", "too much waits for room in this group on this node; try later")
            return
        self._call.may_have_happened = True
        self._local.propose(command, self._decided)

    def _decided(self, how: Ended | Refused | None) -> None:
        call = self._call
        if isinstance(how, Ended):
            call.answer(OutcomeIs(call.id, (*self._processes.me, self.number), how.seq, how.outcome))
        elif isinstance(how, Refused):
            code, text = WORDS[how.why]
            version = self._local.group.state_version if how.why == "stale_version" else None
            call.fail(code, text.format(version=version), version)
        else:
            call.not_known("lost", "this node has lost the group; look at it from elsewhere")

    def _is_late(self) -> None:
        self._call.extend(LAST_WORD_S, self._is_too_late)
        self._local.withdraw(self.number)

    def _is_too_late(self) -> None:
        why = self._trouble.why_undone("not decided in time")
        self._call.not_known("timed out", f"{why}; its outcome can be asked for later")


def _propose(session: Session, ask: ProposalAsk, make: Callable[[int, int], cmd.AnyProposal]) -> None:
    part = provider_of(session, ask.id, ask.member)
    if part is not None and part.local is not None:
        proposing = Proposing(session, ask.id, ask.timeout, part.local)
        proposing.propose(make(proposing.number, part.member))


def change_state(session: Session, ask: ChangeStateAsk) -> None:
    """A new state value."""
    _propose(session, ask, lambda number, provider: cmd.ChangeState(
        number, provider, ask.phases, ask.time_limit, ask.value, ask.if_version, ask.fail_if_busy,
    ))  # fmt: skip


def send(session: Session, ask: SendAsk) -> None:
    """A message by ballot."""
    _propose(session, ask, lambda number, provider: cmd.SendMessage(
        number, provider, ask.phases, ask.time_limit, ask.payload, ask.fail_if_busy,
    ))  # fmt: skip


def expel(session: Session, ask: ExpelAsk) -> None:
    """Others are to be removed."""
    part = session.parts.get(ask.member)
    if isinstance(part, Membership) and part.provider in ask.targets:
        session.tell(Problem(ask.id, "usage", "usage", "a provider expels others; to go itself it leaves"))
        return
    if isinstance(part, Membership):
        targets = ["/".join(map(str, target)) for target in ask.targets[:TARGETS_RECORDED_MAX]]
        session.desk.audit.record(
            "expel_asked", session.desk.access.name_of(session.principal), name=part.group, targets=targets,
            reason=ask.reason,
        )  # fmt: skip
    _propose(session, ask, lambda number, provider: cmd.Expel(
        number, provider, ask.phases, ask.time_limit, ask.targets, ask.reason, ask.fail_if_busy,
    ))  # fmt: skip


def change_attributes(session: Session, ask: ChangeAttributesAsk) -> None:
    """Other attributes, if they make sense together with those that stay."""
    part = session.parts.get(ask.member)
    if isinstance(part, Membership) and part.local is not None:
        problem = problem_with_attributes({**part.local.group.rules.attributes, **ask.changes})
        if problem:
            session.tell(Problem(ask.id, "usage", "usage", problem))
            return
    _propose(session, ask, lambda number, provider: cmd.ChangeAttributes(
        number, provider, ask.phases, ask.time_limit, ask.changes, ask.fail_if_busy,
    ))  # fmt: skip


def leave(session: Session, ask: LeaveAsk) -> None:
    """A provider wants to leave."""
    part = provider_of(session, ask.id, ask.member)
    if part is not None and part.local is not None:
        proposing = Proposing(session, ask.id, ask.timeout, part.local)
        proposing.propose(cmd.Leave(proposing.number, part.member, cmd.BY_DEFAULT, cmd.BY_DEFAULT, ask.code))


def vote(session: Session, ask: CastVote) -> None:
    """A provider votes."""
    part = provider_of(session, ask.id, ask.member)
    if part is None or part.local is None:
        return
    paper = Paper(part.member, ask.vote, ask.state, ask.message, ask.default_vote)
    problem = part.local.vote(ask.ballot, ask.phase, paper)
    if problem:
        text = f"phase {ask.phase} of ballot {ask.ballot}: {VOTE_PROBLEMS[problem]}"
        session.tell(Problem(ask.id, "failed", problem, text))
    else:
        desk = session.desk
        desk.turn.audit("voted", group=part.local.id, ballot=ask.ballot, phase=ask.phase, vote=ask.vote,
                        provider=[*desk.processes.me, part.member])  # fmt: skip
        session.tell_in_passing(Done(ask.id))  # the end of the phase follows, and says more
