"""Simulated programs use groups through the real engine, notice what is wrong, and share nothing with other groups."""

from __future__ import annotations

import pytest

from groupsvc.testing.sim import GroupHabits, World, converge, disagreement
from groupsvc.testing.sim.checkers import check
from groupsvc.testing.sim.group_convergence import carried, group_disagreement, passing_away, waiting_for_disks
from groupsvc.testing.sim.group_users import Member
from groupsvc.testing.sim.network import DIRECT
from groupsvc.testing.sim.planted.bug import Stage
from groupsvc.testing.sim.trial import run_plan
from groupsvc.wire.history import HistoryEvent
from groupsvcd.core.domain.grants import Grants
from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, topic_of
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import AttributeValue

VOTERS = ("n1", "n2", "n3")


def _groups(member: Member) -> NodeGroups:
    groups = member.node.groups
    assert groups is not None
    return groups


def _world(nodes: int = 3) -> World:
    world = World(5, nodes, voters=3)
    assert world.run_until(lambda: not disagreement(world), within=10.0)
    return world


def _joined(world: World, name: str, group: str, attributes: dict[str, AttributeValue] | None = None) -> Member:
    """A program at a node that takes part in a group by now."""
    member = world.group_users.member_at(world.nodes[name], f"program-at-{name}")
    member.node.call(lambda: member.join(_groups(member), group, attributes or {}))
    assert world.run_until(lambda: bool(member.group_id), within=5.0)
    return member


def _submit(world: World, member: Member, count: int) -> None:
    member.node.call(lambda: member.submit(_groups(member), count))
    assert world.run_until(lambda: not member.open, within=5.0)


def _calls(world: World, op: str, type_: str) -> list[HistoryEvent]:
    return [line for line in world.history.events() if line.op == op and line.type == type_]


def test_programs_submit_and_everybody_who_takes_part_hears_it() -> None:
    habits = GroupHabits(groups=2, members=5, strangers=1, think_s=0.2)
    world = World(2, 5, voters=3, group_habits=habits)
    world.run(until=15.0)
    assert converge(world), world.failures
    assert "" == group_disagreement(world)
    assert len(_calls(world, "submit", "ok")) > 100
    assert [] == check(world.history.events(), voters=world.voters, converged=True)


def test_nodes_that_share_no_group_exchange_nothing() -> None:
    """GS-02: beside the voters, of which one is the name server, only members of one group know each other."""
    world = _world(nodes=8)
    ours, theirs = [_joined(world, name, "a") for name in ("n4", "n5")], [_joined(world, "n6", "b")]
    theirs.append(_joined(world, "n7", "b"))
    for member in (*ours, *theirs):
        _submit(world, member, 5)
    world.run(until=world.t + 5.0)
    here, there = {"n4", "n5"}, {"n6", "n7"}
    sent = {(source, target) for source, target, _ in world.network.traffic() if not {source, target} & {*VOTERS}}
    assert {("n4", "n5"), ("n5", "n4"), ("n6", "n7"), ("n7", "n6")} == sent
    pairs = {pair for pair in world.connections() if not {*pair} & {*VOTERS}}
    assert {("n4", "n5"), ("n6", "n7")} == pairs
    topics = {topic for source, target, topic in world.network.traffic() if {source, target} <= here}
    assert {DIRECT, topic_of(ours[0].group_id)} == topics
    topics = {topic for source, target, topic in world.network.traffic() if {source, target} <= there}
    assert {DIRECT, topic_of(theirs[0].group_id)} == topics
    assert {DIRECT, DOMAIN_TOPIC} >= {topic for _, target, topic in world.network.traffic() if target == "n8"}


def test_a_program_dies_with_its_process_and_its_calls_end_unknown() -> None:
    world = _world()
    member = _joined(world, "n2", "a")
    member.node.call(lambda: member.submit(_groups(member), 3))
    open_calls = len(member.open)
    world.nodes["n2"].crash("killed")
    assert not member.alive
    assert 3 <= open_calls + len(_calls(world, "submit", "ok"))  # one who is told of something may answer at once
    assert open_calls == len(_calls(world, "submit", "info"))


def test_who_leaves_is_told_and_nobody_carries_the_group_any_more() -> None:
    world = _world()
    member = _joined(world, "n2", "a")
    member.node.call(lambda: member.leave(_groups(member)))
    assert "" == member.group
    assert world.run_until(lambda: "a" not in carried(world), within=5.0)


