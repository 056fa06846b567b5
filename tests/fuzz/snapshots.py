"""States that come whole, from another node or from the disk.

They are the directory, the roll, a process group with its ballot, barriers and archive, and what a disk knows of one.
Who is given one that is none refuses it and stays what it was; who takes one can be asked, and goes on from there.
"""

from __future__ import annotations

from groupsvc.errors import PeerProtocolError
from groupsvc.wire.notices import Round
from groupsvcd.core.domain.directory import Directory
from groupsvcd.core.groups import commands as cmd
from groupsvcd.core.groups.process_group import ProcessGroup
from groupsvcd.core.groups.rounds import Rounds, StoredRounds
from groupsvcd.core.nodegroups import about, roll
from groupsvcd.core.nodegroups.controls import NodeInserted, ViewStarted
from groupsvcd.core.nodegroups.roll import Roll
from groupsvcd.core.stream.entries import Run
from tests.fuzz.family import Family, round_trip
from tests.fuzz.inside import COMMANDS
from tests.unit.core.groups.assembly import Assembly
from tests.unit.directory.scene import Scene

FAR = 2**62
"""Numbers beyond this cannot be counted on from: no stream comes there."""

# --- The directory ---


def _directory() -> bytes:
    scene = Scene()
    scene.up("a", "x", "y")
    scene.serve(scene.form("jobs", "x", delivery="fast"), ("x", 1), ("y", 1), k=2)
    scene.form("kept", "y", durable=True)
    for n, command in enumerate(COMMANDS[2:], 1):
        scene.directory.apply_entry(scene.seq + 1, ("x", 1), n, command)
        scene.directory.apply_entry(scene.seq + 1, ("y", 1), n, b"no command")
    return scene.directory.snapshot()


def read_directory(data: bytes) -> None:
    """Refused, or a directory that answers what was answered, and answers to whatever is ordered next."""
    try:
        directory = Directory.restore(data)
    except PeerProtocolError:
        return
    once = directory.snapshot()
    assert once == Directory.restore(once).snapshot()
    for origin, row in list(directory.origins.items()):
        directory.answer_for(origin, row.last_n)
    directory.pending_grants()
    directory.node_entries(0)
    if 0 <= directory.applied < FAR:
        for n, body in enumerate(COMMANDS, 1):
            assert "ok" in directory.apply_entry(directory.applied + 1, ("new", 1), n, body)


# --- The roll of a group ---


def _roll() -> Roll:
    made = Roll(100_000)
    made.apply(1, ViewStarted(2, "n1", (("n1", 7), ("n2", "disk")), 2, 9))
    made.apply(2, NodeInserted(("n1", 7), 1, 5))
    made.apply(3, NodeInserted(("n2", 8), 1, 0))
    made.note(4, [Run("n1", 7, 6, (b"one", b"two"))])
    made.apply(6, ViewStarted(3, "n2", (("n2", 8),), 1, 12, tail_may_be_lost=True))
    return made


def read_roll(data: bytes) -> None:
    """Refused, and it stays what it was; or taken, and written again it is the same."""
    mine, other = _roll(), Roll(100_000)
    before = mine.snapshot()
    try:
        mine.restore(data)
    except PeerProtocolError:
        assert before == mine.snapshot()
        return
    once = mine.snapshot()
    other.restore(once)
    assert once == other.snapshot()
    assert roll.epoch_in(once) == mine.epoch
    mine.prune(10)
    assert mine.shown


# --- A process group ---


def _group() -> bytes:
    scene = Assembly(state_phases="n", join_phases="none", state_machine=True)
    scene.join("A1", "B1", "C1")
    scene.say("A1", b"hello")
    scene.entry("A", cmd.StoreBlock(1, scene.group.seq, 0, b"block"))
    scene.propose_state("A1", b"red")
    scene.propose_state("B1", b"blue")
    scene.die("C1")
    scene.entry("A", cmd.Bring(1, "gate", 1, b"payload"))
    released = Round(barrier="gate", number=1, end="released", arrived=((("A", 1, 1), b"x"),))
    broken = Round(barrier="door", number=2, end="broken", broken_by="timeout", who=(("B", 1, 1),))
    scene.group.rounds = Rounds(
        StoredRounds((("gate", 1), ("door", 2)), (broken,), 0, ((3, ("C", 1, 1)),), (), (released,))
    )
    return scene.group.snapshot()


GROUP = _group()


def read_group(data: bytes) -> None:
    """Refused, and it stays what it was; or taken, and it goes on with the next entries."""
    mine, other = ProcessGroup({}), ProcessGroup({})
    mine.restore(GROUP)
    try:
        mine.restore(data)
    except PeerProtocolError:
        assert mine.snapshot() == GROUP
        return
    once = mine.snapshot()
    other.restore(once)
    assert once == other.snapshot()
    assert mine.view.seq == mine.seq
    if 0 <= mine.seq < FAR:
        mine.apply(mine.seq + 1, ("A", 1), cmd.message_prefix(1) + b"hello")
        mine.scribe(max(1, mine.scribe_turns))


SNAPSHOTS = Family(
    name="snapshots",
    about="the directory and the answers in it, the roll, process groups with ballots, barriers and archives",
    decoders=(
        "groupsvcd.core.domain.directory:_reader",
        "groupsvcd.core.domain.origins:_reader",
        "groupsvcd.core.nodegroups.roll:_reader",
        "groupsvcd.core.nodegroups.roll:_checkpoint_reader",
        "groupsvcd.core.nodegroups.about:_reader",
        "groupsvcd.core.groups.stored_group:_reader",
    ),
    readers=(
        (read_directory, (Directory().snapshot(), _directory())),
        (read_roll, (_roll().snapshot(),)),
        (read_group, (GROUP,)),
        (round_trip(roll.decode_checkpoint), (roll.encode_checkpoint(_roll().snapshot(), GROUP),)),
        (round_trip(about.decode_about), (about.encode_about(about.About("jobs", {"durable": True, "hosts": ["a"]})),)),
    ),
)
