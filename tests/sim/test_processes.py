"""Processes vote and die while nodes are killed, cut off and paused: one story for all, and it goes on in the end."""

from __future__ import annotations

import attrs
import pytest

from groupsvc.testing.sim.group_users import GroupHabits
from groupsvc.testing.sim.plan import Plan, draw
from groupsvc.testing.sim.processes import ProcessHabits, Storm
from groupsvc.testing.sim.trial import make_world
from groupsvcd.core.groups import process_group
from groupsvcd.core.groups.ballots import Verdict
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.groups.process_groups import ProcessGroups

FAULTS = (
    "kill", "pause", "isolate-one", "halves", "one-way", "flap", "kill-group-leader", "isolate-group-leader",
    "pause-group-leader", "lost-multicasts", "bad-weather",
)  # fmt: skip


def _plan(seed: int) -> Plan:
    plan = draw(seed)
    faults = tuple(FAULTS[(seed * 7 + number * 3) % len(FAULTS)] for number in range(3))
    return attrs.evolve(
        plan, voters=3, nodes=5, seconds=15.0, faults=faults, fault_gap_s=2.0, group_habits=GroupHabits(),
        parameters_of={},
    )  # fmt: skip


def _habits(seed: int) -> ProcessHabits:
    batch = ("none", "joins", "leaves", "both")[seed % 4]
    return ProcessHabits(phases="one" if seed % 5 == 0 else "n", batch=batch, think_s=(0.1, 0.3, 0.6)[seed % 3])


@pytest.mark.parametrize("seed", range(12))
def test_all_are_told_the_same_and_every_ballot_ends(seed: int) -> None:
    """G1-G3, G10, GS-26, GS-30; what is proposed is decided, whoever dies meanwhile."""
    world = make_world(_plan(seed))
    storm = Storm(world, _habits(seed))
    world.run(until=15.0)
    assert [] == world.failures
    world.heal()
    settled = storm.settle()
    assert [] == world.failures
    assert settled
    assert storm.told
    assert seed % 5 == 0 or storm.outcomes


def _found(seed: int) -> set[str]:
    world = make_world(_plan(seed))
    storm = Storm(world, _habits(seed))
    world.run(until=15.0)
    if not world.failures:
        world.heal()
        if not storm.settle() and not world.failures:
            return {"stuck"}
    return {failure.invariant for failure in world.failures}


def test_a_tally_that_forgets_rejections_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: G3."""
    monkeypatch.setattr(process_group, "verdict_of", lambda votes, phase, phases: Verdict.APPROVED)
    assert {"G3"} == _found(1)


def test_a_node_that_goes_by_other_rules_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: G1. One node takes every proposal for one of a single phase."""
    attributes_of = ProcessGroups.attributes_of
    monkeypatch.setattr(
        ProcessGroups, "attributes_of", lambda self, local: {} if self.me[0] == "n2" else attributes_of(self, local)
    )
    assert "G1" in set[str]().union(*(_found(seed) for seed in range(1, 5)))


def test_a_death_that_is_never_dealt_with_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: failures have no turn, so there is no end."""
    monkeypatch.setattr(ProcessGroup, "_failures", lambda self: [])
    assert "stuck" in set[str]().union(*(_found(seed) for seed in range(1, 5)))
