"""What simulated applications write into the history: their calls, what they are told, how their sessions stand.

A line ``told`` is one event as an application reads it, after everything the client library made of it. Two that read
of the same entry must read the same, so each line has a digest; what the event says in full stands only in the first
line that has this digest. The view that goes with an event has a digest of its own.

The names of all of them are in ``application_ops``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from groupsvc import events
from groupsvc.errors import Rejected
from groupsvc.views import Provider, View
from groupsvc.voting import Counted, Outcome, Proposal
from groupsvc.wire.history import EventType

from .application_ops import digest
from .application_tables import name_of

if TYPE_CHECKING:
    from .application import Application


def text(value: bytes | None) -> str | None:
    """A payload as a line has it; those of simulated applications are short."""
    return None if value is None else value.decode("latin-1")


def ids(providers: Iterable[Provider]) -> list[str]:
    """Their names for ever."""
    return [provider.id for provider in providers]


def tally(votes: Iterable[Counted]) -> list[list[str]]:
    """Who voted what, and why it was a default."""
    return [[one.provider.id, one.vote.value, one.default.value] for one in votes]


def view_digest(view: View) -> int:
    """All of a view but its number and its fence."""
    providers = [[one.id, one.name, text(one.data), one.joined_seq] for one in view.providers]
    return digest(providers, text(view.state), view.state_version, view.default_vote.value)


def view_in_full(view: View) -> dict[str, Any]:
    """A view, where somebody begins with it."""
    return {
        "seq": view.seq,
        "fence": view.fence,
        "providers": [[one.id, one.name, text(one.data), one.joined_seq] for one in view.providers],
        "state": text(view.state),
        "version": view.state_version,
        "default_vote": view.default_vote.value,
    }


def _of_proposal(proposal: Proposal) -> dict[str, Any]:
    return {
        "ballot": proposal.ballot,
        "about": proposal.kind.value,
        "proposal": proposal.id,
        "joining": [[one.id, one.name, text(one.data)] for one in proposal.joining],
        "leaving": ids(proposal.leaving),
        "cause": None if proposal.cause is None else proposal.cause.value,
        "proposer": None if proposal.proposer is None else proposal.proposer.id,
        "state": text(proposal.state),
        "payload": text(proposal.payload),
        "changes": [list(change) for change in proposal.attributes],
    }


def _of_outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        **_of_proposal(outcome.proposal),
        "approved": outcome.approved,
        "phases": outcome.phases,
        "reason": outcome.reason.value,
        "votes": tally(outcome.tally),
        "left_out": ids(outcome.left_out),
    }


def outcome_in_full(outcome: Outcome) -> dict[str, Any]:
    """How a proposal ended, for the line of a call."""
    return _of_outcome(outcome)


def in_full(event: events.Event) -> tuple[str, dict[str, Any]] | None:
    """What an event of the stream is called in a line, and everything it says; None for what is none."""
    match event:
        case events.Message():
            return "message", {"sender": event.origin, "payload": text(name_of(event.payload))}
        case events.Joined():
            return "joined", {"providers": [[one.id, one.name, text(one.data)] for one in event.providers]}
        case events.Failing():
            return "failing", {"provider": event.provider.id, "cause": event.cause.value}
        case events.Left():
            return "left", {
                "providers": ids(event.providers), "cause": event.cause.value, "code": event.code,
                "reason": event.reason,
            }  # fmt: skip
        case events.StateChanged():
            return "state", {"value": text(event.value), "version": event.version}
        case events.Proposed():
            proposal = event.proposal
            return "proposed", {
                **_of_proposal(proposal), "phase": proposal.phase, "electorate": ids(proposal.electorate),
                "time_limit": proposal.time_limit,
                "messages": [[one.provider.id, one.phase, text(one.payload)] for one in proposal.messages],
            }  # fmt: skip
        case events.PhaseEnded():
            ballot = 0 if event.proposal is None else event.proposal.ballot
            return "phase_ended", {"ballot": ballot, "phase": event.phase, "votes": tally(event.tally)}
        case events.Approved() | Rejected():
            return "ended", _of_outcome(event.outcome)
        case events.AttributesChanged():
            return "attributes", {"changes": [list(change) for change in event.changes]}
        case events.Responsive():
            return "responsive", {"provider": event.provider.id, "does": True}
        case events.Unresponsive():
            return "responsive", {"provider": event.provider.id, "does": False}
        case _:
            return None


class Pen:
    """Writes the lines of all applications of a world."""

    def __init__(self) -> None:
        self._told_in_full: set[tuple[int, int, int]] = set()

    def line(
        self, who: Application, op: str, type_: EventType, args: dict[str, Any], result: dict[str, Any] | None = None,
        *, group: int = 0,
    ) -> None:  # fmt: skip
        """One line of a call, or of an event."""
        world, node = who.world, who.node
        inc = node.engine.incarnation if node.engine is not None else node.highest_incarnation
        world.history.add(
            world.t, op, local=node.offset + node.rate * world.t, node=node.name, inc=inc, who=who.name, type=type_,
            group=group, args=args, result=result or {},
        )  # fmt: skip
        if world.play is not None:
            world.play.called(who.name, node.name, type_, op, args, result or {})

    def told(self, who: Application, m: int, group: int, event: events.Event) -> bool:
        """One event of a stream as it was read; False if it is none."""
        found = in_full(event)
        if found is None:
            return False
        kind, full = found
        seq = event.seq  # type: ignore[union-attr]
        assert seq is not None
        crc = digest(kind, full)
        args: dict[str, Any] = {"m": m, "kind": kind}
        if kind != "message":
            view = event.view  # type: ignore[union-attr]
            assert view is not None
            args["view"] = view_digest(view)
            args["fence"] = view.fence
        if (group, seq, crc) not in self._told_in_full:
            self._told_in_full.add((group, seq, crc))
            args["full"] = full
        world, node = who.world, who.node
        world.history.add_of_application(
            world.t, node.offset + node.rate * world.t, node.name, who.name, group, seq, crc, args
        )
        return True
