"""What is held by turns, in the hands of a program: acquire, release, and the guard of what is held.

    thread ── acquire ──► Attempt ── stands in ──► line: the providers of group _lock/x, the oldest first
                             │                              A (has the turn)   B   C
                             ▼ its turn has come
                           Turn ── guarded by ──► HeldInTurn: fence, valid_for, lost, check()

An *attempt* is one try to have it, with a time after which it is given up. Its *contender* (``contending.py``) is the
provider that stands in line for it. A *turn* is what an attempt becomes that succeeded, until it is given back or lost.
The *pump* (``drivers``) is whoever moves frames between the session and its daemon while somebody waits: a thread, or
the event loop.

A ``Lock`` object can be used by any number of threads (or tasks): each ``acquire`` stands in line for itself. So one
object may have several turns, one after the other, or at the same time if it is a semaphore. Who releases gives back
the newest of its own thread; if it has none, because one thread acquires and another releases, the newest of all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from .. import clock
from ..errors import AttributesMismatch, GroupServiceError, OutcomeUnknown, TimedOut, UsageError
from ..holding import HeldInTurn
from ..known_group import P
from ..sansio import arguments as check
from ..sansio import asking
from ..sansio.contending import Contender, Line, disagrees
from ..sansio.session_machine import SessionMachine
from ..session_states import SessionState

if TYPE_CHECKING:
    from ..drivers.loop_pump import LoopPump
    from ..drivers.pump import Pump


class Settable(Protocol):
    """An event of threads, or of asyncio."""

    def set(self) -> None:
        """It happened."""

    def clear(self) -> None:
        """It did not."""


E = TypeVar("E", bound=Settable)


class Turn(Generic[E]):
    """One turn of one owner, who has acquired it ``depth`` times."""

    def __init__(self, contender: Contender, held: HeldInTurn[E], owner: object) -> None:
        self.contender = contender
        self.held = held
        self.owner = owner
        self.depth = 1

    def __repr__(self) -> str:
        return f"<Turn at {self.contender.line.what}, acquired {self.depth} times, {self.held!r}>"


def turn_of(pump: Pump | LoopPump, contender: Contender, lost: E, suspended: E, owner: object) -> Turn[E]:
    """What a contender has whose turn it is. ``lost`` is set when it ends, unless it was given back."""
    membership = contender.membership

    def ended() -> None:
        if not contender.was_withdrawn:
            lost.set()

    def doubted(is_in_doubt: bool) -> None:
        if is_in_doubt:
            suspended.set()
        else:
            suspended.clear()

    membership.on_doubt.append(doubted)
    membership.on_end.append(ended)
    doubted(pump.machine.state is SessionState.SUSPENDED)
    if membership.has_ended:
        ended()
    return Turn(contender, HeldInTurn(pump, contender, lost, suspended), owner)


class Attempt(Generic[E]):
    """One try to have a turn: who stands in line, until when, and what came of it."""

    def __init__(self, machine: SessionMachine, line: Line, wait: float) -> None:
        self.contender = Contender(machine, line)
        self.wait = wait
        self.until = clock.now() + wait
        self.turn: Turn[E] | None = None
        self.why_late = ""  # in words
        self._line = line

    def __repr__(self) -> str:
        return f"<{type(self).__name__} to have {self._line.what} within {self.wait:g} s>"

    def is_decided(self) -> bool:
        """Whether the turn has come, or cannot come any more."""
        return self.contender.has_turn(clock.now()) or self.contender.membership.has_ended

    def raise_unless_late(self, error: GroupServiceError) -> None:
        """Somebody was not let in; that the time was up is no error."""
        if isinstance(error, AttributesMismatch):
            raise disagrees(self._line, error) from error
        in_time = clock.now() < self.until
        if not isinstance(error, TimedOut) and (in_time or not isinstance(error, OutcomeUnknown)):
            raise error
        self.why_late = self.contender.why_late(clock.now()) or f"nobody could say whose turn it is: {error.what}"


class Trial(Attempt[E]):
    """An attempt that waits for the daemon's answer, and for no other holder."""

    def is_decided(self) -> bool:
        """Whether somebody vouches for the line, so that it is known whose turn it is."""
        return self.contender.knows_its_turn(clock.now()) or self.contender.membership.has_ended

    def raise_unless_late(self, error: GroupServiceError) -> None:
        """There is nothing that one could be late for."""
        if isinstance(error, TimedOut):
            text = f"nobody said within {self.wait:g} s whether {self._line.what} is free: {error.what}"
            raise TimedOut(text, group=self._line.group, advice="try again") from error
        super().raise_unless_late(error)
        raise error


