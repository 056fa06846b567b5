"""The name server's care for groups: every grant reaches its leader, and no group is left without one."""

from __future__ import annotations

import pytest

from groupsvcd.core.domain.commands import AnyCommand, ContinueGroup, DropGroup, ProposeView
from groupsvcd.core.domain.grants import COMPLAINTS_WITHIN_S, Grants
from groupsvcd.core.parameters import Timers
from groupsvcd.core.peer_messages import Grant, GroupIs, PeerMessage
from groupsvcd.core.turn import Turn
from groupsvcd.core.views import AttributeValue
from tests.unit.directory.scene import Scene

D, E, F, G = ("d", 1), ("e", 1), ("f", 1), ("g", 1)


class Office:
    """Name server a with its directory: nodes a to g are up, and what it orders is applied at once."""

    def __init__(self, **attributes: AttributeValue) -> None:
        self.turn = Turn("a")
        self.turn.now = 100.0
        self.scene = Scene()
        self.scene.up(*"abcdefg")
        self.id = self.scene.form("jobs", "d", **attributes)
        self.ordered: list[AnyCommand] = []
        self._told: list[tuple[str, PeerMessage]] = []
        self.grants = self._open()

    def _open(self) -> Grants:
        return Grants(
            self.turn, self.scene.directory, Timers(), lambda: ("a", 1),
            order=self._order, tell=lambda name, message: self._told.append((name, message)),
        )  # fmt: skip

    def succeed(self) -> None:
        """Somebody else takes the office over, with the same directory and no memory."""
        self.grants = self._open()

    def _order(self, command: AnyCommand) -> None:
        self.ordered.append(command)
        self.scene.order(command)

    def told(self) -> list[tuple[str, PeerMessage]]:
        """What was said to nodes since the last look."""
        told, self._told = self._told, []
        return told

    def look(self) -> list[tuple[str, PeerMessage]]:
        """What looking at the directory makes the office say."""
        self.grants.look()
        return self.told()

    def pass_time(self, seconds: float) -> None:
        """While the office watches."""
        end = self.turn.now + seconds
        while self.turn.now < end:
            self.turn.now = min(end, self.turn.now + 0.2)
            self.grants.look()
            self.grants.watch()

    def complain(self, *names: str, epoch: int | None = None, unable: bool = False) -> None:
        """These servers do not hear their leader, or have nothing of the group any more."""
        for name in names:
            at = self.scene.group(self.id).active.epoch if epoch is None else epoch
            self.grants.on_complaint((name, 1), self.id, at, unable=unable)


def _served() -> Office:
    """The group is served by d, e and f; two must hold an entry."""
    office = Office()
    office.scene.serve(office.id, D, E, F, k=2)
    office.look()
    return office


# --- Grants ---


def test_a_grant_is_told_to_its_leader_at_once() -> None:
    """GS-09. With the view it is to lead and the one to recover from."""
    office = _served()
    office.scene.down("d")
    group = office.scene.group(office.id)
    assert group.pending is not None
    assert [("e", Grant(office.id, "jobs", {}, group.pending, group.active))] == office.look()


def test_a_grant_is_repeated_until_it_is_active() -> None:
    """Soon at first, then once a second; not at all when its leader has made it active."""
    office = _served()
    office.scene.down("d")
    times = []
    for _ in range(6):
        assert ["e"] == [name for name, _ in office.look()]
        times.append(round(office.turn.now - 100.0, 3))
        office.turn.now = office.grants.deadline
    assert [0.0, 0.1, 0.3, 0.7, 1.5, 2.5] == times
    office.scene.activate(office.id)
    assert [] == office.look()
    office.turn.now += 10.0
    assert [] == office.look()


def test_a_replaced_grant_is_repeated_no_more() -> None:
    """GS-09. The successor died, too: only the newest grant can become active."""
    office = _served()
    office.scene.down("d")
    office.look()
    office.scene.down("e")
    assert ["f"] == [name for name, _ in office.look()]
    office.turn.now += 5.0
    assert ["f"] == [name for name, _ in office.look()]


def test_a_new_name_server_repeats_the_grants_of_the_old_one() -> None:
    """GS-09. They stand in the directory; nobody has to remember them."""
    office = _served()
    office.scene.down("d")
    office.look()
    office.succeed()
    assert ["e"] == [name for name, _ in office.look()]


def test_nothing_is_looked_at_while_nothing_changes() -> None:
    """A directory of ten thousand groups is not searched in every step."""
    office = _served()
    office.scene.down("d")
    office.look()
    office.turn.now += 0.05
    assert [] == office.look()


