"""When a voter's new disk begins to count, and when its old one ceases to: at no time may both.

Node C's machine is replaced: disk-C2 takes the place of disk-C, which may still run somewhere, cut off. The name server
orders the entry that admits disk-C2. Until that entry is stable it may be lost, and then disk-C is the one that counts.
"""

from __future__ import annotations

import itertools

from groupsvcd.core.domain.commands import VoterReplaced, decode_command
from groupsvcd.core.events import PeerFrame
from groupsvcd.core.peer_messages import (
    Goodbye,
    LeaderAlive,
    Open,
    Opened,
    PeerMessage,
    Promised,
    RepairAsk,
    Unwelcome,
    Yield,
)
from groupsvcd.core.stream.entries import decode_entry
from tests.unit.core.trio import Disk, Trio


def _old_disk_is_gone(trio: Trio) -> bool:
    node = trio.voter("A").directory.nodes.get("C")
    return node is not None and node.state_id == "disk-C2" and all(disk != "disk-C" for _, disk in node.former)


def _frame(stage: Trio, sender: str, message: PeerMessage) -> PeerFrame:
    engine = stage.engines[sender]
    return PeerFrame(sender, engine.incarnation, engine.domain, (message,))


def test_old_and_new_disk_of_a_voter_never_count_at_the_same_time() -> None:
    """A and the new C are cut from B and the old C while the admission is in A's log only.

    Would both disks count, then {A, new C} and {B, old C} were two majorities of one domain. The second half is
    played on a stage of its own.
    """
    trio = Trio.in_service()
    old = trio.disks["C"].copy()
    trio.kill("C")
    trio.run(0.05)
    trio.boot_on("C", Disk("disk-C2"))
    trio.run_until(lambda: _old_disk_is_gone(trio))
    trio.cut("A", "B")
    trio.cut("C", "B")
    other = Trio()
    other.now = trio.now
    other.disks["B"], other.disks["C"] = trio.disks["B"].copy(), old
    other._incarnations = itertools.count(90_000)
    other.boot("B", "C")
    trio.run(6.0)
    other.run(6.0)
    assert ("C", "disk-C2") in trio.voter("A").voters_in_log(), "A did order the admission"
    assert [] == trio.leaders
    assert 1 == len(other.leaders)


def test_from_the_order_to_admit_the_new_disk_the_old_one_holds_nothing_that_counts() -> None:
    """B's disk hangs, so the admission is not stable; C comes back on its old disk and says Held.

    Would that count, then the admission and what follows were stable on A and a disk that is about to be retired.
    """
    trio = Trio.in_service()
    old = trio.disks["C"].copy()
    trio.kill("C")
    trio.run(0.05)
    trio.boot_on("C", Disk("disk-C2"))
    trio.run_until(lambda: _old_disk_is_gone(trio))
    trio.hang_disk("B")
    trio.run_until(lambda: ("C", "disk-C2") in trio.voter("A").voters_in_log())
    server = trio.voter("A").server
    replaced = next(
        seq
        for seq in range(server.delivered + 1, server.log.last + 1)
        if isinstance(decode_command(decode_entry(server.log.entry(seq)).body), VoterReplaced)
    )
    trio.kill("C")
    trio.boot_on("C", old)
    trio.run(0.8)
    assert trio.voter("A").server is server
    assert server.stable < replaced


def test_a_disk_whose_promise_does_not_count_does_not_count_as_having_opened_either() -> None:
    """Five voters. A missed that C's disk was replaced; the old one is back, promises, and opens.

    The reports of D and E tell A about the replacement; from then on only they and A make up the three.
    """
    trio = Trio.in_service("ABCDE", of={name: {"candidate": False} for name in "CDE"})
    old = trio.disks["C"].copy()
    trio.hand_over("A", "B")
    trio.run(2.0)
    trio.cut("A", "B", "C", "D", "E")
    trio.kill("C")
    trio.boot_on("C", Disk("disk-C2"))
    trio.run(6.0)
    trio.kill("B", "C")
    trio.boot_on("C", old)
    trio.heal()

    def c_has_reported() -> bool:
        voter = trio.voter("A")
        return voter.office is not None or (voter.election.claim is not None and "C" in voter.election.claim.reports)

    def late(sender: str, receiver: str, message: PeerMessage) -> bool:
        return (sender in "DE" and isinstance(message, Opened)) or (
            sender == "E" and isinstance(message, Promised) and not c_has_reported()
        )

    trio.loses = late
    trio.run_until(lambda: trio.leaders == ["A"], within=8.0)
    recovery = trio.office("A").recovery
    assert "disk-C2" == recovery.holders["C"]
    trio.loses = lambda sender, receiver, message: sender == "E" and isinstance(message, Opened)
    trio.run(0.5)
    assert "C" not in recovery.opened_by
    assert not trio.office("A").is_open


