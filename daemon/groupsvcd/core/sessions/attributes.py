"""A group's attributes as its members are told them: all of them, with what holds where nobody said anything."""

from __future__ import annotations

from groupsvc.wire.notices import AttributeValue

from ..domain.attributes import ATTRIBUTES
from ..groups.local_group import LocalGroup
from ..groups.process_groups import ProcessGroups

OURS = frozenset({"machine", "processes"})
"""What every process group has, and no member needs to know of."""


def attributes_of(local: LocalGroup, processes: ProcessGroups) -> dict[str, AttributeValue]:
    """As they are now, changes included."""
    settings = processes.settings_of(local)
    changed = local.group.rules.attributes
    values: dict[str, AttributeValue] = {}
    for name in sorted(ATTRIBUTES.keys() - OURS):
        if name in changed:
            values[name] = changed[name]
        elif settings is not None:
            values[name] = settings.value_of(name)
    return values
