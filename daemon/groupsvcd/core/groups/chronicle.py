"""What happens in a process group as lines of history, the same on every node that carries it.

Whoever audits a domain has its journals and nothing else: from these lines he recounts every ballot (who had a vote,
who voted what and why that was counted, how it ended), follows who was a provider and under which fence, and finds
every version of the state. What is long is told by its checksum.

The lines are made of the same notices that members are told, one line for each, with the number of the entry that it
follows from. ``at`` is this node's clock as its engine saw it: how long a phase was open can be read off one journal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

from groupsvc.wire.notices import (
    AnyNotice,
    AttributesChanged,
    Cast,
    Emptied,
    Ended,
    Failing,
    Fenced,
    Joined,
    Left,
    Message,
    PhaseClosed,
    PhaseOpened,
    Provider,
    Refused,
    Responsive,
    StateChanged,
    Subject,
)

from ..turn import Turn
from .process_group import ProcessGroup


def tell(turn: Turn, stream: int, group: ProcessGroup, notices: Iterable[AnyNotice]) -> None:
    """What follows from one entry; ``group`` is as it is after that."""
    for notice in notices:
        seq, at = notice.seq, turn.now
        match notice:
            case Joined():
                turn.audit("provider_joined", group=stream, seq=seq, fence=notice.fence,
                           providers=_ids(notice.providers), names=[one.name for one in notice.providers])  # fmt: skip
            case Failing():
                turn.audit("provider_failing", group=stream, seq=seq, provider=list(notice.provider),
                           cause=notice.cause)  # fmt: skip
            case Left():
                turn.audit("provider_left", group=stream, seq=seq, fence=notice.fence, cause=notice.cause,
                           providers=[list(one) for one in notice.providers])  # fmt: skip
            case StateChanged():
                turn.audit("state", group=stream, seq=seq, crc=crc32(notice.value), version=notice.version,
                           bytes=len(notice.value))  # fmt: skip
            case PhaseOpened():
                ballot = group.ballot
                phases = ballot.phases if ballot is not None and ballot.id == notice.ballot else -1
                turn.audit("phase", group=stream, seq=seq, at=at, ballot=notice.ballot, phase=notice.phase,
                           phases=phases, time_limit=notice.time_limit,
                           electorate=[list(one) for one in notice.electorate], **_about(notice.subject))  # fmt: skip
            case PhaseClosed():
                turn.audit("votes", group=stream, seq=seq, at=at, ballot=notice.ballot, phase=notice.phase,
                           votes=_votes(notice.votes))  # fmt: skip
            case Ended():
                outcome = notice.outcome
                turn.audit("outcome", group=stream, seq=seq, at=at, ballot=outcome.ballot, approved=outcome.approved,
                           phases=outcome.phases, reason=outcome.reason, votes=_votes(outcome.votes),
                           left_out=[list(one) for one in outcome.left_out], **_about(outcome.subject))  # fmt: skip
            case Refused():
                turn.audit("refused", group=stream, seq=seq, proposal=list(notice.proposal), why=notice.why)
            case Fenced():
                turn.audit("fenced", group=stream, seq=seq, fence=notice.fence, lost=notice.tail_may_be_lost)
            case Responsive():
                turn.audit("responsive", group=stream, seq=seq, provider=list(notice.provider), does=notice.does)
            case AttributesChanged():
                turn.audit("attributes", group=stream, seq=seq, changes=dict(notice.changes))
            case Emptied():
                turn.audit("emptied", group=stream, seq=seq)
            case Message():
                pass  # by ballot: its outcome says so, and plain ones are told by the digest of what is delivered


def _about(subject: Subject) -> dict[str, Any]:
    """What the ballot is about."""
    return {
        "kind": subject.kind,
        "proposals": [list(one) for one in subject.proposals],
        "joining": _ids(subject.joining),
        "leaving": [list(one) for one in subject.leaving],
    }


def _ids(providers: Iterable[Provider]) -> list[list[Any]]:
    return [list(one.id) for one in providers]


def _votes(votes: Iterable[Cast]) -> list[list[Any]]:
    """Who, what, and why it was cast for him; nothing if he did so himself."""
    return [[list(cast.provider), cast.vote, cast.why] for cast in votes]
