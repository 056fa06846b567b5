"""Which right every request of a program needs, and in which group.

Every kind of request stands in one of two tables, with what it needs or with why it needs nothing. One that stands in
neither is nobody's to allow: it halts the daemon, and a test that goes through all kinds is red long before.

What a provider does to itself needs nothing: to vote, to leave, to come to a barrier. What else it says with its vote
does: a vote on its own leave could otherwise change the state of a group in which it may propose nothing. The vote is
then refused as a whole. It does not count, the phase waits for it as before, and a bare one is always taken.

Whoever has no right to *create* may still join without saying whether the group is to be there: it then joins only one
that is (``membership``). Where there are no rules nothing is judged here; who may list keys of nodes is judged there as
well (``Access.names_admin``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from groupsvc.wire.client_messages import (
    AnyClientRequest,
    BarrierAsk,
    BreakAsk,
    CastVote,
    CatchUpAsk,
    ChangeAttributesAsk,
    ChangeStateAsk,
    CloseSession,
    ConfigAsk,
    ConfigSet,
    DrainAsk,
    ExpelAsk,
    GoodbyeAsk,
    GroupsAsk,
    HandOverAsk,
    Hello,
    JoinAsk,
    LeaveAsk,
    LookUpAsk,
    Multicast,
    OpenSession,
    OptionsAsk,
    OutcomeAsk,
    Overrun,
    ResumeSession,
    RoundAsk,
    SealCheckpoint,
    SendAsk,
    SessionAlive,
    StatisticsAsk,
    StatusAsk,
    StoreBlock,
    SubmitOutside,
    SubscribeAsk,
    SurveyAsk,
    WhyAsk,
)
from groupsvc.wire.enrolment_messages import NODE_KEY_PREFIX, EnrolAsk, NodeKeysAsk, RevokeAsk, TokenAsk

from ..access import Verb
from ..invariants import invariant

GroupOf = Callable[[int], str]
"""The group of a member of the session that asks; empty if it is none, which is answered elsewhere."""

Need = Callable[[Any, GroupOf], tuple[tuple[Verb, str], ...]]
"""The rights that a request needs, each with its group."""


def _in_the_group(verb: Verb) -> Need:
    return lambda ask, group_of: ((verb, ask.group),)


def _as_a_provider(verb: Verb) -> Need:
    return lambda ask, group_of: ((verb, group_of(ask.member)),)


def _admin(ask: Any, group_of: GroupOf) -> tuple[tuple[Verb, str], ...]:
    return (("admin", ""),)


def _join(ask: JoinAsk, group_of: GroupOf) -> tuple[tuple[Verb, str], ...]:
    return (("join", ask.group), ("create", ask.group)) if ask.create else (("join", ask.group),)


def _look_up(ask: LookUpAsk, group_of: GroupOf) -> tuple[tuple[Verb, str], ...]:
    return (("create" if ask.form else "subscribe", ask.group),)


def _setting(ask: ConfigAsk, group_of: GroupOf) -> tuple[tuple[Verb, str], ...]:
    return (("admin", ""),) if ask.key.startswith(NODE_KEY_PREFIX) else ()


def _vote(ask: CastVote, group_of: GroupOf) -> tuple[tuple[Verb, str], ...]:
    group, needed = group_of(ask.member), []
    if ask.state is not None or ask.default_vote is not None:
        needed.append(("propose", group))
    if ask.message is not None:
        needed.append(("send", group))
    return tuple(needed)  # type: ignore[arg-type]


NEEDS: dict[type, Need] = {
    JoinAsk: _join,
    SubscribeAsk: _in_the_group("subscribe"),
    WhyAsk: _in_the_group("subscribe"),
    SubmitOutside: _in_the_group("send"),
    LookUpAsk: _look_up,
    Multicast: _as_a_provider("send"),
    SendAsk: _as_a_provider("send"),
    ChangeStateAsk: _as_a_provider("propose"),
    ChangeAttributesAsk: _as_a_provider("propose"),
    ExpelAsk: _as_a_provider("expel"),
    CastVote: _vote,
    ConfigAsk: _setting,
    ConfigSet: _admin,
    HandOverAsk: _admin,
    DrainAsk: _admin,
    SurveyAsk: _admin,
    TokenAsk: _admin,
    RevokeAsk: _admin,
    NodeKeysAsk: _admin,
}
"""What needs a right, at least sometimes."""

NEEDS_NONE: dict[type, str] = {
    Hello: "who may connect is decided at the door",
    OpenSession: "a session alone is nowhere",
    ResumeSession: "it needs the session's secret, and the same principal",
    SessionAlive: "it says that the program runs",
    CloseSession: "to go is always allowed",
    LeaveAsk: "to go is always allowed",
    GoodbyeAsk: "to go is always allowed",
    Overrun: "to go is always allowed",
    BarrierAsk: "who is a provider may wait with the others",
    BreakAsk: "who waits may stop waiting, and a barrier without it cannot be passed",
    RoundAsk: "it tells a provider how a round ended that it was, or could have been, a party of",
    StoreBlock: "a group with machines asks its providers for checkpoints",
    SealCheckpoint: "a group with machines asks its providers for checkpoints",
    CatchUpAsk: "it tells when a member has been told what it is told anyway",
    OutcomeAsk: "it tells a provider what all providers were told",
    GroupsAsk: "it shows only what the asker may see",
    StatisticsAsk: "of groups it shows only what the asker may see, and beside them the numbers of a daemon",
    StatusAsk: "everybody who is let in may know which nodes there are and who is name server",
    OptionsAsk: "everybody who is let in may read settings; keys of nodes are not among them",
    EnrolAsk: "only who was let in by a token can do it, and who was can do nothing else",
}
"""What needs none, and why."""


def missing_right(
    request: AnyClientRequest, may: Callable[[Verb, str], bool], group_of: GroupOf
) -> tuple[Verb, str] | None:
    """The first right that this request needs and ``may`` denies, and where."""
    kind = type(request)
    need = NEEDS.get(kind)
    if need is None:
        invariant(kind in NEEDS_NONE, f"nobody has said which right a {kind.__name__} needs (sessions/rights.py)")
        return None
    for verb, group in need(request, group_of):
        if (group or verb == "admin") and not may(verb, group):
            return verb, group
    return None
