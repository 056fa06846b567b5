"""The lock of ``locks.py`` for asyncio. Whoever loses it is interrupted.

A holds the lock and awaits something in the body of its ``async with``. When the lock is lost the body is cancelled
where it awaits, and what comes out of the ``async with`` is ``LockLost``: the same way in which ``asyncio.timeout``
works. With ``on_lost="event"`` nothing is cancelled; the body looks at ``held.lost``, and ``LockLost`` is raised at its
end.

That nobody vouches for the lock at the moment (``Suspended``) cancels nothing. It may come back, with the same fence;
``check()`` says it, and belongs before everything that must be done by one alone.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Literal

from ..drivers.loop_pump import LoopPump
from ..errors import GroupServiceError, TimedOut, UsageError
from ..holding import HeldInTurn
from ..sansio import arguments as check
from ..sansio.contending import Contender, Line, without_keepers
from ..views import Provider
from .looking import aio_providers_of
from .turns import Attempt, Trial, Turn, Turns

OnLost = Literal["cancel", "event"]


class Lock(Turns[LoopPump, asyncio.Event]):
    """A lock in the hands of tasks; an async context manager that gives a guard (``HeldInTurn``)."""

    def __init__(
        self, pump: LoopPump, default_timeout: float, line: Line, *, is_reentrant: bool = False,
        on_lost: OnLost = "cancel",
    ) -> None:  # fmt: skip
        super().__init__(pump, default_timeout, line, is_reentrant=is_reentrant)
        if on_lost not in ("cancel", "event"):
            raise UsageError(f'on_lost is {on_lost!r}; it must be "cancel" or "event"', group=line.group)
        self._on_lost = on_lost
        self._bodies: dict[Turn[asyncio.Event], Body] = {}  # of the outermost block that holds it

    def _owner(self) -> object:
        return asyncio.current_task()

    async def acquire(self, timeout: float | None = None) -> bool:
        """Wait for my turn; False if it does not come in time: then I have left the line."""
        return await self._acquired(timeout) is not None

    async def try_acquire(self, timeout: float | None = None) -> bool:
        """Have it if it is free, and wait for no other holder; ``TimedOut`` if the daemon does not say so in time."""
        return await self._made(self._attempt(timeout, Trial)) is not None

    async def release(self) -> None:
        """Give it back; ``LockLost`` if it was lost meanwhile, ``UsageError`` if it is not held here at all."""
        self._pump.check_usable()
        turn = self._mine("that it is released")
        if self._done(turn):
            self._give_back(turn)

    def _give_back(self, turn: Turn[asyncio.Event]) -> None:
        is_lost = turn.contender.has_lost
        self._withdraw(turn.contender)
        if is_lost:
            raise turn.contender.lost()

    async def _acquired(self, timeout: float | None) -> Turn[asyncio.Event] | None:
        return await self._made(self._attempt(timeout))

    async def _made(self, attempt: Attempt[asyncio.Event] | None) -> Turn[asyncio.Event] | None:
        """What comes of an attempt."""
        if attempt is None:
            return self._mine("that it is held")
        try:
            await self._pump.finish(attempt.contender.start, attempt.wait)
            if not await self._pump.wait_until(attempt.is_decided, attempt.until):
                raise TimedOut
            self._take(attempt, asyncio.Event(), asyncio.Event())
        except GroupServiceError as error:
            attempt.raise_unless_late(error)
            self._why_late = attempt.why_late
        finally:
            if attempt.turn is None:
                self._withdraw(attempt.contender)
        return attempt.turn

    def _withdraw(self, contender: Contender) -> None:
        """Waits for nothing: a task that is cancelled says goodbye, too."""
        contender.withdraw()
        self._pump.turn()

    async def in_line(self, *, timeout: float | None = None) -> tuple[Provider, ...]:
        """Who holds it, and behind him who waits; asked of the daemon, so true a moment ago."""
        wait = check.seconds(timeout, self._default_timeout)
        return without_keepers(await aio_providers_of(self._pump, self._line.group, wait))

    # --- As a context ---

    async def __aenter__(self) -> HeldInTurn[asyncio.Event]:
        turn = await self._acquired(None)
        if turn is None:
            raise self._too_late(self._default_timeout)
        if self._on_lost == "cancel" and turn not in self._bodies:  # else it is with the block around this one
            self._bodies[turn] = Body(turn)
        self._entered.append(turn)
        return turn.held

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._pump.is_mine:
            return
        turn = self._left_block()
        was_cancelled_here = turn not in self._entered and turn in self._bodies and self._bodies.pop(turn).ended(kind)
        is_lost, is_last = turn.contender.has_lost, self._done(turn)
        if is_last:
            self._withdraw(turn.contender)
        if is_lost and (was_cancelled_here or (is_last and kind is None)):
            raise turn.contender.lost()


class Body:
    """The body of an ``async with``: its task is cancelled when what it holds is lost."""

    def __init__(self, turn: Turn[asyncio.Event]) -> None:
        self.turn = turn
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._is_running = True
        self._has_cancelled = False
        turn.contender.membership.on_end.append(self._hear)
        if turn.contender.has_lost:
            self._hear()

    def _hear(self) -> None:
        """Not at once: the body itself may be the one who has just heard of it, and is between two awaits."""
        self._task.get_loop().call_soon(self._lost)

    def _lost(self) -> None:
        if self._is_running and not self._has_cancelled and not self.turn.contender.was_withdrawn:
            self._has_cancelled = True
            self._task.cancel()

    def ended(self, kind: type[BaseException] | None) -> bool:
        """It is over; whether by this cancellation, and no other."""
        self._is_running = False
        if not self._has_cancelled:
            return False
        return self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError
