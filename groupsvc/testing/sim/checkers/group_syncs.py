"""K2 for groups: who is told that it has everything does not act on something old.

A program asks at one moment, ``invoke``, and is told at another, ``ok``. What anybody had delivered before the first
has been delivered at its node by the second. Entries that were lost, with a forced view or with those who alone had
seen them, are not asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from groupsvc.wire.history import HistoryEvent

from .group_streams import ENDS_OF_PROCESSES, GroupStream, Part
from .lineage import Lineage
from .verdict import Violation

Tops = dict[int, tuple[int, int]]
"""By epoch: number and CRC of the highest entry that was delivered in it."""


@attrs.frozen
class _Told:
    """Somebody was told that it has everything; ``needs`` is what had been delivered when it asked."""

    part: Part
    line: int
    who: str
    needs: Tops


def k2(stream: GroupStream) -> Iterator[Violation]:
    """A ``sync`` that ended well: what was delivered anywhere before it began is delivered at its node when it ends.

    Lines of one step have one time, and a program is told before its engine has written what it delivered; so what is
    written at the same moment counts for the end, and does not count for the beginning.
    """
    tops: Tops = {}  # before the present moment
    news: list[HistoryEvent] = []  # and what was delivered in it
    now = -1.0
    reached: dict[Part, tuple[int, int]] = {}  # number, epoch
    asked: dict[tuple[str, int], Tops] = {}
    told: list[_Told] = []
    for line in stream.of("delivered", "restored", *ENDS_OF_PROCESSES, calls=("sync",)):
        if line.t > now:
            yield from _lacking(told, reached, stream.lineage)
            for new in news:
                if new.seq > tops.get(new.epoch, (0, 0))[0]:
                    tops[new.epoch] = (new.seq, new.crc)
            told, news, now = [], [], line.t
        part = (line.node, line.inc)
        if line.op == "sync":
            key = (line.who, int(line.args["id"]))
            if line.type == "invoke":
                asked[key] = dict(tops)
            elif line.type == "ok" and key in asked:
                told.append(_Told(part, line.i, line.who, asked.pop(key)))
        elif line.op in ("delivered", "restored"):
            reached[part] = (line.seq, line.epoch)
            if line.op == "delivered":
                news.append(line)
        else:
            told = [one for one in told if one.part[0] != line.node]  # it may not have written all it did
    yield from _lacking(told, reached, stream.lineage)


def _lacking(told: list[_Told], reached: dict[Part, tuple[int, int]], lineage: Lineage) -> Iterator[Violation]:
    for one in told:
        has, epoch = reached.get(one.part, (0, 0))
        needs = max((_needed(lineage, top, of, epoch) for of, top in one.needs.items()), default=0)
        if has < needs:
            text = f"{one.who} at {one.part[0]} is told that it has everything, and has {has} of {needs} entries"
            yield Violation("K2", text, one.line)


def _needed(lineage: Lineage, top: tuple[int, int], of: int, epoch: int) -> int:
    """How far what was delivered in epoch ``of`` is in the log of the later ``epoch``, and in that of the end.

    Both count: a forced view may go on with what an earlier one had lost, because who alone had it is all that is left.
    """
    seq, crc = top
    for later in (float(epoch), math.inf):
        if lineage.is_without(seq, of, crc, later):
            seq = min(seq, lineage.cut_before(of, later) - 1)
    return seq
