"""Commands that only ask about groups: ``groups``, ``members``, ``why``.

They join nothing and change nothing. ``members`` subscribes for a moment, which the providers do not see.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import (
    Counted,
    DefaultCast,
    Outcome,
    Proposal,
    ProposalKind,
    Provider,
    Reason,
    Session,
    View,
    VoteMessage,
    connect,
)
from .exit_codes import ExitCode
from .options import asking, group_argument
from .tables import aligned, in_json, one_line, shown

if TYPE_CHECKING:
    from .options import Commands

_REASONS = {
    Reason.EXPLICIT_APPROVE: "all voted APPROVE",
    Reason.EXPLICIT_REJECT: "somebody voted REJECT",
    Reason.DEFAULT_APPROVE: "all voted APPROVE, some by default",
    Reason.DEFAULT_REJECT: "REJECT was cast by default",
    Reason.TIME_LIMIT: "the time limit passed",
    Reason.ONE_PHASE: "one phase, nobody was asked",
}
_DEFAULTS = {
    DefaultCast.NOT: "itself",
    DefaultCast.FAILED: "default vote: it has failed",
    DefaultCast.LATE: "default vote: it did not vote in time",
    DefaultCast.RAISED: "default vote: its program raised an error or gave no vote",
    DefaultCast.UNRESPONSIVE: "default vote: it does not answer",
}

HELD_BY_TURNS = ("_lock/", "_election/", "_rwlock/", "_semaphore/")
"""Groups that are a line, in which the first ones hold something, each with a fence of its own."""


def add(commands: Commands) -> None:
    """Add the parsers of this family."""
    asking(commands, "groups", _groups, help="all groups of the domain", example="groupsvc groups")
    members = asking(
        commands, "members", _members, help="the providers of a group, the oldest first", example="groupsvc members db"
    )
    group_argument(members)
    why = asking(
        commands, "why", _why, help="how the newest ballots of a group ended: who voted what, and for whom a default"
        " vote was cast", example="groupsvc why db",
    )  # fmt: skip
    group_argument(why)


def connected(options: argparse.Namespace) -> Session:
    """A session for one command."""
    return connect(
        options.address,
        name="groupsvc-cli",
        keys=options.keys,
        timeout=options.timeout,
        default_timeout=options.timeout,
    )


def provider_object(provider: Provider) -> dict[str, object]:
    """A provider for programs."""
    return {
        "id": provider.id,
        "name": provider.name,
        "node": provider.node,
        "joined_seq": provider.joined_seq,
        **in_json("data", provider.data),
    }


def view_object(view: View) -> dict[str, object]:
    """A view for programs."""
    return {
        "seq": view.seq,
        "fence": view.fence,
        "providers": [provider_object(one) for one in view.providers],
        **in_json("state", view.state),
        "state_version": view.state_version,
        "default_vote": view.default_vote.name,
        "quorum_lost_seq": view.quorum_lost_seq,
    }


# --- groups ------------------------------------------------------------------------------------------------


def _groups(options: argparse.Namespace) -> ExitCode:
    with connected(options) as session:
        found = session.groups()
    if options.json:
        rows = [{"name": one.name, "leader": one.leader, "servers": list(one.servers)} for one in found]
        print(json.dumps({"groups": rows}, indent=2))
    elif not found:
        print("there are no groups")
    else:
        rows_for_people = [(one.name, one.leader, ", ".join(one.servers)) for one in found]
        print("\n".join(aligned([("GROUP", "LEADER", "SERVERS"), *rows_for_people])))
    return ExitCode.OK


# --- members -----------------------------------------------------------------------------------------------


def _members(options: argparse.Namespace) -> ExitCode:
    with connected(options) as session, session.subscribe(options.group) as subscription:
        view = subscription.view
    if options.json:
        print(json.dumps({"group": options.group, **view_object(view)}, indent=2))
    else:
        print("\n".join(member_lines(options.group, view)))
    return ExitCode.OK


def member_lines(group: str, view: View) -> list[str]:
    """The providers as a table, with what the group agrees on above it."""
    noun = "provider" if len(view.providers) == 1 else "providers"
    head = f"{group}: {len(view.providers)} {noun}, state version {view.state_version}, fence of the group {view.fence}"
    if view.quorum_lost_seq:
        head += f"; it went on without its quorum at entry {view.quorum_lost_seq}, and may lack what came before"
    if group.startswith(HELD_BY_TURNS):
        head += " (who holds it has that of the moment when its turn came, which is not larger)"
    rows = [
        (one.name or "-", one.node, str(one.joined_seq), one.id, shown(one.data) if one.data else "-")
        for one in view.providers
    ]
    return [head, *aligned([("NAME", "NODE", "JOINED", "ID", "DATA"), *rows])]


# --- why ---------------------------------------------------------------------------------------------------


def _why(options: argparse.Namespace) -> ExitCode:
    with connected(options) as session:
        outcomes = session.why(options.group)
    if options.json:
        print(json.dumps({"group": options.group, "outcomes": [outcome_object(one) for one in outcomes]}, indent=2))
    elif not outcomes:
        print(f"{options.group}: nothing has been proposed, or it is too long ago")
    else:
        print("\n".join(line for outcome in outcomes for line in outcome_lines(outcome)))
    return ExitCode.OK


def outcome_lines(outcome: Outcome) -> list[str]:
    """One ballot for people: a sentence, and a line for each vote of its last phase."""
    head = f"entry {outcome.proposal.ballot}: {about(outcome.proposal)}"
    if outcome.reason is Reason.ONE_PHASE:
        found = [f"{head}: {_REASONS[outcome.reason]}"]
    else:
        verdict = "approved" if outcome.approved else "rejected"
        why = _REASONS[outcome.reason]
        if outcome.reason is Reason.DEFAULT_APPROVE and all(one.default is DefaultCast.NOT for one in outcome.tally):
            why = "all voted APPROVE, some by default in an earlier phase"
        found = [f"{head} was {verdict} in phase {outcome.phases}: {why}"]
    if outcome.tally:
        rows = [(one.provider.name or one.provider.id, one.provider.node, one.vote.name, _DEFAULTS[one.default])
                for one in outcome.tally]  # fmt: skip
        found += [f"  {line}" for line in aligned([("PROVIDER", "NODE", "VOTE", "CAST BY"), *rows])]
    found += [
        f"  in phase {phase} {one.vote.name} was cast for {one.provider} ({_DEFAULTS[one.default]})"
        for phase, one in outcome.defaults
    ]
    found += [f"  {one.provider} said in phase {one.phase}: {shown(one.payload)}" for one in outcome.messages]
    found += [f"  {one} was left out: it had failed" for one in outcome.left_out]
    return [one_line(line) for line in found]


def about(proposal: Proposal) -> str:
    """What is proposed, with its content, and by whom."""
    by = "" if proposal.proposer is None else f" (proposed by {proposal.proposer.name or proposal.proposer.id})"
    match proposal.kind:
        case ProposalKind.STATE:
            return f"{proposal.in_words} to {shown(proposal.state or b'')}{by}"
        case ProposalKind.MESSAGE:
            return f"{proposal.in_words}, {shown(proposal.payload)}{by}"
        case _:
            return f"{proposal.in_words}{by}"


def counted_object(counted: Counted) -> dict[str, object]:
    """A vote for programs."""
    return {
        "provider": provider_object(counted.provider),
        "vote": counted.vote.name,
        "default": None if counted.default is DefaultCast.NOT else counted.default.name,
    }


def outcome_object(outcome: Outcome) -> dict[str, object]:
    """One ballot for programs."""
    return {
        **_subject_object(outcome.proposal),
        **({} if outcome.state is None else in_json("state", outcome.state)),
        "approved": outcome.approved,
        "phases": outcome.phases,
        "reason": outcome.reason.name,
        "tally": [counted_object(one) for one in outcome.tally],
        "defaults": [{"phase": phase, **counted_object(one)} for phase, one in outcome.defaults],
        "messages": _said(outcome.messages),
    }


def proposal_object(proposal: Proposal) -> dict[str, object]:
    """What is to be voted on, for programs."""
    return {
        "group": proposal.group,
        **_subject_object(proposal),
        **({} if proposal.state is None else in_json("state", proposal.state)),
        **(in_json("payload", proposal.payload) if proposal.kind is ProposalKind.MESSAGE else {}),
        "attributes": dict(proposal.attributes),
        "code": proposal.code,
        "reason": proposal.reason,
        "phase": proposal.phase,
        "time_limit": proposal.time_limit,
        "electorate": [provider_object(one) for one in proposal.electorate],
        "messages": _said(proposal.messages),
    }


def _subject_object(proposal: Proposal) -> dict[str, object]:
    return {
        "ballot": proposal.ballot,
        "proposal": proposal.id,
        "kind": proposal.kind.name,
        "proposer": None if proposal.proposer is None else provider_object(proposal.proposer),
        "joining": [provider_object(one) for one in proposal.joining],
        "leaving": [provider_object(one) for one in proposal.leaving],
        "cause": None if proposal.cause is None else proposal.cause.name,
    }


def _said(messages: Sequence[VoteMessage]) -> list[dict[str, object]]:
    return [{"provider": one.provider.id, "phase": one.phase, **in_json("payload", one.payload)} for one in messages]
