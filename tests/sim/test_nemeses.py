"""Every nemesis does what its name says, undoes what can be undone, and stays within the fault model."""

from __future__ import annotations

import random

import pytest

from groupsvc.testing.sim import NEMESES, GroupHabits, Habits, Plan, World, converge, run_plan
from groupsvc.testing.sim.cuts import Bridge, Halves, MajoritiesRing
from groupsvc.testing.sim.group_disk_nemeses import GROUP_DISK_NEMESES
from groupsvc.testing.sim.group_nemeses import GROUP_NEMESES, LATER_GROUP_NEMESES
from groupsvc.testing.sim.nemeses import LoseDisk, OldDiskReturns, QuestionStorm

TOY = "tests.sim.toy_engine:ToyEngine"
OF_GROUPS = {nemesis.name for nemesis in (*GROUP_NEMESES, *LATER_GROUP_NEMESES)}
OF_DISKS = {nemesis.name for nemesis in GROUP_DISK_NEMESES}
NEEDS_MORE_THAN_A_TOY = {
    "lose-disk",
    "bit-flip",
    "truncate",
    "replace-voter",
    "old-disk-returns",
    "drain",
    *OF_GROUPS,
    *OF_DISKS,
}


@pytest.mark.parametrize("name", sorted(set(NEMESES) - NEEDS_MORE_THAN_A_TOY))
def test_a_world_recovers_from_it(name: str) -> None:
    world = World(5, 5, engine=TOY, faults=(name,), fault_gap_s=1.0, habits=Habits(count=3))
    world.run(until=25.0)
    converge(world)
    assert [] == world.failures
    assert world.marks[f"fault {name}"] > 1


@pytest.mark.parametrize("name", [*sorted(OF_GROUPS), "drain"])
def test_groups_outlive_it(name: str) -> None:
    """What is lost with a quorum is allowed for. Nobody contradicts anybody, and in the end the group is whole."""
    plan = Plan(
        seed=6, nodes=6, seconds=25.0, faults=(name,), fault_gap_s=2.0,
        group_habits=GroupHabits(groups=2, members=8, think_s=0.3),
    )  # fmt: skip
    world, trial = run_plan(plan)
    assert () == trial.failures
    assert world.marks[f"fault {name}"] > 1


@pytest.mark.parametrize("name", [*sorted(OF_DISKS), "drain"])
def test_durable_groups_outlive_it(name: str) -> None:
    """SAM-11, S1-S4: nothing stable is lost, whatever happens to the disks of the servers."""
    habits = GroupHabits(groups=2, members=8, think_s=0.3, attributes={"durable": True})
    parameters = {"durable": True, "group_checkpoint_every": 5, "retention_margin": 2}
    plan = Plan(
        seed=5, nodes=6, seconds=25.0, faults=(name,), fault_gap_s=2.0, group_habits=habits, parameters=parameters
    )
    world, trial = run_plan(plan)
    assert () == trial.failures
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


def _replaced(voters: int = 3) -> World:
    """A domain of the real engine in which one voter's disk was lost and its replacement admitted."""
    world = World(5, voters, voters=voters)
    world.run(until=5.0)
    loss = LoseDisk(world, random.Random(1))
    assert loss.begin() is not None
    loss.end()
    world.run(until=12.0)
    return world


def test_an_old_disk_returns_and_goes_again() -> None:
    """The voter runs on what it had before the loss, counts as lost meanwhile, and is whole again afterwards."""
    world = _replaced()
    nemesis = OldDiskReturns(world, random.Random(1))
    name = nemesis.begin()
    assert name is not None
    node = world.nodes[name]
    disk = node.disk
    assert (True, True) == (disk.outdated, disk.lost)
    old, accepted = disk.state_id, disk.logs[0].accepted
    assert LoseDisk(world, random.Random(2)).begin() is None
    world.run(until=16.0)
    assert not node.running, "the name server refuses it, and it stops"
    nemesis.end()
    assert (False, False) == (disk.outdated, disk.lost)
    assert old != disk.state_id
    assert accepted <= disk.logs[0].accepted
    converge(world)
    assert [] == world.failures


def test_where_no_disk_was_replaced_one_is_lost_first() -> None:
    world = World(5, 3)
    world.run(until=5.0)
    nemesis = OldDiskReturns(world, random.Random(1))
    assert nemesis.begin() is not None
    assert [(True, False)] == [(n.disk.lost, n.disk.outdated) for n in world.nodes.values() if n.disk.lost]
    nemesis.end()
    world.run(until=12.0)
    assert OldDiskReturns(world, random.Random(1)).begin() is not None
    assert 1 == sum(node.disk.outdated for node in world.nodes.values())


def test_no_old_disk_returns_while_another_disk_is_lost() -> None:
    """Two of three would be a majority."""
    world = _replaced()
    assert LoseDisk(world, random.Random(3)).begin() is not None
    assert OldDiskReturns(world, random.Random(1)).begin() is None


@pytest.mark.parametrize("seed", range(6))
def test_old_disks_that_return_break_no_promise(seed: int) -> None:
    """S1, whoever leads and whatever else happens to be wrong."""
    faults = ("lose-disk", "old-disk-returns", "old-disk-returns", "kill", "isolate-leader")
    plan = Plan(seed=seed, seconds=40.0, faults=faults, fault_gap_s=1.0, habits=Habits(count=3))
    _, trial = run_plan(plan)
    assert () == trial.failures


def test_a_storm_of_questions_deposes_nobody_and_all_are_answered() -> None:
    """Hundreds within a second."""
    world = World(5, 3, habits=Habits(count=1))
    world.run(until=5.0)
    leader = world.name_server()
    offices = world.marks["office"]
    storm = QuestionStorm(world, random.Random(1))
    assert storm.begin() is not None
    world.run(until=10.0)
    answers = [line for line in world.history.events() if line.who.startswith("storm-") and line.type != "invoke"]
    assert len(answers) >= storm.questions[0]
    assert {"ok"} == {line.type for line in answers}
    assert (leader, offices) == (world.name_server(), world.marks["office"])
    assert [] == world.failures
