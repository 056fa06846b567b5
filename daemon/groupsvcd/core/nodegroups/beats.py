"""When the leader of a group beats.

A beat tells where the stream stands, and its answers tell what everybody has: what nobody needs any more is dropped. So
it comes a few times a second while something happens, sooner if very much does, and rarely in a group that rests.
"""

from __future__ import annotations

from ..parameters import Timers
from ..turn import Turn

BEAT_ENTRIES = 4_096
"""After so many a beat comes early: what all have is dropped while it is still in the processor's caches."""


class Beats:
    """The moments of one leader."""

    __slots__ = ("_beaten_at", "_beaten_last", "_timers", "_turn", "at", "is_quiet")  # a node has thousands

    def __init__(self, turn: Turn, timers: Timers, last: int) -> None:
        self._turn = turn
        self._timers = timers
        self._beaten_at = turn.now
        self._beaten_last = last
        self.is_quiet = False  # whether everybody has everything, as far as is known
        self.at = self._next()

    def _next(self) -> float:
        """At the same moments as all groups that this node leads: what is for one node then goes in one frame.

        While nothing happens, half as often as a server's patience would need: one beat may be lost.
        """
        now = self._turn.now
        interval = self._timers.leader_silent / 2 if self.is_quiet else self._timers.beat_interval
        return max((now // interval + 1) * interval, now + interval / 2)

    def begin(self, last: int) -> bool:
        """Whether a beat is due, with the stream at entry ``last``."""
        if self._turn.now < self.at:
            return False
        self._beaten_at, self._beaten_last = self._turn.now, last
        self.at = self._next()
        return True

    def rest(self, *, is_quiet: bool) -> None:
        """The beat is over; the next one comes later if all is quiet."""
        self.is_quiet = is_quiet
        self.at = self._next()

    def wake(self) -> None:
        """Something happens again."""
        self.is_quiet = False
        self.at = min(self.at, self._next())

    def hurry(self, last: int, *, keeps_too_much: bool) -> None:
        """Very much happens: find out soon what nobody needs any more."""
        if keeps_too_much or last - self._beaten_last > BEAT_ENTRIES:
            self.at = min(self.at, self._beaten_at + self._timers.repair_delay)
