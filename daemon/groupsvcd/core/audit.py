"""Records for who wants to know afterwards: who came in, who was turned away, who wanted whom expelled.

A record is a line of the event journal and of the log, with a name that does not change and ``who`` it was. What is
refused a thousand times a second must not push everything else out of either, so of one kind and one principal only a
few are written in a second; the next one that is written says how many were not (``missed``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RECORDS_PER_S = 10
REMEMBERED_MAX = 1_000
"""Kinds and principals that are counted apart; then counting begins anew for all."""

Write = Callable[[str, dict[str, Any]], None]


class Audit:
    """Counts by kind and principal, and writes some."""

    def __init__(self, clock: Callable[[], float], write: Write) -> None:
        self._clock, self._write = clock, write
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}  # since when, how many

    def record(self, op: str, who: str, **args: Any) -> None:
        """Something happened that ``who`` did, or wanted."""
        now = self._clock()
        since, count = self._counts.get((op, who), (now, 0))
        missed = 0
        if now >= since + 1.0:
            missed = max(0, count - RECORDS_PER_S)
            since, count = now, 0
        if len(self._counts) >= REMEMBERED_MAX:
            self._counts.clear()
        self._counts[(op, who)] = (since, count + 1)
        if count < RECORDS_PER_S:
            self._write(op, {"who": who, **args, **({"missed": missed} if missed else {})})