def test_an_incarnation_being_written_is_not_overwritten_by_the_one_before() -> None:
    """B learns that it was declared down and writes its next incarnation; meanwhile a new epoch is opened.

    Both writes name the incarnation. Were the second one the older, B would use its new one again after a restart.
    """
    trio = Trio.in_service()
    trio.cut("B", "A", "C")
    trio.run(3.2)
    trio.hand_over("A", "C")
    trio.run(1.0)
    epoch = trio.office("C").epoch
    trio.heal()
    opens = False

    def lost(sender: str, receiver: str, message: PeerMessage) -> bool:
        log = trio.disks["B"].log
        too_early = isinstance(message, LeaderAlive | Yield) and log is not None and log.promised < epoch
        return receiver == "B" and (too_early or (isinstance(message, Open) and not opens))

    trio.loses = lost
    identity = trio.engines["B"].identity
    trio.run_until(lambda: identity.newest_incarnation > identity.incarnation)
    trio.hang_disk("B")
    opens = True
    trio.run_until(lambda: trio.voter("B").server.log.accepted == epoch, within=3.0)
    trio.mend_disk("B")
    trio.run(2.0)
    assert trio.engines["B"].incarnation == identity.newest_incarnation == trio.disks["B"].incarnation


def test_a_checkpoint_of_many_blocks_arrives_however_long_it_takes() -> None:
    """SAM-07: a server that lags fetches block after block from one server; asking another would begin anew."""
    trio = Trio.in_service(delay=0.03, checkpoint_block_bytes=1000, checkpoint_every=50, retention_margin=5)
    trio.cut("C", "A", "B")
    for number in range(60):
        trio.set("A", f"k{number}", "x" * 1000)
        trio.run(0.3)
    assert len(trio.voter("A").server.log.checkpoint) > 40_000
    trio.forget_the_past()
    trio.heal()
    trio.run(15.0)
    assert trio.voter("A").server.log.last == trio.voter("C").server.log.last
    assert len(trio.messages(RepairAsk, "C")) < 100


def test_a_new_machine_with_a_slow_clock_is_told_and_picks_a_higher_incarnation() -> None:
    """MSG-14: the incarnation of a new disk is the wall clock, which may be behind that of the machine before."""
    trio = Trio.in_service()
    trio.kill("C")
    trio.run(3.0)
    trio._incarnations = itertools.count(500)
    trio.boot_on("C", Disk("disk-C2"))
    trio.run(10.0)
    assert not trio.status("C").suspended
    assert trio.voter("C").formed


def test_a_second_machine_with_the_name_of_a_voter_that_is_up_is_turned_away() -> None:
    """GS-01. Somebody starts the new C before the old one is off: the old one stays in, the new one is told why not.

    Both machines are C to the others, so the new one is played by its frames alone: they come from a stage of its own.
    """
    trio = Trio.in_service()
    incarnation, address = trio.engines["C"].incarnation, trio.addresses["A", "C"]
    clone = Trio(of={"C": {"address": "elsewhere"}})
    clone.now = trio.now
    clone.disks["C"] = Disk("disk-C2")
    clone._incarnations = itertools.count(90_000)
    clone.boot("C")
    for _ in range(100):
        for sent in [sent for sent in trio.sent if sent.receiver == "C" and sent.sender != "C"]:
            if isinstance(sent.message, LeaderAlive | Unwelcome) or trio.addresses[sent.sender, "C"] == "elsewhere":
                clone.step("C", _frame(trio, sent.sender, sent.message))
        trio.forget_the_past()
        clone.run(0.05)
        for sent in [sent for sent in clone.sent if sent.sender == "C" and sent.receiver == "A"]:
            trio.step("A", _frame(clone, "C", sent.message))
        clone.forget_the_past()
        trio.run(0.05)
    node = trio.voter("A").directory.nodes.get("C")
    assert node is not None
    assert (incarnation, "up", "disk-C") == (node.incarnation, node.status, node.state_id)
    assert not trio.status("C").suspended
    assert address == trio.addresses["A", "C"], "what is meant for C still goes to it"
    assert "a voter C is up with another state directory" in clone.status("C").trouble
    assert "" == trio.status("B").trouble == trio.status("C").trouble, "nobody else takes that for its own"


def test_when_the_second_machine_goes_nobody_believes_that_the_first_has_gone() -> None:
    """It says goodbye under the name of the name server, with an incarnation of its own."""
    trio = Trio.in_service()
    second = trio.engines["A"].incarnation + 90_000
    for name in "BC":
        trio.step(name, PeerFrame("A", second, trio.engines["A"].domain, (Goodbye(),)))
    trio.run(0.5)
    assert [] == [line for line in trio.journal if line.op in ("canvass", "won")]
    assert "A" == trio.status("B").name_server == trio.status("C").name_server


def test_what_a_lost_disk_held_does_not_count_once_its_successor_was_heard() -> None:
    """S1. Five voters; A and C have an entry on disk, the others hang. C's disk is lost, then B writes the entry.

    Two disks have it, not three. C's word of before must not make it stable.
    """
    trio = Trio.in_service("ABCDE")
    for name in "BDE":
        trio.hang_disk(name)
    trio.set("A", "color", "red")
    trio.run(0.1)
    server = trio.voter("A").server
    entry = server.log.last
    assert entry == trio.office("A").sequencer.held_by("C")  # type: ignore[union-attr]
    trio.kill("C")
    trio.boot_on("C", Disk("disk-C2"))
    trio.run(0.3)
    trio.mend_disk("B")
    trio.run(0.2)
    assert entry == trio.office("A").sequencer.held_by("B")  # type: ignore[union-attr]
    assert server.stable < entry
