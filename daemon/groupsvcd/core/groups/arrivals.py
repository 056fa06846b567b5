"""Who waits for this node to carry a group: one after the other, each with its own wish.

A process on A asks for "db", another one half a millisecond later. The first wants the group formed if there is none,
the second must not have it formed. So they come one after the other: the first *arrival* decides how A looks for the
group, the others wait until it is known what came of that. If A is in, whoever fits is let in at once; if the first was
turned away, the next one asks for itself. No group is formed for somebody who did not want that (GS-21), and nobody who
wanted a new one finds himself in an old one.

Asking for all at once was rejected: what one of them wants would be done in the name of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from ..nodegroups.prescreen import differences
from ..nodegroups.user import GROUP_EXISTS, Form
from ..views import AttributeValue

if TYPE_CHECKING:
    from .local_group import LocalGroup
    from .process_groups import ProcessGroups


@attrs.frozen(eq=False)
class Arrival:
    """Somebody who wants to take part, and what he is told: once, one or the other."""

    attributes: dict[str, AttributeValue]
    form: Form
    admitted: Callable[[LocalGroup], None]
    turned_away: Callable[[str, str], None]  # a code, and why in words


class Arrivals:
    """All who wait on one node, by group."""

    def __init__(self, groups: ProcessGroups) -> None:
        self._groups = groups
        self._waiting: dict[str, list[Arrival]] = {}

    def awaits(self, name: str) -> bool:
        """Whether anybody waits for this group."""
        return name in self._waiting

    def come(self, name: str, arrival: Arrival) -> None:
        """Somebody wants to take part in the group; he may be told so at once."""
        waiting = self._waiting.get(name)
        local = self._groups.get(name)
        if waiting is not None:
            waiting.append(arrival)
        elif local is not None and local.is_in and not local.has_ended:
            self._judge(local, arrival)
        else:
            self._waiting[name] = [arrival]
            if local is None:
                self._groups.enter(name, arrival)

    def give_up(self, name: str, arrival: Arrival) -> None:
        """He does not want to any more."""
        waiting = self._waiting.get(name, [])
        if arrival not in waiting:
            return
        was_first = waiting[0] is arrival
        waiting.remove(arrival)
        if not waiting:
            del self._waiting[name]
        local = self._groups.get(name)
        if was_first and local is not None and local.is_idle and not local.is_steward:
            self._groups.leave(local)  # it was for him that this node asked; who waits behind him asks for himself

    def entered(self, local: LocalGroup) -> None:
        """This node is in the group."""
        for arrival in self._waiting.pop(local.name, []):
            if arrival is local.entered_for:
                arrival.admitted(local)  # what he asked for was compared with what the directory has
            else:
                self._judge(local, arrival)
        local.leave_if_idle()

    def _judge(self, local: LocalGroup, arrival: Arrival) -> None:
        """The group is there, and so is this node."""
        if arrival.form is Form.ONLY:
            arrival.turned_away("group exists", GROUP_EXISTS)
            return
        settings = self._groups.settings_of(local)
        found = differences(arrival.attributes, settings) if settings is not None else []
        if found:
            arrival.turned_away("attributes mismatch", "; ".join(found))
        else:
            arrival.admitted(local)

    def come_again(self, local: LocalGroup) -> None:
        """The group has ended: who came too late for it asks for the next one of that name."""
        for arrival in self._waiting.pop(local.name, []):
            self.come(local.name, arrival)

    def lost(self, local: LocalGroup, reason: str) -> None:
        """This node does not get in, or not as he asked for on whose account it tried."""
        waiting = self._waiting.pop(local.name, [])
        for arrival in waiting:
            if arrival is local.entered_for:
                arrival.turned_away(local.refusal or "refused", reason)
        for arrival in waiting:
            if arrival is not local.entered_for:
                self.come(local.name, arrival)
