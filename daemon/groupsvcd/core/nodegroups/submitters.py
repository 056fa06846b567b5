"""What this node has on its way to which group; and how far it has counted in those that it has left.

E submits 1, 2 and 3 to a group and leaves it. When it comes back its next submission is 4: for the leader 1 would be a
late copy of what it has numbered. So the number stays for as long as the daemon runs, and nothing else does: a
submitter knows its node's part in the group, which knows the whole stream, and programs may come to a daemon with
thousands of groups a day.
"""

from __future__ import annotations

from collections.abc import ItemsView

from .station import Station
from .submitter import Submitter


class Submitters:
    """Those of one node, by the ids of their groups."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._by_id: dict[int, Submitter] = {}
        self._counted: dict[int, int] = {}  # up to where, in groups that nobody here has to do with at the moment

    def of(self, group_id: int) -> Submitter:
        """The one of this group, from now until it is settled."""
        submitter = self._by_id.get(group_id)
        if submitter is None:
            parameters, after = self._station.parameters, self._counted.pop(group_id, 0)
            turn, inline_bytes_max = self._station.turn, parameters.inline_bytes_max
            submitter = Submitter(turn, group_id, parameters.timers, inline_bytes_max, after=after)
            self._by_id[group_id] = submitter
        return submitter

    def settle(self, group_id: int) -> None:
        """Nobody here waits for what is on its way to that group."""
        submitter = self._by_id.pop(group_id, None)
        if submitter is not None:
            submitter.give_up()
            if submitter.last:
                self._counted[group_id] = submitter.last

    def outstanding(self, group_id: int) -> int:
        """How many submissions are on their way to that group."""
        submitter = self._by_id.get(group_id)
        return submitter.outstanding if submitter is not None else 0

    def items(self) -> ItemsView[int, Submitter]:
        """All that are not settled."""
        return self._by_id.items()

    def clear(self) -> None:
        """This node goes on under another incarnation, which counts from 1."""
        self._by_id.clear()
        self._counted.clear()
