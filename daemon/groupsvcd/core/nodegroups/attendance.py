"""Whom the leader of a group has heard, when, and how far each has got.

Four things rest on it. A server that was silent for a lease is replaced; but no other view is proposed while those that
are heard could go on in this one and could not get out of it. What all members have delivered is dropped. And whoever
is to become a server must have caught up and be heard *now*: of a receiver that is well and has nothing to say nothing
is heard for a long time, so it is asked first; a group that counted on one that cannot be reached would stand still.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..parameters import Timers
from ..turn import Turn
from ..views import NodeId, View

CAUGHT_UP_WITHIN = 1_000
"""A receiver that lacks fewer entries than this is worth making a server: it fetches the rest within the change."""


class Attendance:
    """What one leader knows of the others, in one view."""

    __slots__ = ("_asked_at", "_heard_at", "_seen_at", "_timers", "_turn", "seen")  # a node has thousands

    def __init__(self, turn: Turn, timers: Timers, servers: Iterable[str]) -> None:
        self._turn = turn
        self._timers = timers
        self._heard_at = dict.fromkeys(servers, turn.now)  # as servers, by name
        self._seen_at: dict[NodeId, float] = {}
        self._asked_at: dict[NodeId, float] = {}
        self.seen: dict[NodeId, int] = {}  # up to where each member has delivered, as far as it said

    def hear(self, server: str) -> None:
        """A server has spoken as such."""
        self._heard_at[server] = self._turn.now

    def is_mute(self, server: str) -> bool:
        """Whether it was silent for a lease."""
        return self._turn.now - self._heard_at.get(server, -math.inf) > self._timers.lease

    def is_to_wait(self, view: View, *, is_whole: bool) -> bool:
        """Whether so few servers of our view are heard, we included, that another could not be recovered from it.

        If our log is whole, k are enough for both. If not even k are heard, there is nothing to go on with: then we
        fall silent over it, and another is asked for.
        """
        heard = sum(1 for name in view.names if name == self._turn.node or not self.is_mute(name))
        return view.k <= heard < (view.promises_its_leader_needs if is_whole else view.promises_needed)

    def note(self, node: NodeId, upto: int) -> bool:
        """A member has delivered so much; whether it had not been heard for long."""
        is_news = not self.is_heard(node)
        self._seen_at[node] = self._turn.now
        if upto > self.seen.get(node, -1):
            self.seen[node] = upto
        return is_news

    def forget(self, node: NodeId) -> None:
        """It is no member any more."""
        for known in (self.seen, self._seen_at, self._asked_at):
            known.pop(node, None)

    def has_caught_up(self, node: NodeId, stable: int, late: int) -> bool:
        """Whether it is worth making a server; who was ``late`` before only when it has what was there then."""
        return self.seen.get(node, -math.inf) >= max(stable - CAUGHT_UP_WITHIN, late)

    def is_heard(self, node: NodeId) -> bool:
        """Whether it reaches us."""
        return self._turn.now - self._seen_at.get(node, -math.inf) <= self._timers.lease

    def is_to_ask(self, node: NodeId) -> bool:
        """Whether it is time to find out; notes that it is done."""
        if self._turn.now < self._asked_at.get(node, -math.inf) + self._timers.repeat_first:
            return False
        self._asked_at[node] = self._turn.now
        return True
