"""Who is the better candidate for name server.

Better = larger (-failed, pinned, priority), then the smaller name. ``failed`` counts a candidate's own
canvasses since it last heard a leader: who cannot get through stops standing in the way of those who can.
Priority is what the administrator prefers plus what the node measured of itself.
"""

from __future__ import annotations

import attrs

from ..parameters import Parameters

NEVER = -1
"""Priority of a voter that is no candidate."""


@attrs.frozen
class Standing:
    """One candidate's claim."""

    name: str
    failed: int
    pinned: bool
    priority: int

    def better_than(self, other: Standing) -> bool:
        """Whether this candidate comes before the other."""
        mine = (-self.failed, self.pinned, self.priority)
        theirs = (-other.failed, other.pinned, other.priority)
        return mine > theirs or (mine == theirs and self.name < other.name)


def priority_of(parameters: Parameters) -> int:
    """A node's priority: the administrator's preference outweighs anything measured."""
    if not parameters.candidate:
        return NEVER
    return max(0, parameters.preference) * 1_000_000 + min(max(0, parameters.measured), 999_999)
