"""Durable groups: what was stable is there again after one, some or all nodes have restarted (SAM-11)."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import pytest

from groupsvc.testing.sim import World
from groupsvc.testing.sim.plan import draw
from groupsvc.testing.sim.trial import run_plan
from groupsvcd.core.engine import Engine
from groupsvcd.core.events import LocalCall, PeerFrame
from groupsvcd.core.nodegroups.group_status import GroupStatus
from groupsvcd.core.peer_messages import Grant, PeerMessage
from groupsvcd.core.views import View

from .test_group_machines import Tally

ALL = ("n1", "n2", "n3", "n4", "n5")


class Stage:
    """Machines of one durable group on the nodes of a calm world; all nodes have disks."""

    def __init__(self, without_disk: tuple[str, ...] = (), **parameters: Any) -> None:
        values = {
            "durable": True,
            "group_checkpoint_every": 20,
            "retention_margin": 5,
            "checkpoint_block_bytes": 256,
            **parameters,
        }
        of = {name: {"durable": False} for name in without_disk}
        self.world = World(3, 5, voters=3, parameters=values, parameters_of=of, drift=False)
        self.world.run(until=3.0)
        self.tallies: dict[str, Tally] = {}
        self.sent = ""

    def engine(self, name: str) -> Engine:
        """The engine of a node."""
        engine = self.world.nodes[name].engine
        assert isinstance(engine, Engine)
        return engine

    def join(self, *names: str) -> None:
        """A machine at each of these nodes."""
        for name in names:
            tally = self.tallies[name] = Tally()
            join = partial(self.engine(name).groups.join, "g", {"durable": True}, tally, tally)
            self.world.nodes[name].step(LocalCall(join))
            self.run(0.5)

    def leave(self, name: str) -> None:
        """The machine at ``name`` takes part no longer."""
        groups, tally = self.engine(name).groups, self.tallies.pop(name)
        self.world.nodes[name].step(LocalCall(lambda: groups.leave("g", tally)))

    def submit(self, name: str, count: int, size: int = 0) -> None:
        """Some words from ``name``, one after the other."""
        groups = self.engine(name).groups
        for _ in range(count):
            word = f"{len(self.sent)}{'.' * size} "
            self.sent += word
            self.world.nodes[name].step(LocalCall(lambda word=word: groups.submit("g", [word.encode()])))  # type: ignore[misc]
            self.run(0.01)

    def kill(self, *names: str) -> None:
        """The processes and their machines are gone at once."""
        for name in names:
            self.world.nodes[name].crash("killed")
            self.tallies.pop(name, None)

    def start(self, *names: str) -> None:
        """New processes on the old disks."""
        for name in names:
            self.world.nodes[name].start()

    def run(self, seconds: float) -> None:
        """Time passes; nothing may break."""
        self.world.run(until=self.world.t + seconds)
        assert [] == self.world.failures

    def status(self, name: str) -> GroupStatus | None:
        """The group at ``name``."""
        found = [status for status in self.engine(name).groups.status() if status.name == "g"]
        return found[0] if found else None

    def hits(self, *marks: str) -> bool:
        """Whether the engines have been to all these places."""
        return all(self.world.marks.get(mark) for mark in marks)

    def name_server(self) -> Engine:
        """The engine of the name server."""
        name = self.world.name_server()
        assert name is not None
        return self.engine(name)

    def group_id(self) -> int:
        """As the directory has it; 0 if there is no such group."""
        voter = self.name_server().voter
        assert voter is not None
        group = voter.directory.groups.named("g")
        return group.id if group is not None else 0

    def first_grant(self, leader: str, other: str) -> Grant:
        """What the name server told ``leader``, which formed the group, when ``other`` was to be a server, too."""
        mine, others = ((name, self.world.nodes[name].disk.state_id) for name in (leader, other))
        group_id = self.group_id()
        base = View(group_id, leader, (mine,), 1, activated=group_id)
        view = View(group_id + 1, leader, (mine, others), 2, base=group_id, replaces=group_id)
        return Grant(group_id, "g", {"durable": True, "machine": True}, view, base)

    def hear(self, name: str, message: PeerMessage) -> None:
        """A message of the name server arrives now."""
        engine = self.name_server()
        self.world.nodes[name].step(PeerFrame(engine.turn.node, engine.incarnation, engine.domain, (message,)))

    def is_stored(self, name: str) -> bool:
        """Whether the disk of ``name`` has a log of the group."""
        return any(log.about and log.accepted for log in self.world.nodes[name].disk.logs.values())


def test_after_a_restart_of_all_nodes_everything_is_there() -> None:
    """Also for a machine that never heard of it before."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 55)
    stage.submit("n4", 2, size=2_000)  # large ones are on disk, too
    stage.run(0.5)
    stage.kill(*ALL)
    stage.run(3.0)
    stage.start(*ALL)
    stage.run(5.0)
    statuses = [stage.status(name) for name in ("n4", "n1", "n2")]
    assert {"carrying"} == {status.phase for status in statuses if status is not None}
    assert {3} == {len(status.servers) for status in statuses if status is not None}
    stage.join("n1", "n5", "n4")
    stage.submit("n5", 5)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_a_server_that_restarts_is_the_server_it_was() -> None:
    """It goes on with its disk, without a program that takes part; the others never stop."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 10)
    stage.kill("n2")
    stage.submit("n1", 10)
    stage.start("n2")
    stage.run(3.0)
    stage.submit("n1", 10)
    stage.run(1.0)
    status = stage.status("n2")
    assert status is not None
    assert ("carrying", "server") == (status.phase, status.role)
    assert {"n1", "n2", "n4"} == set(status.servers)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_no_node_stands_twice_among_the_members() -> None:
    """GS-08: the process before a restart has failed before the new one is a member; also if that one leads."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 10)
    stage.kill(*ALL)
    stage.run(3.0)
    stage.start(*ALL)
    stage.run(5.0)
    lists = [line.args["members"] for line in stage.world.history.events() if line.op == "members"]
    assert all(len(members) == len({name for name, _ in members}) for members in lists)


