"""Durable groups by hand: what a disk may forget, what it must not, and who may speak for it (SAM-11, S1, S2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from groupsvcd.core.nodegroups.phases import Phase
from groupsvcd.core.peer_messages import Claim, Complaint, Grant, Held, Insert, NodeList, Open, Promised
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import NodeId, View
from tests.unit.core.nodegroups.carriers import GROUP, Carriers
from tests.unit.core.trio import Disk


def _durable(carriers: str = "DEF", **parameters: float) -> Carriers:
    return Carriers.with_group(carriers, parameters=dict(parameters), durable=True)


def _is_stored(nodes: Carriers, name: str) -> bool:
    return any(log.about and log.accepted for log in nodes.disks[name].logs.values())


def _server(name: str) -> tuple[str, str]:
    return (name, f"disk-{name}")


# --- Who speaks for a disk ---


def test_a_server_is_its_disk() -> None:
    """The view names state ids, and a restart changes nothing about that."""
    nodes = _durable()
    assert (_server("D"), _server("E"), _server("F")) == nodes.record().active.servers
    nodes.kill("E")
    nodes.boot("E")
    nodes.run(3.0)
    assert {_server("D"), _server("E"), _server("F")} == set(nodes.record().active.servers)
    assert ["leader", "server", "server"] == nodes.roles("DEF")


def test_a_name_with_another_disk_holds_nothing_of_what_its_old_one_held() -> None:
    """E comes back with an empty disk. What it promises does not count as a promise of the old one."""
    nodes = _durable()
    nodes.submit("D", "a")
    nodes.run(0.1)
    nodes.kill("D", "E")
    nodes.boot_on("E", Disk("another-disk-E"))
    nodes.run(6.0)
    assert ["none", "recovering"] == nodes.roles("EF")  # one of three is not enough, and two are gone
    nodes.boot("D")
    nodes.run(4.0)
    nodes.join("E")
    nodes.run(1.0)
    nodes.submit("F", "b")
    nodes.run(0.5)
    assert ["a", "b"] == nodes.texts("F")
    assert ("E", "another-disk-E") in nodes.record().active.servers


def test_a_disk_that_knows_nothing_leads_only_what_was_never_written() -> None:
    """L4. G's disk forgot the group, or never had it; in a view of two it must not count as one that holds nothing."""
    nodes = _durable("DEF")
    base = View(nodes.id() + 5, "D", (_server("D"), _server("G")), 2, replaces=nodes.id())
    view = View(100_000, "G", (_server("G"),), 1, base=base.epoch)
    nodes.forget_the_past()
    nodes.frame("A", "G", Grant(100_000 - 1, "other", {"durable": True}, view, base))
    nodes.run(0.1)
    assert "none" == nodes.roles("G", group="other")[0]
    assert [Complaint(100_000 - 1, 100_000, unable=True)] == nodes.messages(Complaint, "G")


def test_a_group_that_was_formed_and_not_written_is_there_after_a_restart() -> None:
    """The directory has it, the disk has not: it is empty, and its founder leads it."""
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.hang_disk("D")
    nodes.join("D", durable=True)
    nodes.run_until(lambda: nodes.voter("A").directory.groups.named(GROUP) is not None)
    nodes.kill("D")
    assert not _is_stored(nodes, "D")
    nodes.mend_disk("D")
    nodes.boot("D")
    nodes.run(3.0)
    assert ["leader"] == nodes.roles("D")
    nodes.join("D", durable=True)
    nodes.submit("D", "a")
    nodes.run(0.5)
    assert ["a"] == nodes.texts("D")


# --- What a disk may forget ---