@pytest.mark.parametrize("first_seq, body, invariant", [(9, b"", "B4"), (0, b"nobody sent this", "B1")])
def test_a_program_notices_a_gap_and_what_nobody_sent(first_seq: int, body: bytes, invariant: str) -> None:
    world = _world()
    member = _joined(world, "n2", "a")
    entry = Entry("n2", 1, 1, body) if body else Entry("", 0, 0, body)
    member.delivered(first_seq or member.reached + 1, [entry])
    assert [invariant] == [failure.invariant for failure in world.failures]


def test_convergence_sees_a_group_that_is_not_whole() -> None:
    world = _world()
    _joined(world, "n2", "a")
    _joined(world, "n3", "a")
    assert world.run_until(lambda: "" == group_disagreement(world), within=10.0)
    world.nodes["n2"].crash("killed")
    assert "in group a" in group_disagreement(world)


def test_a_group_whose_quorum_is_lost_is_known_to_end_before_it_does() -> None:
    """With k = 1 it is lost with the leader; the other members carry on until the name server has waited."""
    world = _world(nodes=6)
    attributes: dict[str, AttributeValue] = {"replicas": 3, "commit_k": 1, "on_quorum_lost": "dissolve"}
    members = [_joined(world, name, "a", attributes) for name in ("n4", "n5", "n6")]
    assert world.run_until(lambda: not group_disagreement(world), within=5.0)
    group = members[0].group_id
    assert "" == passing_away(world, group)
    world.nodes["n4"].crash("killed")
    assert world.run_until(lambda: bool(passing_away(world, group)), within=10.0)
    assert "its quorum is lost" == passing_away(world, group)
    assert group == members[1].group_id
    assert world.run_until(lambda: not members[1].group_id, within=10.0)
    assert "it has ended" == passing_away(world, group)


def _only_member_died(world: World) -> int:
    """Of a group that nobody carries any more; the directory has to find that out."""
    member = _joined(world, "n4", "a")
    group = member.group_id
    world.nodes["n4"].crash("killed")
    return group


def test_convergence_waits_until_a_group_that_nobody_carries_has_ended() -> None:
    """X1, V7: until then strangers may have something on its way there."""
    world = _world(nodes=4)
    group = _only_member_died(world)
    assert converge(world), world.failures
    assert "it has ended" == passing_away(world, group)


def test_convergence_sees_a_group_that_is_never_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """V7: nobody is a member, and nobody would have noticed."""
    monkeypatch.setattr(Grants, "_go_on_without", lambda grants, group, since: None)
    world = _world(nodes=4)
    _only_member_died(world)
    assert not converge(world)
    assert ["V7"] == [failure.invariant for failure in world.failures]
    assert "group a has neither ended nor gone on without n4/" in world.failures[0].text


def test_a_group_in_memory_that_waits_for_its_servers_waits_for_ever_and_nothing_is_asked_of_it() -> None:
    """GS-31: who was to hold it is gone, so nobody goes on with less; the others on these nodes are judged as ever."""
    stage = Stage(
        attributes={"on_quorum_lost": "wait", "replicas": 2, "commit_k": 2}, strangers=1, seconds=10.0, gap_s=2.0
    )
    world, trial = run_plan(stage.plan(0, ("kill-group-servers",)))
    assert () == trial.failures
    assert trial.converged
    assert ["users-0"] == [line.args["name"] for line in world.history.events() if line.op == "disks_lost"]


@pytest.mark.parametrize("dead, waiting", [(("n4",), []), (("n4", "n5"), ["db"]), (("n5", "n6"), ["db"])])
def test_of_a_group_in_memory_that_waits_it_is_asked_whether_enough_are_left(
    dead: tuple[str, ...], waiting: list[str]
) -> None:
    """Of three servers two are enough to go on, be it the leader that dies or not."""
    world = _world(6)
    members = [_joined(world, name, "db", {"on_quorum_lost": "wait"}) for name in ("n4", "n5", "n6")]
    _submit(world, members[0], 3)
    world.run(until=world.t + 2.0)
    for name in dead:
        world.nodes[name].crash("killed")
    for _ in range(2):
        assert waiting == list(waiting_for_disks(world))
        world.run(until=world.t + 6.0)
