"""What applications were told and is void: of entries that a later view of their group had to go on without.

A fast group may lose what only the dead had delivered, and a group with ``on_quorum_lost="continue"`` its tail
(``lineage`` knows which entries these are). Who was told of them was told rightly, at that time. He is told nothing of
the group as it went on, but that he has ``Lost`` it, if he lives; what others are told is not compared with it, and it
does not count as having happened: not the message, not the vote, not the version of the state.

A *run* is what one node was given of a group, one entry after the other. The first of them that is void makes all
behind it void, for nobody goes on after such a one (B6).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import attrs

from .group_streams import ENDS_OF_PROCESSES, GroupStream


@attrs.define
class Run:
    """What a node was given of a group without a break."""

    begins: int  # the position of its first line
    reached: int = 0
    void_from: float = math.inf  # the first entry that is void
    void_at: float = math.inf  # the position of the line in which it was delivered


Runs = Mapping[tuple[int, str, int], Sequence[Run]]
"""By group and incarnation of a node, one after the other; only of groups that have lost something."""


def runs_of(streams: Iterable[GroupStream]) -> Runs:
    """Those of all groups."""
    found: dict[tuple[int, str, int], list[Run]] = {}
    for stream in streams:
        if not stream.lineage.cuts:
            continue
        present: dict[tuple[str, int], Run] = {}
        for line in stream.of("boot", *ENDS_OF_PROCESSES, "group_lost", "restored", "delivered"):
            me = (line.node, line.inc)
            if line.op not in ("restored", "delivered"):
                for part in [part for part in present if part[0] == line.node]:
                    del present[part]
                continue
            run = present.get(me)
            if run is None:
                run = present[me] = Run(line.i)
                found.setdefault((stream.id, *me), []).append(run)
            run.reached = line.seq
            if run.void_from == math.inf and line.op == "delivered":
                if stream.lineage.is_void(line.seq, line.epoch, line.crc):
                    run.void_from, run.void_at = line.seq, line.i
    return found


def run_with(runs: Runs, group: int, node: str, inc: int, seq: int, before: int) -> Run | None:
    """The run in which somebody was let in with this entry, who wrote so at the position ``before``."""
    known = [run for run in runs.get((group, node, inc), ()) if run.begins < before and run.reached >= seq]
    return known[-1] if known else None
