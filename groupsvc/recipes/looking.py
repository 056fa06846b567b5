"""Looking at a group without being in it: who is on the list, as the daemon knows it now."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..errors import NoSuchGroup
from ..sansio import asking
from ..sansio.membership_machine import Membership
from ..views import Provider

if TYPE_CHECKING:
    from ..drivers.loop_pump import LoopPump
    from ..drivers.pump import Pump


def providers_of(pump: Pump, group: str, wait: float) -> tuple[Provider, ...]:
    """The oldest first; nobody if there is no such group."""
    try:
        membership = cast(Membership, pump.finish(asking.subscribe(pump.machine, group, wait=0.0), wait))
    except NoSuchGroup:
        return ()
    pump.do(lambda: pump.machine.say(asking.goodbye_of(pump.machine, membership)))
    return membership.view.providers


async def aio_providers_of(pump: LoopPump, group: str, wait: float) -> tuple[Provider, ...]:
    """The same, awaited."""
    try:
        membership = cast(Membership, await pump.finish(asking.subscribe(pump.machine, group, wait=0.0), wait))
    except NoSuchGroup:
        return ()
    pump.machine.say(asking.goodbye_of(pump.machine, membership))
    pump.turn()
    return membership.view.providers
