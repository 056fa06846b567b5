"""Planted bugs: tempting short cuts in the protocol, each of which the simulator must catch.

A checker that was never red proves nothing, and neither does a simulator that never found anything. Each
entry replaces one function of the production core while it is planted; a test runs seeds until an invariant
is broken, and fails if none is. ``python -m groupsvc.testing.sim run --plant NAME`` shows one at work.
"""

from __future__ import annotations

from .applications import APPLICATIONS
from .barriers import BARRIERS
from .bug import SEEDS_MAX, Planted, Stage, broken_promises, caught
from .domain import DOMAIN, UNSORTED
from .enrolments import ENROLMENTS
from .group_disks import GROUP_DISKS
from .group_recovery import GROUP_RECOVERY
from .group_streams import GROUP_STREAMS
from .options import OPTIONS
from .tasks import TASKS

__all__ = [
    "ALL",
    "APPLICATIONS",
    "BARRIERS",
    "BY_NAME",
    "GROUPS",
    "SEEDS_MAX",
    "TASKS",
    "UNSORTED",
    "Planted",
    "Stage",
    "broken_promises",
    "caught",
]

GROUPS: tuple[Planted, ...] = (*GROUP_RECOVERY, *GROUP_STREAMS, *GROUP_DISKS)
ALL: tuple[Planted, ...] = (*DOMAIN, *OPTIONS, *ENROLMENTS, *GROUPS, *APPLICATIONS, *BARRIERS, *TASKS)
BY_NAME = {bug.name: bug for bug in (*ALL, UNSORTED)}
