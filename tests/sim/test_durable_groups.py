"""Durable groups: what was stable is there again after one, some or all nodes have restarted (SAM-11)."""

from __future__ import annotations

from functools import partial
from typing import Any

from groupsvc.testing.sim import World
from groupsvcd.core.engine import Engine
from groupsvcd.core.events import LocalCall
from groupsvcd.core.nodegroups.node_groups import GroupStatus

from .test_group_machines import Tally

ALL = ("n1", "n2", "n3", "n4", "n5")


class Stage:
    """Machines of one durable group on the nodes of a calm world; all nodes have disks."""

    def __init__(self, **parameters: Any) -> None:
        values = {
            "durable": True,
            "group_checkpoint_every": 20,
            "retention_margin": 5,
            "checkpoint_block_bytes": 256,
            **parameters,
        }
        self.world = World(3, 5, voters=3, parameters=values, drift=False)
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


def test_a_node_without_a_disk_can_follow_a_durable_group_but_not_serve_it() -> None:
    """Nor form it: the refusal says why."""
    stage = Stage()
    of = {"n4": {"durable": False}}
    stage.world = World(4, 4, voters=3, parameters={"durable": True}, parameters_of=of, drift=False)
    stage.world.run(until=3.0)
    stage.join("n4")
    assert "a durable group needs a state directory, and n4 has none" == stage.tallies["n4"].lost_because
    stage.join("n1", "n4")
    stage.submit("n4", 5)
    stage.run(2.0)
    status = stage.status("n4")
    assert status is not None
    assert (("n1",), "receiver") == (status.servers, status.role)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_a_machine_is_not_mixed_with_members_that_have_none() -> None:
    """Whoever has none would give others an empty state."""
    stage = Stage()
    stage.join("n1")
    plain = Tally()
    groups = stage.engine("n2").groups
    stage.world.nodes["n2"].step(LocalCall(lambda: groups.join("g", {}, plain)))
    stage.run(1.0)
    assert "the members of this group have a state machine; join with one" == plain.lost_because


def test_who_leaves_and_comes_back_stays_if_no_other_member_has_a_disk() -> None:
    """The only disk cannot be given up while others follow; a program that joins again need not wait for that."""
    stage = Stage()
    of = {"n4": {"durable": False}}
    stage.world = World(4, 4, voters=3, parameters={"durable": True}, parameters_of=of, drift=False)
    stage.world.run(until=3.0)
    stage.join("n1", "n4")
    stage.submit("n4", 5)
    stage.leave("n1")
    stage.run(2.0)
    stage.join("n1")
    stage.submit("n4", 5)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    assert {"n1", "n4"} == set(stage.tallies)
