"""A *stay*: one node in one group without a break, as its journal tells it.

What two journals say of entry 70 can be compared only if both mean the same 70. In a group that has lost its quorum, or
a fast one whose leader died, entries that only the dead have delivered are gone and their numbers are used again; the
service calls what lies between two such views an *era*, and lines about views and members name it. So every line about
an entry is looked at together with the era that its node was in at that number.

A stay begins when the node joins the group, or goes on from a checkpoint, or when lines are missing from its journal:
what was before says nothing about what comes after.
"""

from __future__ import annotations

from bisect import bisect_right

import attrs

from ..wire.history import HistoryEvent
from .reading import Journal

DOMAIN = 0
"""The group that is the domain's own stream; it has no eras."""


@attrs.define(eq=False)
class Stay:
    """Of the node of ``journal`` in ``group``."""

    journal: Journal
    group: int
    is_whole: bool  # whether nothing is missing at its beginning
    delivered: int | None = None  # the number up to which it has delivered
    is_joined: bool = False
    _starts: list[int] = attrs.field(factory=list)
    _eras: list[int] = attrs.field(factory=list)

    def goes_on_in(self, era: int, seq: int) -> None:
        """From entry ``seq`` on it is in this era."""
        if not self._eras or self._eras[-1] != era:
            self._starts.append(seq)
            self._eras.append(era)

    def era_at(self, seq: int) -> int | None:
        """In which era it was at this number; None if that is not known."""
        if self.group == DOMAIN:
            return 0
        place = bisect_right(self._starts, seq)
        return self._eras[place - 1] if place else None


class Stays:
    """All stays in one journal, while it is read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[int, Stay] = {}
        self._is_whole = True

    def of(self, line: HistoryEvent) -> Stay:
        """The stay that a line belongs to."""
        stay = self._open.get(line.group)
        op = line.op
        if stay is None or op == "restored" or (op == "joined" and stay.is_joined):
            was_joined = stay is not None and op == "restored" and stay.is_joined
            stay = self._open[line.group] = Stay(self._journal, line.group, self._is_whole, is_joined=was_joined)
        if op == "restored":
            stay.delivered = line.seq
        elif op == "joined":
            stay.is_joined = True
            stay.goes_on_in(line.args["era"], line.seq)
            stay.delivered = line.seq if stay.delivered is None else stay.delivered
        elif op == "members":
            stay.goes_on_in(line.args["era"], line.seq)
        elif op == "group_lost":
            del self._open[line.group]
        return stay

    def lines_are_missing(self) -> None:
        """Nobody knows what was in between."""
        self._open.clear()
        self._is_whole = False