# --- Complaints ---


def test_complaints_of_enough_servers_give_the_group_to_one_of_them() -> None:
    """|S| - k + 1 of them: they could not all have missed what was stable."""
    office = _served()
    epoch = office.scene.group(office.id).active.epoch
    office.complain("e")
    assert [] == office.ordered
    office.complain("f")
    assert [ProposeView(office.id, epoch, "e", (E, F), 2, ("a", 1))] == office.ordered
    assert ["e"] == [name for name, _ in office.look()]


def test_one_server_that_complains_again_and_again_is_one() -> None:
    """It may be the one that is cut off."""
    office = _served()
    office.complain("e", "e", "e")
    assert [] == office.ordered


def test_complaints_count_together_only_if_they_come_together() -> None:
    """e was cut off for a moment, and f much later."""
    office = _served()
    office.complain("e")
    office.turn.now += COMPLAINTS_WITHIN_S + 0.1
    office.complain("f")
    assert [] == office.ordered
    office.complain("e")
    assert 1 == len(office.ordered)


@pytest.mark.parametrize("names", ["dd", "de", "gg", "eg"])
def test_only_servers_complain_and_not_the_leader_of_itself(names: str) -> None:
    """g serves nothing, d leads."""
    office = _served()
    office.complain(*names)
    assert [] == office.ordered


def test_a_complaint_about_a_view_that_is_past_is_answered_with_the_present_one() -> None:
    """The server follows a leader that was replaced."""
    office = _served()
    office.complain("e", "f", epoch=office.id)
    assert [] == office.ordered
    present = GroupIs(office.id, office.scene.group(office.id).active)
    assert [("e", present), ("f", present)] == office.told()


def test_while_a_grant_is_pending_nobody_needs_to_complain() -> None:
    """Its leader is on its way; its activation changes the epoch."""
    office = _served()
    office.scene.down("d")
    office.complain("e", "f")
    assert [] == office.ordered


def test_who_has_opened_a_pending_view_and_waits_for_its_leader_stays_in_it() -> None:
    """It is able to serve; only the confirmation is slow."""
    office = _served()
    office.scene.down("d")
    pending = office.scene.group(office.id).pending
    assert pending is not None
    office.complain("e", "f", epoch=pending.epoch)
    assert [] == office.ordered


def test_who_is_unable_to_serve_is_left_out_of_the_next_grant() -> None:
    """It has lost what it had of the group. Said late, or of a view that is active, it counts for nothing."""
    office = _served()
    active = office.scene.group(office.id).active.epoch
    office.grants.on_complaint(("f", 1), office.id, active, unable=True)
    assert [] == office.ordered
    office.scene.down("d")
    pending = office.scene.group(office.id).pending
    assert pending is not None
    office.grants.on_complaint(("f", 1), office.id, pending.epoch, unable=True)
    (proposal,) = office.ordered
    assert isinstance(proposal, ProposeView)
    assert ("e", (E,)) == (proposal.leader, proposal.servers)
    office.grants.on_complaint(("f", 1), office.id, pending.epoch, unable=True)
    assert [proposal] == office.ordered


def test_two_who_are_unable_are_both_left_out_and_if_all_are_it_goes_round() -> None:
    """Disks are damaged, and all of them had everything: who is left goes on alone."""
    office = Office()
    office.scene.serve(office.id, D, E, F, G, k=4)
    office.scene.down("d")
    granted: list[tuple[str, ...]] = []
    for name in "efgef":
        pending = office.scene.group(office.id).pending
        assert pending is not None
        granted.append(pending.names)
        office.complain(name, epoch=pending.epoch, unable=True)
        office.turn.now += 2.0
    assert [("e", "f", "g"), ("f", "g"), ("g",), ("e", "f"), ("f",)] == [tuple(sorted(names)) for names in granted]


def test_the_complained_of_leader_is_not_in_the_next_view() -> None:
    """Nor is a server that is down."""
    office = _served()
    office.scene.down("f")
    office.scene.activate(office.id)
    office.complain("e")
    (proposal,) = office.ordered
    assert isinstance(proposal, ProposeView)
    assert ("e", (E,)) == (proposal.leader, proposal.servers)


# --- Mismatches ---


def test_a_node_that_serves_a_group_as_it_was_is_told_how_it_is() -> None:
    """Level-triggered: it rides on every Alive."""
    office = _served()
    office.grants.on_carried(("g", 1), ((office.id, office.id),))
    assert [("g", GroupIs(office.id, office.scene.group(office.id).active))] == office.told()


