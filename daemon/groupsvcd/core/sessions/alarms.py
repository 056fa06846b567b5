"""What is to be done at a time, unless something else happens before: one heap for all sessions of a node.

Most alarms never ring: a request is answered before its deadline, a session resumed before its grace is over. So to
take one back costs nothing; it stays in the heap and is passed over. When too many of those are in it they are swept
out.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from ..turn import Turn

SWEEP_ABOVE = 1_000
"""Alarms in the heap, beyond twice those that are still to ring, before those that were taken back are swept out."""


class Alarm:
    """Something that will be done at its time, unless it is taken back."""

    __slots__ = ("_alarms", "at", "ring")

    def __init__(self, alarms: Alarms, at: float, ring: Callable[[], None]) -> None:
        self._alarms = alarms
        self.at = at
        self.ring: Callable[[], None] | None = ring

    def take_back(self) -> None:
        """It is not to ring any more."""
        if self.ring is not None:
            self.ring = None
            self._alarms.live -= 1


class Alarms:
    """All alarms, the next one first."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.live = 0
        self._heap: list[tuple[float, int, Alarm]] = []
        self._order = 0

    def after(self, seconds: float, ring: Callable[[], None]) -> Alarm:
        """Do this so many seconds from now."""
        alarm = Alarm(self, self.turn.now + seconds, ring)
        self._order += 1
        self.live += 1
        heapq.heappush(self._heap, (alarm.at, self._order, alarm))
        if len(self._heap) > 2 * self.live + SWEEP_ABOVE:
            self._heap = [one for one in self._heap if one[2].ring is not None]
            heapq.heapify(self._heap)
        return alarm

    @property
    def deadline(self) -> float:
        """When the next one rings."""
        heap = self._heap
        while heap and heap[0][2].ring is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def tick(self) -> None:
        """Time has passed."""
        while self.deadline <= self.turn.now:
            alarm = heapq.heappop(self._heap)[2]
            ring, alarm.ring = alarm.ring, None
            self.live -= 1
            if ring is not None:
                ring()
