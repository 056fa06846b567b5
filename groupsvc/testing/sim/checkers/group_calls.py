"""K1 and B2 for the programs that use groups: every call ends once, and in the end each one has.

A ``submit`` ends ``ok`` when its program has seen it in the stream or, if it is no member, was told that it is stable;
``info`` when the program's part in the group or its process ended first. ``join`` ends when the program is told that it
has joined, or that it has not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupsvc.wire.history import HistoryEvent

from .group_streams import ENDS_OF_PROCESSES
from .invocations import CallKey, call_key
from .verdict import Violation


def k1(calls: Sequence[HistoryEvent]) -> Iterator[Violation]:
    """No end without a beginning, no second end, no number of a program used twice."""
    ends: dict[CallKey, str] = {}
    for line in calls:
        key = call_key(line)
        what = f"{line.op} {key[1]} of {line.who}"
        if line.type == "invoke":
            if key in ends:
                yield Violation("K1", f"{what} began twice", line.i)
            ends[key] = ""
        elif key not in ends:
            yield Violation("K1", f"{what} ended with {line.type} and had not begun", line.i)
        elif ends[key]:
            yield Violation("K1", f"{what} ended with {ends[key]} and again with {line.type}", line.i)
        else:
            ends[key] = line.type


def b2(
    calls: Sequence[HistoryEvent], domain: Sequence[HistoryEvent], waiting: frozenset[str] = frozenset()
) -> Iterator[Violation]:
    """In a converged run every call has ended, unless its process or its incarnation ended after it began.

    Nobody expects that of groups that are ``waiting`` for disks that were lost.
    """
    ended_at: dict[str, int] = {}
    for line in domain:
        if line.op in ENDS_OF_PROCESSES and line.type == "event":
            ended_at[line.node] = line.i
    still_open: dict[CallKey, HistoryEvent] = {}
    for line in calls:
        if line.type == "invoke":
            still_open[call_key(line)] = line
        else:
            still_open.pop(call_key(line), None)
    for (_, number), line in still_open.items():
        if ended_at.get(line.node, -1) < line.i and line.args.get("name") not in waiting:
            yield Violation("B2", f"{line.op} {number} of {line.who} at {line.node} never ended", line.i)
