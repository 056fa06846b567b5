"""Whether something is still held, by one's own clock.

A holds a lock with fence 17 and writes to a disk. Its node is cut off. The others may go on without A some seconds
later, and A should have stopped by then without being told: nobody can reach it. So before each write it asks its
guard, which looks at the clock and at whether the connection to its daemon stands, and at nothing else.

What is guaranteed depends on the group:

- With the attribute ``exclusive`` the failure of a node acts when the node is *gone*: when no lease it gave can run any
  more. A's guard says no before anybody else is told that he took over.
- Without it the others go on as soon as A's node is *down*, which is quick if its daemon died. A's guard says no when A
  notices that, a moment before or after. Nothing but the fence protects then: it goes along with the write, and what
  checks fences is safe even from a program that did not ask.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from . import clock
from .errors import Lost, Suspended, UsageError
from .sansio.membership_machine import Membership
from .sansio.session_machine import SessionMachine

if TYPE_CHECKING:
    from .drivers.loop_pump import LoopPump
    from .drivers.pump import Pump
    from .sansio.contending import Contender

E = TypeVar("E")
"""An event of threads, or of asyncio."""


class Held(Generic[E]):
    """A guard of what is held in ``group`` under ``fence``; a context manager whose entry checks.

    ``lost`` is an event that is set when it is held no longer.
    """

    def __init__(
        self,
        machine: SessionMachine,
        membership: Membership,
        fence: int,
        lost: E,
        check_process: Callable[[], None],
    ) -> None:
        if isinstance(fence, bool) or not isinstance(fence, int) or fence < 0:
            raise UsageError(f"fence is {fence!r}; it must be a fence of a view", group=membership.group)
        newest = membership.view.fence
        if fence > newest:
            text = f"fence is {fence}, and the newest seen here is {newest}; it must be a fence of a view"
            raise UsageError(text, group=membership.group)
        self.group = membership.group
        self.fence = fence
        self.lost = lost
        self._machine = machine
        self._membership = membership
        self._check_process = check_process

    @property
    def valid_for(self) -> float:
        """Seconds for which the daemon vouches for it; 0 if nobody does. See above for what that excludes."""
        self._check_process()
        return 0.0 if self._membership.has_ended else self._machine.valid_for(clock.now())

    def check(self) -> None:
        """Raise ``Lost`` if it is held no longer, ``Suspended`` if nobody vouches for it now.

        And ``UsageError`` in a forked child: it is the parent's.
        """
        self._check_process()
        if self._membership.has_ended:
            raise Lost(self._membership.end_reason or "", group=self.group)
        if self._machine.valid_for(clock.now()) <= 0:
            raise Suspended("no daemon vouches for this session at the moment", group=self.group)

    def __repr__(self) -> str:
        state = "ended" if self._membership.has_ended else "held, as far as is known here"
        return f"<{type(self).__name__} in {self.group}, fence {self.fence}, {state}>"

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is let go: it was only looked at."""


class HeldInTurn(Held[E]):
    """The same for what is held by turns: a lock, the lead. ``suspended`` is set while nobody vouches for it."""

    def __init__(self, pump: Pump | LoopPump, contender: Contender, lost: E, suspended: E) -> None:
        super().__init__(pump.machine, contender.membership, contender.fence, lost, pump.check_process)
        self.suspended = suspended
