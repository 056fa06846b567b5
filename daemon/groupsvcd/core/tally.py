"""What an engine counts as it goes: plain numbers that only ever grow.

The parts of an engine share one ``Tally``, as they share the ``Turn`` that it hangs on. To count is to add to a number,
once for a batch where there are batches; nothing is made, and nobody is told. Whoever wants to know asks for
``statistics()``, which puts these numbers together with what can be seen of the parts at that moment.

It is no part of the protocol: nothing is decided by it, and no checkpoint has it.
"""

from __future__ import annotations

from bisect import bisect_left

import attrs

PROTOCOL_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From what two nodes on one machine need, to a ballot that waited for its time limit twice."""


class Histogram:
    """How many values were not above each bound, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)  # by the smallest bound that fits; the last is for what is above all
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """One more."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def measured(self) -> Measured:
        """As it is now."""
        return Measured(self.bounds, tuple(self.counts), self.sum)


@attrs.frozen
class Measured:
    """A histogram at one moment."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)


@attrs.define
class Tally:
    """One per engine."""

    ordered_entries: int = 0  # that this node gave numbers to
    ordered_bytes: int = 0
    delivered_entries: int = 0
    leader_changes: int = 0  # of the name server, as this node saw them
    view_changes: int = 0  # joins and leaves in groups that this node leads
    retransmits: dict[str, int] = attrs.field(factory=dict)  # by what was sent again
    marks: dict[str, int] = attrs.field(factory=dict)  # how often this node came by each of them
    votes: dict[tuple[str, str], int] = attrs.field(factory=dict)  # by vote and source, in groups that it leads
    default_votes: dict[str, int] = attrs.field(factory=dict)  # by why they were cast
    ballots: dict[tuple[str, str], int] = attrs.field(factory=dict)  # by kind and how they ended
    refused_proposals: dict[str, int] = attrs.field(factory=dict)  # by why they never had their turn
    barrier_rounds: dict[str, int] = attrs.field(factory=dict)  # by how they ended
    protocols: dict[str, Histogram] = attrs.field(factory=dict)  # seconds, by kind

    def took(self, kind: str, seconds: float) -> None:
        """A proposal of this kind was decided so long after it was made."""
        found = self.protocols.get(kind)
        if found is None:
            found = self.protocols[kind] = Histogram(PROTOCOL_BOUNDS_S)
        found.observe(seconds)


def add(counts: dict[str, int], key: str, more: int = 1) -> None:
    """Count something that has a name."""
    counts[key] = counts.get(key, 0) + more