def test_a_server_that_is_taken_for_dead_keeps_its_log_while_a_view_counts_on_it() -> None:
    """L4. A declares E down, D orders its failure in the view that E still serves, and E lives and sees it."""
    nodes = _durable()
    nodes.submit("D", "a")
    nodes.run(0.1)
    witness = nodes.user("E")
    nodes.lose(NodeList, "A>E")
    nodes.lose(Grant)
    nodes.lose(Claim)
    nodes.refuse("E", "A", "B")
    nodes.run(0.5)
    assert (_server("D"), _server("E"), _server("F")) == nodes.record().active.servers
    assert nodes.node("E") not in nodes.part("D").roll.members
    assert ["this node was removed from the group"] == witness.losses
    assert _is_stored(nodes, "E")
    nodes.heal()
    nodes.run(4.0)
    assert ["leader", "server", "server"] == nodes.roles("DEF")


def test_who_leaves_and_is_taken_for_dead_keeps_its_log_while_a_view_counts_on_it() -> None:
    """The leader says that it is no member; that it is no server either, only a view without it can say."""
    nodes = _durable()
    nodes.lose(NodeList, "A>E")
    nodes.lose(Grant)
    nodes.lose(Claim)
    nodes.lose(Open)
    nodes.refuse("E", "A", "B")
    nodes.leave("E")
    nodes.run(0.5)
    assert _is_stored(nodes, "E")
    nodes.heal()
    nodes.run(6.0)
    assert not _is_stored(nodes, "E")
    assert nodes.about("E") is None


def test_a_group_that_ended_while_its_node_was_down_is_forgotten() -> None:
    """And one of the same name, formed since, is another one."""
    nodes = _durable("DEF")
    old = nodes.id()
    nodes.kill("F")
    nodes.run(3.0)
    for name in "DE":
        nodes.leave(name)
    nodes.run(3.0)
    nodes.join("G", durable=True)
    nodes.run(1.0)
    assert nodes.id() > old
    nodes.boot("F")
    nodes.run(3.0)
    assert nodes.about("F") is None
    assert not any(log.about for log in nodes.disks["F"].logs.values())


def test_an_answer_that_is_older_than_the_group_makes_nobody_forget_it() -> None:
    """Ids only grow: a record with a smaller one is of a group that had the name before."""
    nodes = _durable()
    nodes.kill("E")
    nodes.lose(Insert)
    nodes.boot("E")
    nodes.run(1.0)
    part = nodes.part("E")
    assert Phase.RETURNING is part.phase
    older = nodes.record().as_answer() | {"id": nodes.id() - 1}
    part.entrance._found_again({"group": older})
    assert Phase.RETURNING is part.phase
    assert _is_stored(nodes, "E")


# --- Coming back ---


def test_a_leader_that_comes_back_fails_before_it_is_inserted() -> None:
    """GS-30: nobody is shown joining again before its earlier failure has been shown."""
    nodes = _durable("D")
    nodes.kill("D")
    nodes.boot("D")
    nodes.run(3.0)
    lists = [line.args["members"] for line in nodes.journal if (line.node, line.op) == ("D", "members")]
    assert [] in lists
    assert all(len(members) <= 1 for members in lists)


def test_who_leaves_before_it_is_back_is_out_when_it_is_back() -> None:
    """A program came and went while its node was returning."""
    nodes = _durable()
    nodes.kill("F")
    nodes.lose(Insert)
    nodes.boot("F")
    nodes.run(1.0)
    nodes.join("F", durable=True)
    nodes.leave("F")
    nodes.heal()
    nodes.run(5.0)
    assert nodes.about("F") is None
    assert not _is_stored(nodes, "F")


# --- Damage ---


def test_a_damaged_log_is_told_of_in_the_status_until_it_is_repaired() -> None:
    """S2."""
    nodes = _durable()
    nodes.submit("D", "a")
    nodes.run(0.1)
    nodes.kill("F")
    nodes.forget_the_past()
    for log in nodes.disks["F"].logs.values():
        log.damage = "entry 7 is not as it was written"
    nodes.boot("F")
    nodes.run(0.5)
    assert "group 'jobs': entry 7 is not as it was written; nothing of it is served here" in nodes.status("F").trouble
    assert [] == nodes.messages(Promised, "F")
    assert [] == nodes.messages(Held, "F")
    nodes.run(6.0)
    assert "" == nodes.status("F").trouble
    assert ["leader", "server", "server"] == nodes.roles("DEF")


