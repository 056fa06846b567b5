"""The leader's pen in a fast group: most orders ask nobody for an answer, some ask everybody (GS-13, GS-14).

A number is delivered by the leader in the step that gives it. Every ``sync_window`` orders, unless all have spoken up
by themselves, the next one is *converted*: it carries ``ack``, and whoever has everything up to there says so. The same
happens to what must not be lost with the leader: views and members, what somebody from outside has submitted, what a
member wants to know to be held. When that is stable it is told at once; otherwise the stable number rides on the next
order, or on the beat that follows when the group falls idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ..parameters import Timers
from .duplicates import DuplicateFilter
from .sequencer import Sequencer
from .server import Server


class FastSequencer(Sequencer):
    """Orders the entries of one epoch of a fast group."""

    def __init__(
        self, server: Server, epoch: int, k: int, origins: DuplicateFilter, timers: Timers, *, window: int,
        seen_by_all: Callable[[], int],
    ) -> None:  # fmt: skip
        super().__init__(server, epoch, k, origins, timers)
        self._window = window
        self._seen_by_all = seen_by_all
        self._ends: deque[int] = deque()  # of the orders that nobody was asked to acknowledge
        self._is_wanted = False  # whether the next one asks
        self._wanted: deque[int] = deque()  # numbers of which somebody waits to hear that they are stable
        self._unheard_since: float | None = None  # k servers do not have what was ordered then

    def want_ack(self) -> None:
        """What is ordered in this step is to be acknowledged."""
        self._is_wanted = True

    @property
    def is_unheard(self) -> bool:
        """Whether k servers have been silent about what was ordered for so long that others may lead by now."""
        if self.server.stable >= self.server.log.last:
            self._unheard_since = None  # however that has become known
        return self._unheard_since is not None and self.turn.now - self._unheard_since > self._timers.leader_silent

    def flush(self) -> None:
        """Send everything numbered in this step, and deliver it."""
        if not self._fresh:
            return
        ends = self._ends
        if len(ends) >= self._window:
            seen = self._seen_by_all()
            while ends and ends[0] <= seen:
                ends.popleft()
        self.ack_required = self._is_wanted or len(ends) >= self._window
        is_all_stable = self.server.stable >= self.server.log.last
        super().flush()
        last = self.server.log.last
        if self._is_wanted:
            self._wanted.append(last)
        if self.ack_required:
            self.ack_required = False
            self.turn.mark("sync-converted")
            ends.clear()
        else:
            ends.append(last)
        self._is_wanted = False
        if self._unheard_since is None or is_all_stable:
            self._unheard_since = self.turn.now
        self.turn.round_trip.append(self._deliver)

    def _deliver(self) -> None:
        server = self.server
        if server.log.accepted == server.promised == self.epoch:
            server.learn_stable(0)

    def _advance(self) -> None:
        before = self.server.stable
        super()._advance()
        if self.server.stable > before:
            self._unheard_since = None if self.server.stable >= self.server.log.last else self.turn.now

    def tell_stable(self) -> None:
        """At the end of a step: if somebody waits to hear of it."""
        is_awaited = False
        while self._wanted and self._wanted[0] <= self.server.stable:
            self._wanted.popleft()
            is_awaited = True
        if is_awaited:
            super().tell_stable()
