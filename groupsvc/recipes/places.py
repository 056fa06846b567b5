"""A place in a group for recipes that are kept open: entered with the first use, left with ``close``.

Counters and latches keep a number in the state value of their group, and change it by compare-and-set: who was
overtaken looks again and tries again, and somebody always wins. The value lives as long as anybody has the recipe open.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast

from .. import clock
from ..errors import AttributesMismatch, GroupServiceError, NotAMember, StaleVersion, TimedOut
from ..groups import Group
from ..known_group import KnownGroup, P
from ..sansio import arguments as check
from ..sansio import asking
from ..sansio.calls import Call
from ..sansio.contending import Line, disagrees, join_as
from ..sansio.membership_machine import Membership
from ..views import View

if TYPE_CHECKING:
    from ..drivers.pump import Pump

Step = Callable[[View], bytes | None]
"""The next value, as a function of what is known; None if nothing is to change."""


G = TypeVar("G", bound=KnownGroup)


class KeptOpen(Generic[P, G]):
    """What is the same for both drivers."""

    def __init__(self, pump: P, default_timeout: float, line: Line) -> None:
        self._pump = pump
        self._default_timeout = default_timeout
        self._line = line
        self._group: G | None = None

    def _until(self, timeout: float | None) -> float:
        return clock.now() + check.seconds(timeout, self._default_timeout)

    def _check_may_wait(self) -> None:
        asking.check_may_wait(f"for {self._line.what}", self._line.group, is_callback=self._pump.is_callback)

    def _place_lost(self, membership: Membership) -> GroupServiceError:
        """Whoever waited can see nothing any more: the session is over, or the node lost touch with the group."""
        what, group = self._line.what, self._line.group
        try:
            self._pump.machine.check_open(f"wait at {what}", group)
        except GroupServiceError as error:
            return error
        return NotAMember(f"lost the place at {what} ({membership.end_reason}); try again", group=group)

    def _left(self, until: float) -> float:
        """Of the time to change the value."""
        left = until - clock.now()
        if left <= 0:
            text = f"{self._line.what} could not be changed in time; others were faster, or nobody answers. Try again"
            raise TimedOut(text, group=self._line.group)
        return left

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self._line.group}>"


class Place(KeptOpen["Pump", Group]):
    """In the hands of a blocking program; a context manager that closes. Thread-safe."""

    def __init__(self, pump: Pump, default_timeout: float, line: Line) -> None:
        super().__init__(pump, default_timeout, line)
        self._entering = threading.Lock()

    def close(self) -> None:
        """Have no part in it any more; may be called again."""
        group, self._group = self._group, None
        if group is not None:
            group._goodbye()

    def _opened(self, until: float) -> Group:
        """The group, entered if it is not yet, or not any more."""
        self._pump.check_usable()
        with self._entering:
            group = self._group
            if group is None or group.ended:
                group = self._entered(max(0.001, until - clock.now()))
            return group

    def _entered(self, wait: float) -> Group:
        """A new place. Who is interrupted, also when it had been let in already, has none."""
        join, asked = join_as(self._pump.machine, self._line), list[Call]()

        def start(now: float, timeout: float) -> Call:
            asked.append(join(now, timeout))
            return asked[-1]

        try:
            membership = cast(Membership, self._pump.finish(start, wait))
            self._group = group = Group(self._pump, membership, self._default_timeout)
            return group
        except AttributesMismatch as problem:
            raise disagrees(self._line, problem) from problem
        except BaseException:
            self._group = None
            with contextlib.suppress(GroupServiceError):
                self._pump.do(lambda: self._abandon(asked))
            raise

    def _abandon(self, calls: list[Call]) -> None:
        for call in calls:
            self._pump.machine.abandon(call)

    def _change(self, step: Step, until: float) -> bytes:
        """The value after this step, which is taken once; ``OutcomeUnknown`` if that is not known."""
        while True:
            group = self._opened(until)
            view = group.view
            value = step(view)
            if value is None:
                return view.state
            left = self._left(until)
            try:
                group.propose_state(value, if_version=view.state_version, timeout=left).require()
                return value
            except StaleVersion:
                _wait_for_newer(group, view, until)
            except NotAMember:
                continue  # the place was lost in this moment; with another one it can be tried again

    def _wait_until(self, is_so: Callable[[Membership], bool], until: float) -> bool:
        """Enter, and wait until what is known here is so; False if it is not in time."""
        self._check_may_wait()
        group = self._opened(until)
        membership = group._membership
        found = group._wait_for(lambda: is_so(membership), until)
        if not found and membership.has_ended:
            raise self._place_lost(membership)
        return found

    def __enter__(self) -> Self:
        try:
            self._opened(self._until(None))
            return self
        except BaseException:  # the block does not begin, so nothing would be closed at its end
            if self._pump.is_mine:
                self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pump.is_mine:
            self.close()


def _wait_for_newer(group: Group, view: View, until: float) -> None:
    """Until this view, which was too old, is not the newest one here any more."""
    membership = group._membership
    group._wait_for(lambda: membership.view.state_version != view.state_version, until)