# --- Payloads ---


def test_payloads_that_nobody_will_refer_to_any_more_do_not_stay_on_a_disk_for_ever() -> None:
    """X1. The word to drop them goes with the next write; a node that dies before it finds them again."""
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 8}, durable=True)
    nodes.submit("D", "a large one")
    nodes.run(1.0)
    nodes.kill("E")
    log = nodes.disks["E"].logs[nodes.id()]
    log.payloads = {(*nodes.node("D"), 1): b"a large one", ("G", 1, 1): b"of a process long gone"}
    nodes.boot("E")
    nodes.run(3.0)
    assert () == nodes.seat("E").replica.library.payloads.unordered
    nodes.submit("D", "b")
    nodes.run(0.5)
    assert {} == nodes.disks["E"].logs[nodes.id()].payloads


# --- Power loss at any moment ---


class Ledger:
    """A machine: every text that was delivered, in order."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """It begins."""

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next ones."""
        self.texts += [entry.body.decode() for entry in entries if entry.origin]

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Members are not in the ledger."""

    def lost(self, reason: str) -> None:
        """It ends."""

    def snapshot(self) -> bytes:
        """All of them."""
        return "\n".join(self.texts).encode()

    def restore(self, seq: int, state: bytes) -> None:
        """Those of another one."""
        self.texts = state.decode().split("\n") if state else []


class Story:
    """A group is formed, gets its servers and loses its leader, while every few milliseconds something is submitted."""

    def __init__(self) -> None:
        self.nodes = Carriers(group_checkpoint_every=10, retention_margin=3, inline_bytes_max=16)
        self.nodes.boot(*self.nodes.names)
        self.nodes.run(2.0)
        self.ledgers: list[Ledger] = []
        self.sent = 0

    def join(self, name: str) -> None:
        """A machine at this node."""
        ledger = Ledger()
        self.ledgers.append(ledger)
        self.nodes.act(name, lambda groups: groups.join(GROUP, {"durable": True}, ledger, ledger))

    def tell(self, until: float) -> None:
        """The story, until the power fails after so many seconds."""
        nodes = self.nodes
        began = nodes.now
        plan = [(0.0, "D"), (0.05, "E"), (0.1, "F"), (0.25, ""), (0.35, "G")]
        while (now := nodes.now - began) < until:
            if plan and now >= plan[0][0]:
                _, name = plan.pop(0)
                if name:
                    self.join(name)
                else:
                    nodes.die("D")
            for name in "DEF":
                if name in nodes.engines and nodes.about(name) is not None:
                    self.sent += 1
                    padding = "." * 20 if self.sent % 4 == 0 else ""  # every fourth travels apart from its order
                    nodes.submit(name, f"{self.sent}{padding}")
            nodes.run(0.0045)

    def lose_power(self, names: Iterable[str]) -> None:
        """At once; then all are started again."""
        self.nodes.kill(*names)
        self.nodes.boot(*(name for name in self.nodes.names if name not in self.nodes.engines))
        self.nodes.run(6.0)


@pytest.mark.parametrize("names", ["ABCDEFG", "DEF", "EFG"])
@pytest.mark.parametrize("until", [0.004 + 0.0371 * step for step in range(13)])
def test_what_was_delivered_anywhere_is_there_after_the_power_failed(until: float, names: str) -> None:
    """S1, B6, B1: whatever the moment, in the same order, and none twice."""
    story = Story()
    story.tell(until)
    before = [list(ledger.texts) for ledger in story.ledgers]
    story.lose_power(names)
    if story.nodes.voter(story.nodes.leaders[0]).directory.groups.named(GROUP) is None:
        assert not any(before)
        return
    story.join("F")
    story.join("E")
    story.nodes.run(1.5)
    story.nodes.submit("E", "the last")
    story.nodes.run(0.5)
    after = story.ledgers[-1].texts
    assert story.ledgers[-2].texts == after
    assert "the last" == after[-1]
    assert len(set(after)) == len(after)
    for texts in before:
        assert texts == after[: len(texts)]


# --- Disks that are full or hang ---


def test_a_leader_whose_disk_is_full_is_replaced_and_its_programs_go_on() -> None:
    """S4. The others take over; the node stays up and a member, and is a server again when there is room."""
    nodes = _durable()
    nodes.hang_disk("D")
    nodes.submit("F", "a")
    nodes.run(4.0)
    assert "D" != nodes.record().active.leader
    assert "up" == nodes.engines["A"].member.nodes["D"].status
    nodes.submit("D", "b")
    nodes.submit("F", "c")
    nodes.run(0.5)
    assert {"a", "b", "c"} == set(nodes.texts("D")) == set(nodes.texts("E"))
    nodes.run(5.0)
    assert {_server("E"), _server("F")} == set(nodes.record().active.servers)  # nobody counts on D's disk meanwhile
    nodes.mend_disk("D")
    nodes.run(6.0)
    assert {_server("D"), _server("E"), _server("F")} == set(nodes.record().active.servers)
    assert _is_stored(nodes, "D")


def test_with_no_room_anywhere_new_work_is_refused_with_a_reason_and_old_work_is_done_in_the_end() -> None:
    """S4. Nothing hangs without a word, nothing is ordered twice."""
    nodes = _durable("DE")
    for name in "DE":
        nodes.hang_disk(name)
    assert 0 < nodes.submit("E", "a")
    nodes.run(2.5)
    assert 0 == nodes.submit("E", "b")
    assert 0 == nodes.submit("D", "c")
    for name in "DE":
        assert "its disk is full or hangs" in nodes.engines[name].groups.refusal(GROUP)
    nodes.send("F", "d")
    nodes.run(3.0)
    assert [] == nodes.user("F").failures  # another might take over
    nodes.run(3.0)
    assert ["the leader of the group cannot write: its disk is full or hangs"] == nodes.user("F").failures
    for name in "DE":
        nodes.mend_disk(name)
    nodes.run(3.0)
    assert "" == nodes.engines["E"].groups.refusal(GROUP)
    assert 0 < nodes.submit("E", "e")
    nodes.run(0.5)
    assert ["a", "e"] == nodes.texts("D") == nodes.texts("E")


def test_a_full_disk_costs_a_bounded_number_of_waiting_writes() -> None:
    """X1. However much the others submit meanwhile."""
    nodes = _durable()
    nodes.hang_disk("E")
    for number in range(400):
        nodes.submit("F", f"{number}")
        nodes.run(0.01)
    assert 400 == len(nodes.texts("F"))
    assert 250 > len(nodes.waiting_writes["E"])


def test_when_nobody_is_able_to_lead_the_directory_is_not_flooded() -> None:
    """X1. D dies; E, F and G are all full, and pass the view around between them, slowly."""
    nodes = Carriers.with_group("DEFG", durable=True, replicas=4)
    for name in "EFG":
        nodes.hang_disk(name)
    nodes.submit("D", "a")
    nodes.run(1.2)
    nodes.die("D")
    before = nodes.voter("A").directory.applied
    nodes.run(10.0)
    assert 20 > nodes.voter("A").directory.applied - before
    for name in "EFG":
        nodes.mend_disk(name)
    nodes.run(4.0)
    nodes.submit("F", "b")
    nodes.run(0.5)
    assert "b" in nodes.texts("G")


def test_who_is_to_lead_and_cannot_write_says_so_and_another_one_leads() -> None:
    """S4. D dies, and E, who is next, has no room: F and G are enough, and nobody waits for E's disk."""
    nodes = Carriers.with_group("DEFG", durable=True, replicas=4)
    nodes.hang_disk("E")
    nodes.submit("D", "a")
    nodes.run(1.2)
    nodes.die("D")
    nodes.run(4.0)
    nodes.submit("F", "b")
    nodes.run(0.5)
    assert "b" in nodes.texts("G")
    assert {_server("F"), _server("G")} == set(nodes.record().active.servers)
