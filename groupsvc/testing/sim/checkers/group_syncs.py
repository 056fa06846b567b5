"""K2 for groups: who is told that it has everything does not act on something old.

A program asks at one moment, ``invoke``, and is told at another, ``ok``. What anybody had delivered before the first
has been delivered at its node by the second. Entries that were lost, with a forced view or with those who alone had
seen them, are not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from .group_streams import ENDS_OF_PROCESSES, GroupStream, Part
from .verdict import Violation


@attrs.frozen
class _Told:
    """Somebody was told that it has everything."""

    part: Part
    at: float
    line: int
    who: str
    needs: int


def k2(stream: GroupStream) -> Iterator[Violation]:
    """A ``sync`` that ended well: what was delivered anywhere before it began is delivered at its node when it ends.

    Lines of one step have one time, and a program is told before its engine has written what it delivered; so what is
    written at the same moment counts for the end, and does not count for the beginning.
    """
    top = before = 0  # the highest number delivered; that before the present moment
    now = -1.0
    reached: dict[Part, int] = {}
    asked: dict[tuple[str, int], int] = {}
    told: list[_Told] = []
    for line in stream.of("delivered", "restored", *ENDS_OF_PROCESSES, calls=("sync",)):
        if line.t > now:
            yield from _lacking(told, reached)
            told, before, now = [], top, line.t
        part = (line.node, line.inc)
        if line.op == "sync":
            key = (line.who, int(line.args["id"]))
            if line.type == "invoke":
                asked[key] = before
            elif line.type == "ok" and key in asked:
                told.append(_Told(part, line.t, line.i, line.who, asked.pop(key)))
        elif line.op in ("delivered", "restored"):
            reached[part] = line.seq
            if line.op == "delivered" and not stream.lineage.is_void(line.seq, line.epoch, line.crc):
                top = max(top, line.seq)
        else:
            told = [one for one in told if one.part[0] != line.node]  # it may not have written all it did
    yield from _lacking(told, reached)


def _lacking(told: list[_Told], reached: dict[Part, int]) -> Iterator[Violation]:
    for one in told:
        has = reached.get(one.part, 0)
        if has < one.needs:
            text = f"{one.who} at {one.part[0]} is told that it has everything, and has {has} of {one.needs} entries"
            yield Violation("K2", text, one.line)
