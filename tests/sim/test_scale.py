"""What operations cost is what docs/SCALE.md says: a small run of what ``make scale`` does with a thousand nodes.

The formulas know nothing of the run but its size. The controls show that a message too many, a member too few, and an
entry that differs are seen.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from groupsvc.testing.sim.scale import formulas
from groupsvc.testing.sim.scale.meter import MeteredWorld
from groupsvc.testing.sim.scale.scene import Scene
from groupsvc.testing.sim.scale.story import Size, Story
from groupsvc.testing.sim.scale.table import Line, Table
from groupsvcd.core.nodegroups.beats import Beats
from groupsvcd.core.stream.entries import Entry

SMALL = Size(nodes=60, groups=400, seconds=20.0, deeds=10)


@pytest.mark.slow
def test_a_small_domain_costs_what_was_computed() -> None:
    """GS-02, SAM-04: messages and bytes of every operation; at the end one leader, one list, equal entries."""
    table = Story(SMALL, io.StringIO()).tell()
    assert [] == table.faults
    assert 30 <= len(table.lines)


@pytest.fixture
def settled() -> Iterator[Scene]:
    """A few groups on a few nodes."""
    world = MeteredWorld(1, 20, voters=3, parameters={"journal_full": False})
    scene = Scene(world, 12)
    world.run(until=3.0)
    for group in scene.groups:
        for position, name in enumerate(list(group.members)):
            world.push(world.t + 0.3 * position, scene.join, group, name)
    world.run(until=6.0)
    assert [] == scene.check()
    yield scene
    assert [] == world.failures


def test_what_an_idle_group_costs_does_not_grow_with_the_domain(settled: Scene) -> None:
    """GS-02: only beats, answers, and receivers that ask whether there is anything; the name server hears nothing."""
    world = settled.world
    world.meter.start()
    world.run(until=world.t + 4.0)
    expected = formulas.plus(
        *(formulas.times(4.0, formulas.idle_group(len(group.members))) for group in settled.groups)
    )
    found = {kind: count[0] for kind, count in world.meter.kinds.items() if kind in expected}
    assert all(abs(expected[kind] - found[kind]) <= 0.05 * expected[kind] for kind in expected)
    assert {"LeaderAlive", "Alive", "AliveAck", *expected} == set(world.meter.kinds)


def test_a_beat_too_many_is_seen(monkeypatch: pytest.MonkeyPatch, settled: Scene) -> None:
    """A control: the leaders do not slow down."""
    world = settled.world
    monkeypatch.setattr(Beats, "is_quiet", property(lambda self: False, lambda self, value: None), raising=False)
    world.meter.start()
    world.run(until=world.t + 4.0)
    expected = sum(4.0 * formulas.idle_group(len(group.members))["Beat"] for group in settled.groups)
    assert not Line("beats", expected, world.meter.kinds["Beat"][0], 0.10).is_kept


def test_a_group_that_is_not_where_it_should_be_is_seen(settled: Scene) -> None:
    """A control: a node leaves, and nobody was to."""
    group = settled.groups[0]
    name = group.members[1]
    settled.leave(group, name)
    group.members.append(name)
    settled.world.run(until=settled.world.t + 2.0)
    assert [] != settled.check()


def test_members_that_are_told_different_entries_are_seen(settled: Scene) -> None:
    """A control: B4, at the spot."""
    group = settled.groups[0]
    group.told("a", 1_000, Entry("a", 1, 1, b"red"))
    group.told("b", 1_000, Entry("a", 1, 1, b"blue"))
    assert ["g0: b is told another entry 1000 than others"] == settled.problems


def test_a_table_tells_what_is_not_kept() -> None:
    table = Table()
    table.add(Line("kept", 100.0, 104.0, 0.05))
    table.add(Line("not kept", 100.0, 106.0, 0.05))
    table.bound("passed", 10, 11)
    table.check("so", 1, 2)
    assert ["not kept: 106.0 measured, 100.0 computed, off by +6%", "passed: 11 is more than 10",
            "so: expected 1, found 2"] == table.faults  # fmt: skip
    out = io.StringIO()
    table.print(out)
    assert 1 == out.getvalue().count("<-- not kept")
