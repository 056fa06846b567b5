"""Processes on a disk that was replaced: they must do no harm, and what they write counts for nothing.

C's disk was replaced, the new one was admitted, and then C is started on the old one. Its promises and entries are
no longer those of a voter: a majority that needs them is none. So the lines of such a process are judged as those of
another node, which happens to be no voter, and C itself goes on when its newer disk is back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from groupsvc.wire.history import HistoryEvent

from .eras import Era
from .verdict import Violation

SUFFIX = " on its old disk"

DEEDS = {"ordered": "orders", "acknowledged": "gives leases or answers", "rejoined": "has a lease"}
"""What such a process must never do."""


def set_apart(history: Sequence[HistoryEvent]) -> Sequence[HistoryEvent]:
    """The same lines; those of a process on a replaced disk under another name."""
    if not any(line.op == "boot" and line.args.get("outdated") for line in history):
        return history
    outdated: set[str] = set()
    result: list[HistoryEvent] = []
    for line in history:
        if line.op == "boot":
            outdated.discard(line.node)
            if line.args.get("outdated"):
                outdated.add(line.node)
        result.append(msgspec.structs.replace(line, node=line.node + SUFFIX) if line.node in outdated else line)
    return result


def voter_name(node: str) -> str:
    """As which voter a node speaks, rightly or not."""
    return node.removesuffix(SUFFIX)


def words_of_replaced_disks(era: Era) -> Iterator[Violation]:
    """No process on a replaced disk orders anything, gives leases or answers, or has a lease itself."""
    for line in era.of(*DEEDS):
        if line.node.endswith(SUFFIX):
            yield Violation("S1", f"{line.node} {DEEDS[line.op]} in epoch {line.epoch}", line.i)
