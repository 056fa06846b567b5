"""S2, S3, S4: what a disk does to a node that has one, in the domain and in durable groups.

What was lost by it is the matter of B6 and L4; here is what a node must not do about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groupsvc.wire.history import HistoryEvent

from .group_streams import GroupStream
from .lives import LIFE_OPS, Lives, record_kind
from .verdict import Violation

WORDS_OF_A_SERVER = frozenset({"promise", "held", "view_installed", "view_active", "recovered", "ordered", "spoke"})
"""What a node says, as a server of a group, on the strength of its log."""

DEEDS = frozenset(
    {"persisted", "spoke", "acknowledged", "promise", "held", "ordered", "stable", "delivered", "lease", "view_active"}
)
"""What a process does that goes on."""

FULL_DISKS = frozenset({"disk-full", "group-disk-full"})
"""Faults under which everybody stays a member."""


def s2(stream: GroupStream) -> Iterator[Violation]:
    """A damaged log is not served: its disk does not speak as the server that had it.

    From the start that finds the damage (``damaged``) until the disk has given that log up (``forget``), or is another
    one. As a member without a log of its own the node may follow meanwhile.
    """
    lives = Lives()
    silent: dict[str, str] = {}
    for line in stream.of("boot", "damaged", "persisted", *WORDS_OF_A_SERVER):
        if line.op == "boot":
            if lives.see(line):
                silent.pop(line.node, None)
        elif line.op == "damaged":
            silent[line.node] = str(line.args["what"])
        elif line.node in silent:
            if line.op in WORDS_OF_A_SERVER:
                text = f"{line.node} has {line.op} in epoch {line.epoch}, and on its disk: {silent[line.node]}"
                yield Violation("S2", text, line.i)
            elif record_kind(line) == "forget":
                del silent[line.node]


def s3(history: Sequence[HistoryEvent]) -> Iterator[Violation]:
    """After a failed sync a process does nothing any more, and none of its clients is told that anything is done."""
    failed: set[str] = set()
    for line in history:
        if line.op == "fsync_failed":
            failed.add(line.node)
        elif line.node not in failed:
            continue
        elif line.op in LIFE_OPS:
            failed.discard(line.node)
        elif line.type == "ok" or (line.type == "event" and line.op in DEEDS):
            yield Violation("S3", f"{line.node} has {line.op} {line.type} after a sync of its disk has failed", line.i)


def s4(history: Sequence[HistoryEvent]) -> Iterator[Violation]:
    """Where nothing happens but that disks are full, everybody stays up, and nobody's lease ends.

    In other runs nobody can tell what a node was declared down for. That all is well again when there is room, and
    that nothing was acknowledged meanwhile that was not on disk, is the matter of convergence and of S1.
    """
    faults = {line.op for line in history if line.who == "sim" and line.type == "event" and "phase" in line.args}
    if not faults or not faults <= FULL_DISKS:
        return
    full: set[str] = set()
    for line in history:
        if line.op in faults and line.who == "sim":
            full.add(str(line.args.get("target", "")))
        elif line.op == "node_down" and full:
            yield Violation("S4", f"{line.args.get('name')} is declared down, and only disks were full: {full}", line.i)
