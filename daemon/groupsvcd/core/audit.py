"""Records for who wants to know afterwards: who came in, who was turned away, who wanted whom expelled.

A record is a line of the event journal and of the log, with a name that does not change and ``who`` it was. What is
refused a thousand times a second must not push everything else out of either, so of one kind and one principal only a
few are written in a second; the next one that is written says how many were not (``missed``).

What somebody chooses for himself is no part of what is counted by. A stranger comes with a new key each time, so all
strangers are counted as one, whatever their lines show. And where more principals come than can be counted apart, those
that come last are counted as one, and nobody's count begins anew before its second is over. (Of who is forgotten then
nobody is told what was missed; so many principals have to be let in first.)

A node whose key was revoked, and that still runs, shows it five times a second for as long as it runs. The same thing
shown again is recorded once a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

RECORDS_PER_S = 10
REMEMBERED_MAX = 1_000
"""Kinds and principals that are counted apart at a time."""

SHOWN_AGAIN_S = 60.0

ANYBODY = ""
"""Who is counted together with all others of whom the same is true: strangers, and who finds no room of his own."""

Write = Callable[[str, dict[str, Any]], None]


class Audit:
    """Counts by kind and principal, and writes some."""

    def __init__(self, clock: Callable[[], float], write: Write) -> None:
        self._clock, self._write = clock, write
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}  # since when, how many
        self._tidied_at = float("-inf")
        self._shown: dict[tuple[str, str], tuple[float, int]] = {}  # until when it is known, how often it came again

    def record(self, op: str, who: str, **args: Any) -> None:
        """Something happened that ``who`` did, or wanted: a principal, which nobody becomes by saying so."""
        self._record(op, who, who, args)

    def record_stranger(self, op: str, shown: str, **args: Any) -> None:
        """The same of somebody who is nobody here yet; ``shown`` is what he came with."""
        now, again = self._clock(), 0
        if shown:
            until, again = self._shown.get((op, shown), (now, 0))
            if now < until:
                self._shown[op, shown] = until, again + 1
                return
            if len(self._shown) >= REMEMBERED_MAX:
                self._shown.clear()
            self._shown[op, shown] = now + SHOWN_AGAIN_S, 0
        self._record(op, ANYBODY, shown, {**args, **({"again": again} if again else {})})

    def _record(self, op: str, counted_as: str, who: str, args: dict[str, Any]) -> None:
        now = self._clock()
        key = self._place(op, counted_as, now)
        since, count = self._counts.get(key, (now, 0))
        missed = 0
        if now >= since + 1.0:
            missed = max(0, count - RECORDS_PER_S)
            since, count = now, 0
        self._counts[key] = (since, count + 1)
        if count < RECORDS_PER_S:
            self._write(op, {"who": who, **args, **({"missed": missed} if missed else {})})

    def _place(self, op: str, counted_as: str, now: float) -> tuple[str, str]:
        key = (op, counted_as)
        if key in self._counts:
            return key
        if len(self._counts) >= REMEMBERED_MAX and now >= self._tidied_at + 1.0:
            self._tidied_at = now
            self._counts = {one: found for one, found in self._counts.items() if self._is_needed(one, found, now)}
        return key if len(self._counts) < REMEMBERED_MAX else (op, ANYBODY)

    @staticmethod
    def _is_needed(key: tuple[str, str], found: tuple[float, int], now: float) -> bool:
        """Whether its second lasts, or somebody is still to be told how many were missed."""
        since, count = found
        return now < since + 1.0 or (key[1] == ANYBODY and count > RECORDS_PER_S)
