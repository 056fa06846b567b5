"""The place in a group of ``places.py`` for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast

from .. import clock
from ..drivers.loop_pump import LoopPump
from ..errors import AttributesMismatch, NotAMember, StaleVersion
from ..sansio.contending import Line, disagrees, join_as
from ..sansio.membership_machine import Membership
from ..views import View
from .places import KeptOpen, Step

if TYPE_CHECKING:
    from ..aio import Group


class Place(KeptOpen[LoopPump, "Group"]):
    """In the hands of tasks; an async context manager that closes."""

    def __init__(self, pump: LoopPump, default_timeout: float, line: Line) -> None:
        super().__init__(pump, default_timeout, line)
        self._entering = asyncio.Lock()

    async def close(self) -> None:
        """Have no part in it any more; may be called again."""
        group, self._group = self._group, None
        if group is not None:
            await group._goodbye()

    async def _opened(self, until: float) -> Group:
        """The group, entered if it is not yet, or not any more."""
        from ..aio import Group  # which imports what is built on this

        self._pump.check_usable()
        async with self._entering:
            group = self._group
            if group is None or group.ended:
                left = max(0.001, until - clock.now())
                try:
                    start = join_as(self._pump.machine, self._line)
                    membership = cast(Membership, await self._pump.finish(start, left))
                except AttributesMismatch as problem:
                    raise disagrees(self._line, problem) from problem
                self._group = group = Group(self._pump, membership, self._default_timeout)
            return group

    async def _change(self, step: Step, until: float) -> bytes:
        """The value after this step, which is taken once; ``OutcomeUnknown`` if that is not known."""
        while True:
            group = await self._opened(until)
            view = group.view
            value = step(view)
            if value is None:
                return view.state
            left = self._left(until)
            try:
                (await group.propose_state(value, if_version=view.state_version, timeout=left)).require()
                return value
            except StaleVersion:
                await _wait_for_newer(group, view, until)
            except NotAMember:
                continue  # the place was lost in this moment; with another one it can be tried again

    async def _wait_until(self, is_so: Callable[[Membership], bool], until: float) -> bool:
        """Enter, and wait until what is known here is so; False if it is not in time."""
        self._check_may_wait()
        group = await self._opened(until)
        membership = group._membership
        found = await group._wait_for(lambda: is_so(membership), until)
        if not found and membership.has_ended:
            raise self._place_lost(membership)
        return found

    async def __aenter__(self) -> Self:
        await self._opened(self._until(None))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pump.is_mine:
            await self.close()


async def _wait_for_newer(group: Group, view: View, until: float) -> None:
    """Until this view, which was too old, is not the newest one here any more."""
    membership = group._membership
    await group._wait_for(lambda: membership.view.state_version != view.state_version, until)
