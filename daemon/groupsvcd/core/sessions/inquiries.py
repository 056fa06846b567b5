"""What a session asks without wanting anything changed: so whatever is not answered simply failed.

But for how a proposal ended: if that is not known here, it is not known, and nobody may take it for a failure.
"""

from __future__ import annotations

from typing import Any

from groupsvc.wire.client_messages import (
    CatchUpAsk,
    CaughtUp,
    GroupsAre,
    GroupsAsk,
    OutcomeAsk,
    OutcomeIs,
    OutcomesAre,
    Problem,
    WhyAsk,
)
from groupsvc.wire.table_lines import GroupLine

from ..groups.arrivals import Arrival
from ..groups.local_group import LocalGroup
from ..nodegroups.user import Form
from .attributes import OURS
from .membership import Membership
from .proposals import provider_of
from .session import Session
from .subscription import Subscription


def catch_up(session: Session, ask: CatchUpAsk) -> None:
    """Answer once everything that was ordered before this has been told."""
    part = session.parts.get(ask.member)
    local = part.local if isinstance(part, Membership | Subscription) else None
    if local is None:
        text = f"member {ask.member} is no member of a group in this session; join or subscribe first"
        session.tell(Problem(ask.id, "failed", "not a member", text))
        return
    trouble = session.desk.trouble

    def late() -> None:
        call.fail("timed out", trouble.why_undone("its leader did not answer in time"))

    call = session.call(ask.id, ask.timeout, late)

    def ask_the_stream() -> None:
        local.sync(lambda seq: call.answer(CaughtUp(ask.id, seq)), call.give_up)

    if isinstance(part, Membership):
        part.when_briefed(ask_the_stream)  # the answer must not overtake what it is still to be told
    else:
        ask_the_stream()


def outcome(session: Session, ask: OutcomeAsk) -> None:
    """How a proposal ended, as far as that is still known."""
    part = provider_of(session, ask.id, ask.member)
    if part is None or part.local is None:
        return
    found = part.local.group.ledger.find(ask.proposal)
    if found is None:
        named = "/".join(str(one) for one in ask.proposal)
        text = f"proposal {named} in {part.group!r} has not ended here yet, or too long ago (OUTCOMES_KEPT)"
        session.tell(Problem(ask.id, "unknown", "not known", text, ask.proposal))
    else:
        session.tell(OutcomeIs(ask.id, ask.proposal, *found))


def groups(session: Session, ask: GroupsAsk) -> None:
    """All groups of the domain, but for those in which the asker may do nothing."""

    def sees(group: str) -> bool:
        return session.desk.access.sees(session.principal, group)

    def reply(answer: dict[str, Any]) -> GroupsAre:
        return GroupsAre(ask.id, tuple(_line(record) for record in answer["groups"] if sees(record["name"])))

    session.desk.requests.question(-session.number, ask.id, ask.timeout, "groups", "", reply)


def _line(record: dict[str, Any]) -> GroupLine:
    view = record["active"]
    attributes = {name: value for name, value in record["attributes"].items() if name not in OURS}
    servers = tuple(str(server[0]) for server in view["servers"])
    return GroupLine(record["name"], record["id"], view["epoch"], view["leader"], servers, attributes)


def why(session: Session, ask: WhyAsk) -> None:
    """How the newest proposals of a group ended: whoever carries it knows, so this node does for a moment."""
    desk = session.desk

    def admitted(local: LocalGroup) -> None:
        call.answer(OutcomesAre(ask.id, local.group.ledger.outcomes, local.group.view))
        desk.turn.round_trip.append(local.leave_if_idle)

    def late() -> None:
        desk.processes.arrivals.give_up(ask.group, arrival)
        call.fail("timed out", desk.trouble.why_not_there("this node did not get to the group in time"))

    call = session.call(ask.id, ask.timeout, late)
    arrival = Arrival({}, Form.NEVER, admitted, call.fail)
    desk.processes.arrivals.come(ask.group, arrival)