def test_with_a_minority_of_its_disks_the_group_waits_and_with_one_more_it_goes_on() -> None:
    """Nothing stable is ever given up: no view is formed from the minority."""
    stage = Stage()
    stage.join("n4", "n5", "n1")
    stage.submit("n4", 30)
    stage.run(0.5)
    stage.kill("n4", "n5")
    stage.run(8.0)
    waiting = stage.status("n1")
    assert waiting is not None
    assert "leader" != waiting.role
    stage.start("n5")
    stage.run(4.0)
    stage.join("n5")
    stage.submit("n1", 5)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    assert {"n1", "n5"} == set(stage.tallies)


def test_restarts_one_after_the_other_leave_as_many_servers_as_before() -> None:
    """A rolling restart while no program takes part."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 30)
    for name in ("n4", "n1", "n2"):
        stage.kill(name)
        stage.run(3.0)
        stage.start(name)
        stage.run(4.0)
    status = stage.status("n4")
    assert status is not None
    assert {"n1", "n2", "n4"} == set(status.servers)
    stage.join("n4", "n3")
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_who_leaves_keeps_nothing_on_its_disk_and_the_last_one_ends_the_group() -> None:
    """A disk is only worth something as long as a view counts on it."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 5)
    stage.run(0.5)
    assert [True, True, True] == [stage.is_stored(name) for name in ("n4", "n1", "n2")]
    stage.leave("n2")
    stage.run(2.0)
    assert [True, True, False] == [stage.is_stored(name) for name in ("n4", "n1", "n2")]
    stage.leave("n4")
    stage.leave("n1")
    stage.run(3.0)
    assert not any(stage.is_stored(name) for name in ALL)
    assert not any(log.about for name in ALL for log in stage.world.nodes[name].disk.logs.values())
    assert {None} == {stage.status(name) for name in ALL}