def test_a_node_that_serves_a_group_that_has_ended_is_told_so() -> None:
    """Otherwise it would carry it for ever."""
    office = _served()
    office.grants.on_carried(D, ((99, 99),))
    assert [("d", GroupIs(99, None))] == office.told()


def test_a_server_that_has_not_opened_the_active_view_yet_is_left_alone() -> None:
    """Its leader tells it to open."""
    office = _served()
    office.grants.on_carried(E, ((office.id, office.id),))
    assert [] == office.told()


# --- Lost quorums ---


def test_a_group_whose_quorum_is_gone_goes_on_with_the_servers_that_are_left() -> None:
    """GS-11. Forced, and not before it has been lost for a while: a NodeUp may be on its way."""
    office = _served()
    office.scene.gone("d")
    office.pass_time(5.0)
    assert [] == office.ordered
    office.scene.gone("e")
    office.pass_time(1.5)
    assert [] == office.ordered
    newest = office.scene.group(office.id).newest_epoch
    office.pass_time(1.0)
    assert [ContinueGroup(office.id, newest, "f", (F,))] == office.ordered
    pending = office.scene.group(office.id).pending
    assert pending is not None
    assert pending.forced


def test_down_is_not_gone() -> None:
    """By its own clock a node that is down may still have a lease."""
    office = _served()
    office.scene.down("d")
    office.scene.down("e")
    office.pass_time(20.0)
    assert [] == office.ordered


def test_a_forced_grant_is_made_once() -> None:
    """While it is pending the quorum of its base is still lost."""
    office = _served()
    office.scene.gone("d")
    office.scene.gone("e")
    office.pass_time(20.0)
    assert [ContinueGroup] == [type(command) for command in office.ordered]
    office.scene.activate(office.id)
    office.pass_time(20.0)
    assert 1 == len(office.ordered)


def test_without_servers_the_member_that_has_got_furthest_goes_on() -> None:
    """SAM-10. By epoch first, then by what it has delivered."""
    office = _served()
    for name in "def":
        office.scene.gone(name)
    office.pass_time(0.2)
    office.grants.on_orphan(("b", 1), office.id, epoch=12, delivered=30)
    office.grants.on_orphan(("c", 1), office.id, epoch=13, delivered=7)
    office.grants.on_orphan(("g", 1), office.id, epoch=13, delivered=8)
    office.pass_time(2.5)
    newest = office.ordered[0]
    assert isinstance(newest, ContinueGroup)
    assert ("g", (("g", 1),)) == (newest.leader, newest.servers)


def test_an_orphan_that_is_down_is_given_nothing() -> None:
    """It reported, and died."""
    office = _served()
    for name in "def":
        office.scene.gone(name)
    office.pass_time(0.2)
    office.grants.on_orphan(("b", 1), office.id, epoch=12, delivered=30)
    office.grants.on_orphan(("g", 1), office.id, epoch=13, delivered=8)
    office.scene.down("g")
    office.pass_time(2.5)
    newest = office.ordered[0]
    assert isinstance(newest, ContinueGroup)
    assert "b" == newest.leader


def test_an_orphan_of_a_group_that_has_ended_is_told_so() -> None:
    """It goes on asking until it hears something."""
    office = _served()
    office.grants.on_orphan(("g", 1), 99, epoch=13, delivered=8)
    assert [("g", GroupIs(99, None))] == office.told()


def test_a_group_that_nobody_has_anything_of_ends() -> None:
    """When no orphan has reported within two leases, its name is free again."""
    office = _served()
    for name in "def":
        office.scene.gone(name)
    newest = office.scene.group(office.id).newest_epoch
    office.pass_time(3.5)
    assert [] == office.ordered
    office.pass_time(1.5)
    assert [DropGroup(office.id, newest, ("a", 1))] == office.ordered
    assert office.scene.directory.groups.named("jobs") is None


def test_a_group_may_prefer_to_end() -> None:
    """``on_quorum_lost="dissolve"``: its entries are worth nothing if some may be missing."""
    office = Office(on_quorum_lost="dissolve")
    office.scene.serve(office.id, D, E, F, k=2)
    office.scene.gone("d")
    office.scene.gone("e")
    office.pass_time(3.0)
    assert [DropGroup] == [type(command) for command in office.ordered]
    assert office.scene.directory.groups.named("jobs") is None


