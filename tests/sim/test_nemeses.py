"""Every nemesis does what its name says, undoes what can be undone, and stays within the fault model."""

from __future__ import annotations

import random

import pytest

from groupsvc.testing.sim import NEMESES, Habits, World, converge
from groupsvc.testing.sim.cuts import Bridge, Halves, MajoritiesRing
from groupsvc.testing.sim.nemeses import LoseDisk

TOY = "tests.sim.toy_engine:ToyEngine"
NEEDS_MORE_THAN_A_TOY = {"lose-disk", "replace-voter"}


@pytest.mark.parametrize("name", sorted(set(NEMESES) - NEEDS_MORE_THAN_A_TOY))
def test_a_world_recovers_from_it(name: str) -> None:
    world = World(5, 5, engine=TOY, faults=(name,), fault_gap_s=1.0, habits=Habits(count=3))
    world.run(until=25.0)
    converge(world)
    assert [] == world.failures
    assert world.marks[f"fault {name}"] > 1


def _ring_world(voters: int) -> World:
    return World(5, voters, voters=voters, engine=TOY)


@pytest.mark.parametrize("voters", [3, 5])
def test_in_a_ring_every_voter_sees_a_majority_and_no_two_the_same(voters: int) -> None:
    world = _ring_world(voters)
    cut = set(MajoritiesRing(world, random.Random(1)).links())
    seen = {a: frozenset(b for b in world.voters if (a, b) not in cut) for a in world.voters}
    assert all(2 * len(others) > voters for others in seen.values())
    assert voters == len(set(seen.values()))


def test_halves_do_not_see_each_other() -> None:
    world = _ring_world(5)
    cut = set(Halves(world, random.Random(1)).links())
    assert 2 * 2 * 3 == len(cut)
    assert all((b, a) in cut for a, b in cut)


def test_a_bridge_leaves_one_node_that_sees_all() -> None:
    world = _ring_world(5)
    cut = Bridge(world, random.Random(1)).links()
    hurt = {name for pair in cut for name in pair}
    assert 4 == len(hurt)


@pytest.mark.parametrize("voters, at_most", [(1, 0), (2, 0), (3, 1), (5, 2)])
def test_never_more_than_a_minority_of_disks_is_lost(voters: int, at_most: int) -> None:
    """A majority of disks is what every promise rests on."""
    world = World(5, voters, voters=voters, engine=TOY, start_within_s=0.0)
    world.run(until=1.0)
    for node in world.nodes.values():
        node.disk.logs.setdefault(0, node.disk.logs.get(0) or next(iter(world.nodes.values())).disk.logs[0])
    lost = [LoseDisk(world, random.Random(seed)).begin() for seed in range(10)]
    assert at_most == sum(name is not None for name in lost)
    assert at_most == sum(node.disk.lost for node in world.nodes.values())


def test_healing_leaves_no_trace_of_any_fault() -> None:
    world = World(6, 3, engine=TOY, faults=tuple(sorted(set(NEMESES) - NEEDS_MORE_THAN_A_TOY)), fault_gap_s=0.3)
    world.run(until=20.0)
    world.heal()
    for name, node in world.nodes.items():
        assert node.running
        assert not node.paused
        assert (0, False, 1.0) == (node.disk.stuck, node.disk.error, node.disk.slowness)
        assert all(world.network.works_both_ways(name, other) for other in world.names if other != name)
