"""States that entries add up to: whoever comes late, or was away too long, has the same one (SAM-07, SAM-08)."""

from __future__ import annotations

from collections.abc import Sequence

from groupsvc.testing.sim import World
from groupsvcd.core.engine import Engine
from groupsvcd.core.events import LocalCall
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import NodeId


class Tally:
    """The simplest machine: everything that was ever delivered, as text. It checks that nothing is skipped."""

    def __init__(self) -> None:
        self.text = ""
        self.seq: int | None = None
        self.restored_at: list[int] = []
        self.lost_because = ""

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """Entries come from behind ``seq`` on, or the state after a later one."""
        self.seq = seq

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """Add the bodies."""
        assert self.seq is not None
        assert first_seq == self.seq + 1, (self.seq, first_seq)
        self.seq = first_seq + len(entries) - 1
        self.text += "".join(entry.body.decode() for entry in entries if entry.origin)

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Members are not part of this state."""

    def lost(self, reason: str) -> None:
        """Keep the reason."""
        self.lost_because = reason

    def snapshot(self) -> bytes:
        """The text."""
        return self.text.encode()

    def restore(self, seq: int, state: bytes) -> None:
        """Become another member's text."""
        self.restored_at.append(seq)
        self.seq, self.text = seq, state.decode()


class Stage:
    """Machines on the nodes of a calm world, with small checkpoints in small blocks."""

    def __init__(self, **parameters: int) -> None:
        values = {"group_checkpoint_every": 20, "retention_margin": 5, "checkpoint_block_bytes": 64, **parameters}
        self.world = World(2, 5, voters=3, parameters=values, drift=False)
        self.world.run(until=3.0)
        self.tallies: dict[str, Tally] = {}
        self.sent = ""

    def join(self, name: str) -> Tally:
        """A machine at ``name``."""
        tally = self.tallies[name] = Tally()
        engine = self.engine(name)
        self.world.nodes[name].step(LocalCall(lambda: engine.groups.join("g", {}, tally, tally)))
        return tally

    def engine(self, name: str) -> Engine:
        """The engine of a node."""
        engine = self.world.nodes[name].engine
        assert isinstance(engine, Engine)
        return engine

    def submit(self, name: str, count: int) -> None:
        """Some words from ``name``, one after the other."""
        engine = self.engine(name)
        for number in range(count):
            word = f"{name}.{number} "
            self.sent += word
            self.world.nodes[name].step(LocalCall(lambda word=word: engine.groups.submit("g", [word.encode()])))  # type: ignore[misc]
            self.run(0.01)

    def run(self, seconds: float) -> None:
        """Time passes; nothing may break."""
        self.world.run(until=self.world.t + seconds)
        assert [] == self.world.failures


def test_a_new_member_gets_the_newest_checkpoint_and_what_came_after_it() -> None:
    """In blocks, while the others go on sending; its state is that of the others in the end."""
    stage = Stage()
    for name in ("n4", "n1", "n2"):
        stage.join(name)
        stage.run(0.5)
    stage.submit("n1", 100)
    late = stage.join("n5")
    stage.submit("n2", 30)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    assert len(late.restored_at) == 1
    assert late.restored_at[0] > 50
    assert "" == late.lost_because


def test_a_member_that_was_away_too_long_goes_on_from_a_checkpoint() -> None:
    """GS-12: nobody waits for it beyond the history; it resynchronises, and skips nothing silently."""
    stage = Stage(history_entries_max=40)
    for name in ("n4", "n1", "n2", "n5"):
        stage.join(name)
        stage.run(0.5)
    stage.submit("n1", 10)
    others = [name for name in ("n4", "n1", "n2") if name != stage.world.name_server()]
    stage.world.network.cut([(other, "n5") for other in others])
    stage.submit("n1", 150)
    stage.world.network.heal_all()
    stage.run(3.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    assert stage.tallies["n5"].restored_at
    assert "" == stage.tallies["n5"].lost_because


def test_a_state_survives_its_leader() -> None:
    """The successor has applied what it delivered, and goes on."""
    stage = Stage()
    for name in ("n4", "n1", "n2"):
        stage.join(name)
        stage.run(0.5)
    stage.submit("n1", 45)
    stage.world.nodes["n4"].crash("killed")
    del stage.tallies["n4"]
    stage.run(1.0)
    stage.submit("n2", 45)
    stage.join("n5")
    stage.run(2.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}


def test_a_machine_that_comes_while_its_node_is_leaving_is_the_one_that_takes_part() -> None:
    """Not that of the program that has left."""
    stage = Stage()
    for name in ("n4", "n1", "n2"):
        stage.join(name)
        stage.run(0.5)
    stage.submit("n1", 25)
    engine, old = stage.engine("n2"), stage.tallies["n2"]
    stage.world.nodes["n2"].step(LocalCall(lambda: engine.groups.leave("g", old)))
    stage.join("n2")
    stage.run(3.0)
    before = stage.sent
    stage.submit("n1", 25)
    stage.run(1.0)
    assert {stage.sent} == {tally.text for tally in stage.tallies.values()}
    assert before == old.text
