"""Whether a command may go on: a judgement of what a guard says, by our own clock.

While a daemon vouches for the lock, it says for how long: nobody else has it before that time is over, also if the
connection breaks and the daemon is not heard of any more. So a break is no reason to end a command at once. It is
waited for until the time that was promised has passed, and no longer; whoever knows better adds ``patience_s``.

A daemon forgets a session that was cut off for ``GRACE_S``, so what was promised for longer than that does not count.

Who was asleep (Ctrl-Z, a suspended machine) has heard of nothing, and finds everything out of date. It looks again
before it judges: a program that was stopped keeps what it holds.
"""

from __future__ import annotations

import enum
import math

from ..wire.limits import GRACE_S

LOOK_S = 0.2
"""How often the guard is asked: it may be lost at any time."""

ASLEEP_S = 1.0
"""Who has not looked for so long was asleep."""

WAKING_S = 1.0
"""What it takes to hear from the daemon again, on a busy machine."""

BREAK_S = GRACE_S - 1.0
"""How long a break may last at most: the daemon may have noticed it before us."""


class Standing(enum.Enum):
    """How it stands with what is held."""

    HELD = "held"
    DOUBTED = "doubted"  # nobody vouches for it, and nobody else can have it yet
    LOST = "lost"


class Vouching:
    """Of one turn; ``look`` is called several times a second."""

    def __init__(self, now: float, *, patience_s: float = 0.0) -> None:
        self._patience_s = patience_s
        self._looked_at = now
        self._until = now
        self._is_doubted = False
        self._has_been_woken = False  # since it was held

    def next_look(self, now: float) -> float:
        """In how many seconds at most: who looks later would act later than it could."""
        left = self._until - now
        return min(left, LOOK_S) if left > 0 else LOOK_S

    def look(self, now: float, *, valid_for: float, is_lost: bool) -> Standing:
        """What the guard says now."""
        was_asleep = now - self._looked_at > ASLEEP_S
        self._looked_at = now
        if is_lost:
            self._until = -math.inf
            return Standing.LOST
        if valid_for > 0:
            self._until = now + valid_for + self._patience_s
            self._is_doubted = self._has_been_woken = False
            return Standing.HELD
        if not self._is_doubted:
            self._is_doubted = True
            self._until = min(self._until, now + BREAK_S + self._patience_s)
        if was_asleep and not self._has_been_woken:
            self._has_been_woken = True  # once: who is slow for long does not go on for ever
            self._until = max(self._until, now + WAKING_S)
        return Standing.DOUBTED if now < self._until else Standing.LOST
