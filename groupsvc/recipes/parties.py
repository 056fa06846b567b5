"""A party: who is here, and what each has to say of itself.

    with session.party("workers", data=b"10.0.0.7:4711") as party:
        for worker in party.members():
            connect_to(worker.data)

Who enters is listed until it leaves or dies, in the order in which they came. Who only wants to know who is there asks
without entering.

What a party member does for the others may come late: B was taken for dead and C has its work. ``fence`` is a number
that grows with everybody who enters or leaves, and is the same for all who see the same list. Who hands out work by the
list gives it along; what is worked on refuses a smaller one than it has seen, as with locks.
"""

from __future__ import annotations

from ..attributes import GroupAttributes
from ..sansio import arguments as check
from ..sansio.contending import Line
from ..sansio.membership_machine import Membership
from ..views import Provider
from .looking import providers_of
from .places import Place


def party_line(name: object, data: object) -> Line:
    """Where the party of this name is, and what the others see of who enters."""
    called = check.recipe_name(name, "party")
    group = f"_party/{called}"
    attributes = GroupAttributes(client_version="party")
    return Line(f"party {called!r}", group, attributes, data=check.provider_data(data, group))


class Party(Place):
    """A party in the hands of a blocking program; a context manager that enters and closes. Thread-safe."""

    def enter(self, *, timeout: float | None = None) -> Provider:
        """Be listed; gives what the others see. Nothing happens if I am."""
        return self._opened(self._until(timeout)).me

    def members(self, *, timeout: float | None = None) -> tuple[Provider, ...]:
        """Who is here, who came first first. If I am not I ask the daemon."""
        group = self._group
        if group is not None and not group.ended:
            return group.providers
        return providers_of(self._pump, self._line.group, check.seconds(timeout, self._default_timeout))

    def fence(self, *, timeout: float | None = None) -> int:
        """Of the list as it is known here: larger after each change of it, for ever. Enters, if I am not here."""
        return self._opened(self._until(timeout)).view.fence

    def wait_for(self, count: int, timeout: float | None = None) -> bool:
        """Enter, and wait until at least so many are here; False if they are not in time."""
        wanted = check.whole(count, "count", self._line.group)

        def is_full(mine: Membership) -> bool:
            return not mine.has_ended and len(mine.view.providers) >= wanted

        return self._wait_until(is_full, self._until(timeout))
