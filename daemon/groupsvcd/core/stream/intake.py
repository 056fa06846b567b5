"""How entries get into a log that must have no gaps, and how a gap is found and closed.

Orders may be lost, doubled and overtake one another. What continues the log is appended; what lies
beyond a gap waits in ``pending``; the gap itself is asked for after about ``repair_delay``, because most gaps are
only a reordering. Asking again backs off. Whom to ask, and how soon, so that a hole shared by many does not become a
storm, is said in ``asking``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

from ..parameters import Timers
from .entries import Piece, behind, length_of, one_by_one
from .log import Log

PENDING_ENTRIES_MAX = 4096
"""What may wait beyond a gap; more is dropped and asked for again. Bounds memory under heavy loss."""


PENDING_BYTES_MAX = 8 * 1024 * 1024
"""The same in bytes."""


class Intake:
    """Feeds one log."""

    def __init__(self, log: Log, timers: Timers, rng: Random) -> None:
        self.log = log
        self._timers = timers
        self._rng = rng
        self._pending: dict[int, bytes] = {}
        self._pending_bytes = 0
        self._known_last = 0
        self.asked = 0  # how often for what is missing now
        self.ask_at = math.inf
        self._is_early = False  # whether the next question is one more than would be asked
        self.first_wait: Callable[[], float] = lambda: timers.repair_delay
        self.begins_with_checkpoint = False  # who has a machine and nothing else: with the newest one, if there is any

    def offer(self, first_seq: int, entries: tuple[Piece, ...], now: float) -> tuple[Piece, ...]:
        """Take entries numbered from ``first_seq`` on; returns those that now continue the log."""
        log = self.log
        upto = first_seq + sum(map(length_of, entries)) - 1
        if upto <= log.last:
            return ()
        if first_seq > log.last + 1:
            self.expect(upto, now)
            waiting = tuple(one_by_one(entries))
            size = sum(map(len, waiting))
            room = len(self._pending) + len(waiting) <= PENDING_ENTRIES_MAX
            if room and self._pending_bytes + size <= PENDING_BYTES_MAX:
                self._pending_bytes += size
                self._pending.update(zip(range(first_seq, upto + 1), waiting, strict=True))
            return ()
        fresh = entries if first_seq == log.last + 1 else tuple(behind(entries, log.last + 1 - first_seq))
        if self._pending:
            fresh = (*fresh, *self._waiting_after(upto))
        log.append(fresh)
        self._settle(now)
        return fresh

    def _waiting_after(self, upto: int) -> list[bytes]:
        """What continues the log behind a gap that is closed up to there."""
        found: list[bytes] = []
        while (entry := self._pending.pop(upto + 1 + len(found), None)) is not None:
            found.append(entry)
        return found

    def expect(self, last: int, now: float) -> None:
        """Entries up to ``last`` exist."""
        if last > self._known_last:
            self._known_last = last
        if self._known_last > self.log.last and self.ask_at == math.inf:
            self.ask_at = now + self.first_wait()

    def _settle(self, now: float) -> None:
        self.asked = 0
        self._is_early = False
        self.ask_at = math.inf
        if self._pending:
            self._pending = {seq: entry for seq, entry in self._pending.items() if seq > self.log.last}
        self._pending_bytes = sum(map(len, self._pending.values()))
        self.expect(0, now)

    def next_ask(self, now: float) -> tuple[int, int, int] | None:
        """If it is time to ask: (first, upto, how often asked before); plans the next time."""
        if now < self.ask_at:
            return None
        if self._known_last <= self.log.last:
            self.ask_at = math.inf
            return None
        if self._is_early:
            self._is_early = False
            self.ask_at = now + self.first_wait()
            return (*self._next_gap, 0)
        attempt = self.asked
        self.asked += 1
        wait = min(self._timers.repair_delay * 2 ** min(attempt + 1, 10), self._timers.repeat_max)
        self.ask_at = now + wait * (1 + 0.5 * self._rng.random())
        return (*self._next_gap, attempt)

    @property
    def gap(self) -> tuple[int, int] | None:
        """The first entry that is missing, and the last one before what waits."""
        return self._next_gap if self._known_last > self.log.last else None

    @property
    def _next_gap(self) -> tuple[int, int]:
        first = 0 if self.begins_with_checkpoint and not self.log.last else self.log.last + 1
        upto = min(self._pending, default=self._known_last + 1) - 1
        return (first, max(upto, first))

    def hurry(self, now: float) -> None:
        """The log goes on somewhere else, or what was asked for did not come: ask at once for what is missing now."""
        self._settle(now)
        if self.ask_at < math.inf:
            self.ask_at = now

    def begin(self, last: int, now: float) -> None:
        """Entries up to ``last`` exist, and none of them is on its way to us: ask at once.

        That question is not counted: the link to whom we ask may be too new to carry it. So it is asked again when it
        would have been asked otherwise.
        """
        self.expect(last, now)
        if self.ask_at < math.inf:
            self.ask_at = now
            self._is_early = True

    def reset(self) -> None:
        """A new epoch: what was announced under the old one is void."""
        self._pending.clear()
        self._pending_bytes = 0
        self._known_last = 0
        self.asked = 0
        self._is_early = False
        self.ask_at = math.inf
