"""What is known of a group without asking anybody: the same for both drivers.

Every part is read from one frozen ``view``; who needs several parts that fit together takes the view once. When the
membership has ended (``ended``) the view stays as it was; but nobody is a provider of a group that is not known.

The view is what was true when somebody vouched for it last. Who reads it while the session is SUSPENDED reads what was;
that harms nobody. To *lead* on what was does: A is cut off, the others go on without it, and B leads. So ``is_oldest``
says yes only while, by this process's own clock, somebody vouches for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from . import clock
from .attributes import GroupAttributes
from .errors import OnlyWatches
from .sansio.membership_machine import Membership
from .views import Provider, View

if TYPE_CHECKING:
    from .drivers.loop_pump import LoopPump
    from .drivers.pump import Pump

P = TypeVar("P", bound="Pump | LoopPump")
"""What moves the messages: of a blocking program, or of a loop."""


class KnownGroup:
    """A group somebody takes part in, or watches."""

    _membership: Membership

    @property
    def name(self) -> str:
        """Of the group."""
        return self._membership.group

    @property
    def attributes(self) -> GroupAttributes:
        """Of the group, as of now."""
        return self._membership.attributes

    @property
    def view(self) -> View:
        """The newest that is known here."""
        return self._membership.view

    @property
    def ended(self) -> bool:
        """Whether nothing more is told here: it was left or lost, or the session is over. Join again to go on."""
        return self._membership.has_ended

    @property
    def providers(self) -> tuple[Provider, ...]:
        """The members, the oldest first; none if it has ended."""
        providers = self.view.providers
        return () if self._membership.has_ended else providers

    @property
    def state(self) -> bytes:
        """The group's state value."""
        return self.view.state

    @property
    def state_version(self) -> int:
        """How often it has changed."""
        return self.view.state_version

    @property
    def fence(self) -> int:
        """Grows with every change of membership, for ever."""
        return self.view.fence


def not_of_a_watcher(watching: KnownGroup, name: str, provider: type) -> AttributeError:
    """Why a subscription has no such attribute: ``provider``, a class, may have one."""
    if not hasattr(provider, name):
        return AttributeError(f"{type(watching).__name__!r} object has no attribute {name!r}", name=name, obj=watching)
    group = watching.name
    text = f"a subscription to group {group!r} only watches it and has no {name}; join the group to take part"
    return OnlyWatches(text, group=group)


class JoinedGroup(KnownGroup, Generic[P]):
    """The same for a provider."""

    _pump: P

    @property
    def me(self) -> Provider:
        """What the others see of me."""
        me = self._membership.me
        assert me is not None
        return me

    @property
    def oldest(self) -> Provider | None:
        """Who has been a provider longest: the natural leader; None if it has ended."""
        providers = self.providers
        return providers[0] if providers else None

    @property
    def is_oldest(self) -> bool:
        """Whether that is me, and somebody vouches for it now by my own clock: so never while the session is SUSPENDED.

        It changes with ``Joined`` and ``Left``, and with ``Suspended`` and ``Resumed``: look at it after each event.
        Who does something that takes time uses ``held``, which says for how long.
        """
        oldest = self.oldest
        if oldest is None or oldest.id != self.me.id:
            return False
        return self._pump.is_mine and self._pump.machine.valid_for(clock.now()) > 0