class Turns(ABC, Generic[P, E]):
    """Those of one object, for both drivers."""

    def __init__(self, pump: P, default_timeout: float, line: Line, *, is_reentrant: bool) -> None:
        if not isinstance(is_reentrant, bool):
            raise UsageError(f"reentrant is {is_reentrant!r}; it must be True or False")
        self._pump = pump
        self._default_timeout = default_timeout
        self._line = line
        self._is_reentrant = is_reentrant
        self._turns: list[Turn[E]] = []
        self._entered: list[Turn[E]] = []  # those of with blocks, once for each
        self._why_late = ""  # the last attempt that was

    @abstractmethod
    def _owner(self) -> object:
        """Who asks: a thread, or a task."""

    # --- Having a turn ---

    def _attempt(self, timeout: float | None, kind: type[Attempt[E]] = Attempt) -> Attempt[E] | None:
        """To have a turn; None if this owner has one already, and now once more."""
        wait = check.seconds(timeout, self._default_timeout)
        self._pump.check_usable()
        asking.check_may_wait(f"for {self._line.what}", self._line.group, is_callback=self._pump.is_callback)
        return None if self._again() else kind(self._pump.machine, self._line, wait)

    def _take(self, attempt: Attempt[E], lost: E, suspended: E) -> None:
        """It is decided: the turn has come, or it has not, or the place in line is lost."""
        if attempt.contender.membership.has_ended:
            raise attempt.contender.not_had()
        if not attempt.contender.has_had_turn:
            return
        attempt.turn = turn_of(self._pump, attempt.contender, lost, suspended, self._owner())
        self._turns.append(attempt.turn)

    # --- What is held ---

    @property
    def is_held(self) -> bool:
        """Whether this object holds it, as far as is known here."""
        return any(not turn.contender.has_lost for turn in self._turns)

    @property
    def fence(self) -> int:
        """Grows from holder to holder, for ever: give it to what you write to, which refuses smaller ones."""
        return self._mine("its fence").held.fence

    @property
    def valid_for(self) -> float:
        """Seconds for which the daemon vouches for it, by this process's own clock; 0 if nobody does."""
        return self._mine("how long it is valid").held.valid_for

    @property
    def lost(self) -> E:
        """An event that is set when it is held no longer, and was not released."""
        return self._mine("its event").held.lost

    @property
    def suspended(self) -> E:
        """An event that is set while nobody vouches for it; it may come back, or be lost."""
        return self._mine("whether anybody vouches for it").held.suspended

    def check(self) -> None:
        """Raise ``Lost`` if it is held no longer, ``Suspended`` if nobody vouches for it now."""
        self._mine("whether it is held").held.check()

    def _mine(self, what: str) -> Turn[E]:
        turns = tuple(self._turns)  # another thread may give one back meanwhile
        if not turns:
            text = f"{self._line.what} is not held by this object, so nobody can say {what}; acquire it first"
            raise UsageError(text, group=self._line.group)
        return self._newest(turns)

    def _newest(self, turns: Sequence[Turn[E]]) -> Turn[E]:
        """Of this owner, else of all."""
        owner = self._owner()
        return next((turn for turn in reversed(turns) if turn.owner == owner), turns[-1])

    def _left_block(self) -> Turn[E]:
        """The turn of the with block that ends."""
        turn = self._newest(self._entered)
        self._entered.remove(turn)
        return turn

    # --- Once more by the same owner ---

    def _again(self) -> bool:
        """Whether this owner has it already, and now once more."""
        if not self._is_reentrant:
            return False
        owner = self._owner()
        for turn in self._turns:
            if turn.owner == owner:
                if turn.contender.has_lost:
                    raise turn.contender.lost()
                turn.depth += 1
                return True
        return False

    def _done(self, turn: Turn[E]) -> bool:
        """Once less; whether that was the last time."""
        turn.depth -= 1
        if turn.depth == 0 and turn in self._turns:
            self._turns.remove(turn)
            return True
        return False

    def _too_late(self, wait: float) -> TimedOut:
        text = f"{self._line.what} was not to be had within {wait:g} s; {self._why_late}"
        return TimedOut(text, group=self._line.group, advice="timeout=... waits as long as you like")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._line.what}{', held' if self.is_held else ''}>"
