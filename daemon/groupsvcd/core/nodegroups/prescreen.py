"""Who may take part in a group that is there already: whoever asks for what it is (GS-22).

The first one forms the group and says what it is like. Whoever comes later and states nothing takes it as it is. If it
states something, that must be so in this group, given or by default: a program that counts on ``commit_k = 3`` must not
find itself in a group where one copy is enough. The answer names what differs, and both values.

The record of the directory is compared on the joiner's own node, before anybody is asked to insert it: attributes do
not change while a group exists, so its leader could say nothing else.

Members with and without a machine do not mix: one without would give others an empty state. A node has one machine in a
group. Other programs on it may take part without one; if the machine has to skip entries they have lost the group.
"""

from __future__ import annotations

from ..domain.attributes import ATTRIBUTES, in_words
from ..views import AttributeValue
from .group_settings import GroupSettings
from .user import Application, Machine

NO_PROCESSES = (
    "this is no group of processes: a daemon carries it on its own account (look-up --form), or for a program inside;"
    " choose another name"
)


def problem_with(application: Application, settings: GroupSettings, present: Machine | None) -> str:
    """Why somebody cannot take part in a group with these settings, or "". ``present``: this node's machine in it."""
    if application.attributes.get("processes") is True and not settings.processes:
        return NO_PROCESSES
    found = differences(application.attributes, settings)
    if settings.machine and application.machine is None and present is None:
        found.append("the members of this group have a state machine; join with one")
    elif not settings.machine and application.machine is not None:
        found.append("the members of this group have no state machine; join without one")
    elif application.machine is not None and present is not None and present is not application.machine:
        found.append("this node has its state machine in this group already; join without one")
    return "; ".join(found)


def differences(stated: dict[str, AttributeValue], settings: GroupSettings) -> list[str]:
    """What is stated and is otherwise in this group, as sentences."""
    found: list[str] = []
    for name in sorted(stated):
        if name not in ATTRIBUTES:
            found.append(f"attribute {name} is not known")
            continue
        is_so, how = settings.value_of(name), "" if settings.is_given(name) else " (by default)"
        if type(stated[name]) is not type(is_so) or stated[name] != is_so:
            found.append(f"attribute {name} is {in_words(is_so)}{how} in this group, not {in_words(stated[name])}")
    return found
