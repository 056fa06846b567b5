"""The party of ``parties.py`` for asyncio."""

from __future__ import annotations

from ..sansio import arguments as check
from ..sansio.membership_machine import Membership
from ..views import Provider
from .aio_places import Place
from .looking import aio_providers_of


class Party(Place):
    """A party in the hands of tasks; an async context manager that enters and closes."""

    async def enter(self, *, timeout: float | None = None) -> Provider:
        """Be listed; gives what the others see. Nothing happens if I am."""
        return (await self._opened(self._until(timeout))).me

    async def members(self, *, timeout: float | None = None) -> tuple[Provider, ...]:
        """Who is here, who came first first. If I am not I ask the daemon."""
        group = self._group
        if group is not None and not group.ended:
            return group.providers
        return await aio_providers_of(self._pump, self._line.group, check.seconds(timeout, self._default_timeout))

    async def fence(self, *, timeout: float | None = None) -> int:
        """Of the list as it is known here: larger after each change of it, for ever. Enters, if I am not here."""
        return (await self._opened(self._until(timeout))).view.fence

    async def wait_for(self, count: int, timeout: float | None = None) -> bool:
        """Enter, and wait until at least so many are here; False if they are not in time."""
        wanted = check.whole(count, "count", self._line.group)

        def is_full(mine: Membership) -> bool:
            return not mine.has_ended and len(mine.view.providers) >= wanted

        return await self._wait_until(is_full, self._until(timeout))