def test_an_exclusive_group_does_not_end_before_the_leases_of_its_nodes() -> None:
    """L6: they are gone, for their disks are back; but a program of theirs may hold something until then."""
    office = Office(on_quorum_lost="dissolve", exclusive=True)
    office.scene.serve(office.id, D, E, F, k=2)
    office.scene.gone("d")
    office.scene.gone("e")
    office.pass_time(Timers().lease + Timers().margin - 0.1)
    assert [] == office.ordered
    office.pass_time(0.5)
    assert [DropGroup] == [type(command) for command in office.ordered]


@pytest.mark.parametrize("attributes", [{"on_quorum_lost": "wait"}, {"durable": True}])
def test_a_group_may_prefer_to_wait(attributes: dict[str, AttributeValue]) -> None:
    """For an operator, or for its disks: those of a durable group come back."""
    office = Office(**attributes)
    servers = [(name, f"disk-{name}" if "durable" in attributes else 1) for name in "def"]
    office.scene.serve(office.id, *servers, k=2)
    for name in "def":
        office.scene.gone(name)
    office.pass_time(60.0)
    assert [] == office.ordered


def test_a_new_name_server_counts_anew_how_long_a_quorum_has_been_lost() -> None:
    """It does not know; waiting longer than needed is the safe side."""
    office = _served()
    office.scene.gone("d")
    office.scene.gone("e")
    office.pass_time(1.5)
    office.succeed()
    office.pass_time(1.5)
    assert [] == office.ordered
    office.pass_time(1.0)
    assert [ContinueGroup] == [type(command) for command in office.ordered]


def test_a_forced_view_whose_server_has_lost_the_group_is_granted_to_the_others() -> None:
    """e has left the group that it is to lead; f was in no active view, but in the one that was granted."""
    office = Office()
    office.scene.serve(office.id, D, E, k=1)
    assert office.scene.propose(office.id, D, F)["ok"]
    office.scene.gone("d")
    office.pass_time(3.0)
    pending = office.scene.group(office.id).pending
    assert pending is not None
    assert (True, "e") == (pending.forced, pending.leader)
    office.ordered.clear()
    office.grants.on_complaint(E, office.id, pending.epoch, unable=True)
    assert [ContinueGroup(office.id, pending.epoch, "f", (F,))] == office.ordered


def test_a_group_that_nobody_can_lead_any_more_ends() -> None:
    """All of the active view are gone, and the one that was to go on has not what it takes, and says so again."""
    office = Office()
    office.scene.serve(office.id, D, E, k=2)
    office.scene.gone("d")
    office.scene.gone("e")
    answer = office.scene.order(ContinueGroup(office.id, office.scene.group(office.id).newest_epoch, "f", (F,)))
    assert answer["ok"]
    pending = office.scene.group(office.id).pending
    assert pending is not None
    office.grants.on_complaint(F, office.id, pending.epoch, unable=True)
    assert [] == office.ordered
    office.pass_time(4.5)
    office.grants.on_complaint(F, office.id, pending.epoch, unable=True)
    (drop,) = office.ordered
    assert DropGroup(office.id, pending.epoch, drop.by) == drop
    assert office.scene.order(drop)["ok"]
    assert office.scene.directory.group("jobs") is None


def test_a_leader_that_lives_and_is_to_lead_on_is_given_time() -> None:
    """With k = 1 it needs no promise but its own, and is declared down before that time is over, or has gone on."""
    office = Office(commit_k=1, on_quorum_lost="dissolve")
    office.scene.serve(office.id, D, E, F, k=1)
    office.scene.gone("f")
    office.pass_time(3.5)
    assert [] == office.ordered
    office.pass_time(1.0)
    assert [DropGroup] == [type(command) for command in office.ordered]


def test_a_leader_that_cannot_have_the_promises_it_needs_is_not_waited_for() -> None:
    """With k = 2 of 3 and both others gone not even D can leave the view by itself."""
    office = Office(on_quorum_lost="dissolve")
    office.scene.serve(office.id, D, E, F, k=2)
    office.scene.gone("e")
    office.scene.gone("f")
    office.pass_time(2.5)
    assert [DropGroup] == [type(command) for command in office.ordered]


def test_who_only_does_not_hear_a_leader_that_is_still_to_be_confirmed_has_not_lost_anything() -> None:
    """It may have opened the log of that very view, and be the only one that has it."""
    office = _served()
    office.scene.down("d")
    pending = office.scene.group(office.id).pending
    assert pending is not None
    office.complain("e", "f", epoch=pending.epoch)
    assert [] == office.ordered
