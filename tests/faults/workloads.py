"""Workloads: what the clients of a run do, as proportions of the deeds that the simulator's applications know.

Each deed's payload is unlike any other, each call has its two lines. ``mix`` is what the simulator does. ``locks`` has
programs of its own (``locks.py``), which run beside clients that do a little of everything.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from groupsvc.testing.sim.applications import ApplicationHabits


@attrs.frozen(kw_only=True)
class Workload:
    """What clients do."""

    habits: ApplicationHabits
    deeds: Mapping[str, int] = attrs.field(factory=dict)  # by name; none: those of the simulator
    per_node: int = 2  # clients
    contenders: int = 0  # for a lock, on each node


def _habits(**more: object) -> ApplicationHabits:
    return ApplicationHabits(**{"groups": 2, "think_s": 0.08, "burst": 4, "watch": 0.15, "trouble_s": 0, **more})  # type: ignore[arg-type]


WORKLOADS: dict[str, Workload] = {
    "mix": Workload(habits=_habits(barriers=2, tables=0.5, earlier=0.3, exclusive=0.3, fast=0.2, keeps=0.3)),
    "multicast": Workload(
        habits=_habits(think_s=0.03, burst=24, earlier=0.3),
        deeds={"multicast": 60, "flush": 10, "catch_up": 10, "submit_outside": 5, "come": 4, "goodbye": 1},
    ),
    "state": Workload(
        habits=_habits(groups=1, parts_max=1, watch=0.1),
        deeds={"propose_state": 60, "catch_up": 25, "come": 6, "goodbye": 1, "ask_outcome": 4},
    ),
    "ballots": Workload(
        habits=_habits(),
        deeds={"propose_state": 25, "send": 30, "change_attributes": 5, "expel": 2, "come": 8, "leave": 3,
               "ask_outcome": 6, "ask_why": 3, "catch_up": 5},
    ),
    "barriers": Workload(
        habits=_habits(groups=1, barriers=3, keeps=0.4, watch=0.0),
        deeds={"come": 10, "leave": 2, "goodbye": 1, "multicast": 10, "propose_state": 5},
    ),
    "churn": Workload(
        habits=_habits(groups=3, watch=0.3),
        deeds={"come": 30, "leave": 15, "goodbye": 10, "close": 10, "expel": 5, "multicast": 10, "propose_state": 5},
    ),
    "tables": Workload(
        habits=_habits(tables=1.0, burst=8),
        deeds={"multicast": 50, "flush": 8, "catch_up": 10, "come": 8, "goodbye": 3, "leave": 2},
    ),
    "locks": Workload(
        habits=_habits(groups=1, think_s=0.3),
        deeds={"multicast": 30, "propose_state": 10, "come": 5, "catch_up": 10},
        per_node=1, contenders=2,
    ),
}  # fmt: skip
"""By name."""
