"""A lock of the whole domain: one holder at a time, first come, first served.

    with session.lock("nightly-report") as held:
        write_report(fence=held.fence)

Nobody has to give it a time to live. It is held until it is released, or its holder dies, which the others are told at
once; and whoever is cut off knows by its own clock that it holds it no longer before anybody else gets it
(``contending.py``). Only what checks the fence is safe from a program that was asleep and does not know.
"""

from __future__ import annotations

import contextlib
import threading
from types import TracebackType
from typing import TYPE_CHECKING

from ..attributes import GroupAttributes
from ..errors import GroupServiceError, TimedOut
from ..holding import HeldInTurn
from ..sansio import arguments as check
from ..sansio.contending import Contender, Line, is_first, without_keepers
from ..views import Provider
from .looking import providers_of
from .turns import Attempt, Trial, Turn, Turns

if TYPE_CHECKING:
    from ..drivers.pump import Pump


def lock_line(name: object) -> Line:
    """Where one stands in line for the lock of this name."""
    called = check.recipe_name(name, "lock")
    attributes = GroupAttributes(exclusive=True, client_version="lock")
    return Line(f"lock {called!r}", f"_lock/{called}", attributes, is_first, is_kept=True)


class Lock(Turns["Pump", threading.Event]):
    """A lock in the hands of a blocking program; a context manager that gives a guard (``HeldInTurn``). Thread-safe."""

    def __init__(self, pump: Pump, default_timeout: float, line: Line, *, is_reentrant: bool = False) -> None:
        super().__init__(pump, default_timeout, line, is_reentrant=is_reentrant)

    def _owner(self) -> int:
        return threading.get_ident()

    def acquire(self, timeout: float | None = None) -> bool:
        """Wait for my turn; False if it does not come in time: then I have left the line."""
        return self._acquired(timeout) is not None

    def try_acquire(self, timeout: float | None = None) -> bool:
        """Have it if it is free, and wait for no other holder; ``TimedOut`` if the daemon does not say so in time."""
        return self._made(self._attempt(timeout, Trial)) is not None

    def release(self) -> None:
        """Give it back; ``LockLost`` if it was lost meanwhile, ``UsageError`` if it is not held here at all."""
        self._pump.check_usable()
        turn = self._mine("that it is released")
        if self._done(turn):
            self._give_back(turn)

    def _give_back(self, turn: Turn[threading.Event]) -> None:
        try:
            is_lost = turn.contender.has_lost
            self._pump.do(turn.contender.withdraw)
        except BaseException:  # an interrupt: who has given it back must not hold it all the same
            self._withdraw(turn.contender)
            raise
        if is_lost:
            raise turn.contender.lost()

    def _acquired(self, timeout: float | None) -> Turn[threading.Event] | None:
        return self._made(self._attempt(timeout))

    def _made(self, attempt: Attempt[threading.Event] | None) -> Turn[threading.Event] | None:
        """What comes of an attempt."""
        if attempt is None:
            return self._mine("that it is held")
        try:
            try:
                self._pump.finish(attempt.contender.start, attempt.wait)
                if not self._pump.wait_until(attempt.is_decided, attempt.until):
                    raise TimedOut
                self._pump.do(lambda: self._take(attempt, threading.Event(), threading.Event()))
            except GroupServiceError as error:
                attempt.raise_unless_late(error)
                self._why_late = attempt.why_late
            if attempt.turn is None:
                self._withdraw(attempt.contender)
            return attempt.turn
        except BaseException:  # an interrupt may come when it is had already: nobody would know that it is
            if attempt.turn is not None and attempt.turn in self._turns:
                self._turns.remove(attempt.turn)
            self._withdraw(attempt.contender)
            raise

    def _withdraw(self, contender: Contender) -> None:
        with contextlib.suppress(GroupServiceError):
            self._pump.do(contender.withdraw)

    def in_line(self, *, timeout: float | None = None) -> tuple[Provider, ...]:
        """Who holds it, and behind him who waits; asked of the daemon, so true a moment ago."""
        wait = check.seconds(timeout, self._default_timeout)
        return without_keepers(providers_of(self._pump, self._line.group, wait))

    # --- As a context ---

    def __enter__(self) -> HeldInTurn[threading.Event]:
        turn: Turn[threading.Event] | None = None
        try:
            turn = self._acquired(None)
            if turn is None:
                raise self._too_late(self._default_timeout)
            self._entered.append(turn)
            return turn.held
        except BaseException:  # the block does not begin, so nothing will be given back at its end
            if turn is not None:
                if turn in self._entered:
                    self._entered.remove(turn)
                if self._done(turn):
                    self._withdraw(turn.contender)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._pump.is_mine:
            return
        turn = self._left_block()
        if not self._done(turn):
            return
        if kind is None:
            self._give_back(turn)
        else:  # what the block raised says more
            self._withdraw(turn.contender)
