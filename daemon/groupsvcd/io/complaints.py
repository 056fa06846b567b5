"""Saying that something is wrong without drowning the log in it.

A neighbour that sends garbage can send it a hundred thousand times a second. Every complaint is counted; of
one kind only the first is written, and then at most one line per interval, which says how many were not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..observe.log import event

INTERVAL_S = 5.0

log = logging.getLogger(__name__)


class Complaints:
    """Counts complaints by kind and logs a few of them."""

    def __init__(self, clock: Callable[[], float], interval_s: float = INTERVAL_S) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._silent_until: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}
        self.counts: dict[str, int] = {}

    def note(self, kind: str, text: str) -> None:
        """Something of ``kind`` went wrong; ``text`` tells this instance of it."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        now = self._clock()
        if now < self._silent_until.get(kind, 0.0):
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            return
        self._silent_until[kind] = now + self._interval_s
        more = self._suppressed.pop(kind, 0)
        rest = f" ({more} more like it were not logged)" if more else ""
        log.warning("%s: %s%s", kind, text, rest, extra=event(kind.replace(" ", "_"), not_logged=more))