def test_a_damaged_log_is_never_served_and_is_repaired_from_the_others() -> None:
    """The disk with the damage does not speak as a server until the view does not count on it any more (S2)."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 30)
    stage.kill("n2")
    stage.run(0.2)
    for log in stage.world.nodes["n2"].disk.logs.values():
        if log.about:
            log.damage = "entry 7 is not as it was written"
    stage.start("n2")
    stage.run(8.0)
    status = stage.status("n2")
    assert status is not None
    assert ("carrying", "server") == (status.phase, status.role)
    assert stage.is_stored("n2")
    assert not any(log.damage for log in stage.world.nodes["n2"].disk.logs.values())
    stage.join("n2")
    stage.submit("n2", 5)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    assert stage.hits("group-damaged", "group-machine-late")


def test_a_machine_that_joins_where_the_log_is_damaged_gets_the_state_of_the_others() -> None:
    """It comes before the node has anything of the group again, and misses nothing (S2)."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 30)
    stage.kill("n2")
    for log in stage.world.nodes["n2"].disk.logs.values():
        if log.about:
            log.damage = "entry 7 is not as it was written"
    stage.start("n2")
    stage.join("n2")
    stage.run(8.0)
    stage.submit("n2", 5)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_a_leader_with_a_damaged_log_does_not_lead() -> None:
    """All restart, and the one that the directory would have lead has nothing: another one is asked."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 30)
    stage.run(0.5)
    stage.kill("n1", "n2", "n4")
    for log in stage.world.nodes["n4"].disk.logs.values():
        if log.about:
            log.damage = "the checkpoint is not as it was written"
    stage.run(3.0)
    stage.start("n1", "n2", "n4")
    stage.run(10.0)
    status = stage.status("n1")
    assert status is not None
    assert "n4" != status.leader
    assert {"n1", "n2", "n4"} == set(status.servers)
    stage.join("n1", "n4")
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    assert stage.hits("group-damaged", "group-cannot-serve", "group-server-unable")


def test_a_node_without_a_disk_can_follow_a_durable_group_but_not_serve_it() -> None:
    """Nor form it: the refusal says why."""
    stage = Stage(without_disk=("n4",))
    stage.join("n4")
    assert "a durable group needs a state directory, and n4 has none" == stage.tallies["n4"].lost_because
    stage.join("n1", "n4")
    stage.submit("n4", 5)
    stage.run(2.0)
    status = stage.status("n4")
    assert status is not None
    assert (("n1",), "receiver") == (status.servers, status.role)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_who_waits_to_join_while_its_node_leaves_is_told_if_the_node_was_declared_down() -> None:
    """K1. The disk goes on; a call that came to the process before does not, and must not stay open."""
    stage = Stage()
    stage.join("n4", "n1", "n2")
    stage.submit("n1", 5)
    old = stage.tallies["n2"]
    stage.world.network.cut([(a, b) for o in ALL if o != "n2" for a, b in ((o, "n2"), ("n2", o))])
    stage.leave("n2")
    stage.join("n2")
    waiting = stage.tallies.pop("n2")
    stage.run(8.0)
    stage.world.network.heal_all()
    stage.run(5.0)
    assert ("left", "this node was declared down") == (old.lost_because, waiting.lost_because)
    assert stage.status("n2") is None, "nobody needs it there"
    stage.join("n2")
    stage.submit("n2", 5)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_the_only_node_with_a_disk_carries_the_group_for_the_others() -> None:
    """Its machine is gone: what it gives to new members is what it has applied, and not what it has heard since."""
    stage = Stage(without_disk=("n4", "n5"))
    stage.join("n1", "n4")
    stage.submit("n1", 25)
    stage.leave("n1")
    stage.submit("n4", 50)
    stage.join("n5")
    stage.run(2.0)
    leaving = stage.status("n1")
    assert leaving is not None
    assert ("leaving", "leader") == (leaving.phase, leaving.role)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    stage.leave("n4")
    stage.leave("n5")
    stage.run(3.0)
    assert {None} == {stage.status(name) for name in ALL}


def test_who_joins_at_a_leader_that_cannot_leave_takes_part_at_once() -> None:
    """K1: its call does not wait for what may never happen; and it has the whole state."""
    stage = Stage(without_disk=("n4", "n5"))
    stage.join("n1", "n4")
    stage.submit("n1", 25)
    stage.leave("n1")
    stage.submit("n4", 30)
    stage.join("n1")
    stage.submit("n1", 5)
    stage.run(1.0)
    status = stage.status("n1")
    assert status is not None
    assert ("carrying", "leader") == (status.phase, status.role)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    assert stage.hits("group-stays")


def _formed_and_forgotten() -> Stage:
    """n4 has had the group formed, and dies before its disk knows of it."""
    stage = Stage()
    tally = Tally()
    join = partial(stage.engine("n4").groups.join, "g", {"durable": True}, tally, tally)
    stage.world.nodes["n4"].step(LocalCall(join))
    assert stage.world.run_until(lambda: stage.group_id() > 0, within=1.0, every=0.0005)
    stage.kill("n4")
    assert not any(log.about for log in stage.world.nodes["n4"].disk.logs.values())
    stage.run(3.0)
    stage.start("n4")
    return stage


def test_a_group_that_was_formed_just_before_a_restart_is_carried_after_it() -> None:
    """Nobody else can have anything of it. From then on the disk knows it: also after another restart."""
    stage = _formed_and_forgotten()
    stage.run(3.0)
    for _ in range(2):
        status = stage.status("n4")
        assert status is not None
        assert ("carrying", "leader") == (status.phase, status.role)
        stage.kill("n4")
        stage.run(3.0)
        stage.start("n4")
        stage.run(3.0)
    stage.join("n1", "n4")
    stage.submit("n1", 5)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_who_joins_a_group_that_was_formed_here_just_before_a_restart_is_let_in() -> None:
    """It is asked to lead while it still looks for the leader, which is itself."""
    stage = _formed_and_forgotten()
    stage.join("n4")
    stage.run(5.0)
    stage.join("n1")
    stage.submit("n4", 5)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_grant_of_long_ago_brings_back_nothing(restarts: bool) -> None:
    """V2, L3: this node was to lead, has carried the group, and has left it; its disk has forgotten all of that."""
    stage = Stage()
    stage.join("n4", "n1")
    stage.submit("n1", 5)
    old = stage.first_grant("n4", "n1")
    stage.leave("n4")
    stage.run(2.0)
    if restarts:
        stage.kill("n4")
        stage.run(3.0)
        stage.start("n4")
        stage.run(1.0)
    restored = stage.world.marks["restored"]
    stage.hear("n4", old)
    stage.run(3.0)
    assert (None, restored) == (stage.status("n4"), stage.world.marks["restored"])


def test_a_machine_is_not_mixed_with_members_that_have_none() -> None:
    """Whoever has none would give others an empty state."""
    stage = Stage()
    stage.join("n1")
    plain = Tally()
    groups = stage.engine("n2").groups
    stage.world.nodes["n2"].step(LocalCall(lambda: groups.join("g", {}, plain)))
    stage.run(1.0)
    assert "the members of this group have a state machine; join with one" == plain.lost_because


def test_a_group_whose_only_disk_comes_back_is_led_by_it_though_the_node_list_does_not_have_it_yet() -> None:
    """The seed that showed it: a leader took its own word, that it had opened the log, for that of a stranger."""
    plan = draw(9)
    plan = attrs.evolve(plan, group_habits=attrs.evolve(plan.group_habits, fast=1.0))
    assert () == run_plan(plan)[1].failures
