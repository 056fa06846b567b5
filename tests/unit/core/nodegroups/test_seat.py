"""What a node is in a group's stream, and what makes it something else: claims, orders, grants, refusals."""

from __future__ import annotations

from groupsvcd.core.events import PeerFrame
from groupsvcd.core.nodegroups.controls import NodeRemoved, encode_control
from groupsvcd.core.peer_messages import (
    Answered,
    Beat,
    Claim,
    Complaint,
    Grant,
    GroupIs,
    Leave,
    Open,
    Opened,
    Order,
    Promised,
    Refused,
    Repair,
    RepairAsk,
    Submit,
    SubmitRefused,
)
from groupsvcd.core.stream.entries import encode_entry
from groupsvcd.core.stream.server import Server
from groupsvcd.core.views import View
from tests.unit.core.nodegroups.carriers import Carriers


def _claim(nodes: Carriers, epoch: int, leader: str, *servers: str) -> Claim:
    view = View(epoch, leader, tuple(nodes.node(name) for name in servers), 1)
    return Claim(nodes.id(), epoch, view=view)


# --- Promising ---


def test_a_receiver_that_is_to_serve_reports_nothing_until_it_has_opened_a_log() -> None:
    """L4. Its copy may end before what the log of its epoch had when it was opened."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose(Open, "E>G")
    nodes.die("D")
    nodes.run(1.0)
    reports = nodes.messages(Promised, "G")
    assert {(0, 0, 0)} == {(report.accepted, report.last, report.stable) for report in reports}
    nodes.forget_the_past()
    nodes.frame("F", "G", _claim(nodes, 10_000, "F", "F", "G"))
    assert [Promised(nodes.id(), 10_000, 0, 0, 0, 0)] == nodes.messages(Promised, "G")


def test_a_server_reports_all_it_has() -> None:
    """Accepted epoch and last entry, stable or not."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Order, "D>E")
    nodes.lose(Beat)
    nodes.submit("D", "a")
    nodes.run(0.01)
    accepted, last = nodes.record().active.epoch, nodes.seat("D").replica.log.last
    nodes.forget_the_past()
    for name in "EF":
        nodes.frame("D", name, _claim(nodes, 10_000, "D", "D", "E", "F"))
    assert [(accepted, last - 1)] == [(report.accepted, report.last) for report in nodes.messages(Promised, "E")]
    assert [(accepted, last)] == [(report.accepted, report.last) for report in nodes.messages(Promised, "F")]


def test_who_has_promised_refuses_everything_below() -> None:
    """L3. An order, a beat, a claim and an open of an epoch that is past."""
    nodes = Carriers.with_group("DEF")
    id, epoch = nodes.id(), nodes.record().active.epoch
    nodes.frame("F", "E", _claim(nodes, 10_000, "F", "E", "F"))
    last = nodes.seat("E").replica.log.last
    nodes.forget_the_past()
    nodes.frame("D", "E", Order(id, epoch, last + 1, (b"",), last))
    nodes.frame("D", "E", Beat(id, epoch, last, last, 0))
    nodes.frame("D", "E", _claim(nodes, 9_999, "D", "D", "E"))
    nodes.frame("D", "E", Open(id, 9_999, epoch, last, last, 0, View(9_999, "D", (nodes.node("E"),), 1)))
    assert [Refused(id, 10_000)] * 4 == nodes.messages(Refused, "E", "D")
    assert last == nodes.seat("E").replica.log.last


def test_a_leader_that_promises_to_another_one_leads_no_more() -> None:
    """L1. From that moment on it numbers nothing: who submits to it is sent on."""
    nodes = Carriers.with_group("DEF")
    nodes.frame("E", "D", _claim(nodes, 10_000, "E", "E", "F"))
    assert "leader" not in nodes.roles("D")
    assert ["D"] == [line.node for line in nodes.lines("view_left")]
    nodes.forget_the_past()
    nodes.submit("D", "from the past")
    nodes.submit("F", "to the past")
    nodes.run(0.05)
    assert [] == nodes.messages(Order, "D")


def test_a_claim_that_is_repeated_is_answered_again() -> None:
    """The promise may have been lost on its way; it is still the same one."""
    nodes = Carriers.with_group("DEF")
    claim = _claim(nodes, 10_000, "F", "E", "F")
    nodes.frame("F", "E", claim)
    nodes.frame("F", "E", claim)
    first, second = nodes.messages(Promised, "E", "F")
    assert first == second
    assert [10_000] == [line.epoch for line in nodes.lines("promise") if line.node == "E"]


# --- Who serves, who receives ---


def test_a_server_that_is_not_in_the_new_view_retires_when_that_is_active() -> None:
    """GS-09. D was replaced while nobody heard it: it follows what the others order."""
    nodes = Carriers.with_group("DEF", replicas=2)
    nodes.loses = lambda sender, receiver, message: sender == "D" and receiver in "EF"
    nodes.run_until(lambda: nodes.roles("E") == ["leader"], within=3.0)
    nodes.run_until(lambda: nodes.roles("D") == ["receiver"], within=1.0)
    nodes.submit("E", "after the change")
    nodes.run(0.1)
    assert ["after the change"] == nodes.texts("D")


def test_a_server_of_the_new_view_takes_no_orders_before_it_has_opened() -> None:
    """L4. What it has may be another log; what it reported stays true until it has all of the new one."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Open, "E>F")
    nodes.die("D")
    nodes.run_until(lambda: bool(nodes.messages(Promised, "F", "E")))
    before = nodes.seat("F").replica.log.accepted
    nodes.run(0.3)
    assert isinstance(nodes.seat("F").role, Server)
    assert before == nodes.seat("F").replica.log.accepted
    nodes.heal()
    nodes.run(1.5)
    assert ["leader", "server"] == nodes.roles("EF")


def test_who_delivered_what_is_lost_for_ever_has_lost_the_group() -> None:
    """V4, B6. The log of a forced view lacks an entry that G has handed up: G cannot go on as if nothing had been."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose((Order, Beat, Repair), "D>F E>F")
    nodes.submit("G", "only D, E and G have this")
    nodes.run(0.01)
    nodes.die("D", "E")
    nodes.heal()
    nodes.run(6.0)
    assert ["only D, E and G have this"] == nodes.texts("G")
    assert ["the group goes on without entries that were delivered here"] == nodes.user("G").losses
    assert ([], []) == (nodes.texts("F"), nodes.user("F").losses)
    assert "F" == nodes.user("F").names


def _g_alone_has(nodes: Carriers, text: str) -> None:
    """D and E, who are servers, and G, who follows, deliver something that F lacks; then G is cut off from F."""
    nodes.lose((Order, Beat, Repair), "D>F E>F")
    nodes.submit("G", text)
    nodes.run(0.01)
    assert [[], [text]] == [nodes.texts(name) for name in "FG"]
    nodes.heal()
    nodes.cut("G", "F")


def test_who_missed_the_forced_view_that_lost_its_tail_finds_it_out_in_a_later_one() -> None:
    """V4, B6. The view in which G hears of the group again begins far behind all that G has delivered."""
    nodes = Carriers.with_group("DEFGH", "DEFGH", replicas=3)
    nodes.lose((Order, Beat, Repair), "D>H E>H")
    _g_alone_has(nodes, "only D, E and G have this")
    nodes.cut("G", "F", "H")
    nodes.die("D", "E")
    nodes.run_until(lambda: nodes.roles("F") == ["leader"], within=10.0)
    for number in range(5):
        nodes.submit("H", f"forced view {number}")
    nodes.run(1.0)
    assert "FH" == "".join(nodes.record().active.names)
    nodes.leave("F")
    nodes.run_until(lambda: nodes.roles("H") == ["leader"])
    nodes.submit("H", "later view")
    nodes.run(0.2)
    assert nodes.seat("H").replica.began > nodes.part("G").delivered
    nodes.heal()
    nodes.run(1.0)
    assert ["only D, E and G have this"] == nodes.texts("G")
    assert ["the group goes on without entries that were delivered here"] == nodes.user("G").losses
    assert "H" == nodes.user("H").names


def test_who_missed_a_forced_view_that_lost_nothing_goes_on() -> None:
    """V4. G has a beginning of the log that was left, and takes the rest."""
    nodes = Carriers.with_group("DEFGH", "DEFGH", replicas=3)
    nodes.submit("G", "before")
    nodes.run(0.5)
    nodes.cut("G", "F", "H")
    nodes.die("D", "E")
    nodes.run_until(lambda: nodes.roles("F") == ["leader"], within=10.0)
    nodes.submit("H", "forced view")
    nodes.run(1.0)
    nodes.leave("F")
    nodes.run_until(lambda: nodes.roles("H") == ["leader"])
    nodes.heal()
    nodes.run(1.0)
    assert ["before", "forced view"] == nodes.texts("G")
    assert [] == nodes.user("G").losses


def test_who_has_lost_the_group_does_not_bring_its_log_back() -> None:
    """B6. F goes on without what G has delivered, and dies before it has let G go: then nobody has the group."""
    nodes = Carriers.with_group("DEFG", "DEFGH")
    _g_alone_has(nodes, "only D, E and G have this")
    nodes.heal()
    nodes.lose(Leave)
    nodes.die("D", "E")
    nodes.run_until(lambda: bool(nodes.user("G").losses), within=10.0)
    nodes.die("F")
    user = nodes.join("H")
    nodes.run(15.0)
    assert 1 == len(user.joined_at)
    assert ["none", "leader"] == nodes.roles("GH")
    assert [] == [line for line in nodes.lines("granted") if line.node == "G"]


def test_who_is_to_serve_a_log_that_lacks_its_entries_says_that_it_cannot() -> None:
    """B6. It would keep its own tail, and hold what nobody else has."""
    nodes = Carriers.with_group("DEFG")
    nodes.submit("G", "a")
    nodes.run(0.1)
    id, last = nodes.id(), nodes.part("G").delivered
    view = View(10_000, "F", (nodes.node("F"), nodes.node("G")), 1)
    nodes.forget_the_past()
    nodes.frame("F", "G", Open(id, 10_000, 9_000, last + 20, last + 20, 0, view, ((0, 0), (8_000, last))))
    assert [Complaint(id, 10_000, unable=True)] == nodes.messages(Complaint, "G")
    assert [] == nodes.messages(Opened, "G")
    assert [] == nodes.user("G").losses  # that view is not active, as far as G knows


def test_an_order_of_a_view_that_nobody_told_of_is_not_heard() -> None:
    """B6: an order does not say which views came before; a beat does, and goes ahead of the first one."""
    nodes = Carriers.with_group("DEFG")
    nodes.submit("D", "before")
    nodes.run(1.0)
    before = nodes.part("G").delivered
    entry = encode_entry("", 0, 0, encode_control(NodeRemoved(nodes.node("F"))))
    nodes.frame("E", "G", Order(nodes.id(), 10_000, before + 1, (entry,), before + 1, 0, before + 1))
    assert before == nodes.part("G").delivered
    nodes.frame("E", "G", Beat(nodes.id(), 10_000, before + 1, before, 0, 0, before + 1, views=((0, 0),)))
    nodes.frame("E", "G", Order(nodes.id(), 10_000, before + 1, (entry,), before + 1, 0, before + 1))
    assert before + 1 == nodes.part("G").delivered


def test_a_server_that_does_not_know_all_of_its_log_does_not_tell_of_its_views() -> None:
    """B6. G follows a log whose views before the present one it has not delivered yet: nobody can judge by its word."""
    nodes = Carriers.with_group("DEFG")
    nodes.submit("D", "before")
    nodes.run(1.0)
    replica, before = nodes.seat("G").replica, nodes.part("G").delivered
    assert ((0, 0),) == replica.known_views
    nodes.frame("E", "G", Beat(nodes.id(), 10_000, before + 9, before, 0, 0, before + 9, views=((0, 0),)))
    assert (10_000, ()) == (replica.log.accepted, replica.known_views)


def test_a_receiver_that_does_not_hear_the_leader_gets_everything_from_the_servers() -> None:
    """SAM-06. Also in an epoch whose leader it never heard."""
    nodes = Carriers.with_group("DEFG")
    nodes.run(1.0)
    nodes.cut("G", "E")
    nodes.die("D")
    nodes.run(1.0)
    for text in ("one", "two"):
        nodes.submit("F", text)
        nodes.run(6.0)
    assert ["one", "two"] == nodes.texts("G")


def test_who_lost_its_tail_and_joined_again_can_submit() -> None:
    """GS-10. G had delivered its number 1 in a log that is lost; its numbers go on behind what it knows of."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose((Order, Beat, Repair), "D>F E>F")
    nodes.submit("G", "lost")
    nodes.run(0.01)
    nodes.die("D", "E")
    nodes.heal()
    nodes.run(6.0)
    nodes.join("G")
    nodes.run(1.0)
    nodes.forget_the_past()
    nodes.submit("G", "again")
    nodes.run(1.0)
    assert len(nodes.messages(SubmitRefused)) < 5
    assert ["again"] == nodes.texts("F")


# --- Recovering and leading ---


def test_nothing_is_numbered_before_the_directory_has_confirmed() -> None:
    """L1, L4. E has opened the log with F, but somebody else may be given the next epoch before E's is active."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Submit, "E>A")
    nodes.die("D")
    nodes.run(0.5)
    assert ["recovering", "server"] == nodes.roles("EF")
    nodes.submit("F", "a")
    nodes.run(0.3)
    assert ([], [], []) == (nodes.messages(Order, "E"), nodes.texts("E"), nodes.texts("F"))
    nodes.heal()
    nodes.run(1.0)
    assert ["a"] == nodes.texts("F")


def test_an_activation_that_was_refused_ends_the_recovery() -> None:
    """Somebody else was granted a higher epoch meanwhile; its claim will come."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Answered, "A>E")
    nodes.die("D")
    nodes.run(0.5)
    epoch = nodes.record().newest_epoch
    nodes.act("E", lambda groups: nodes.seat("E").activated({"epoch": epoch, "ok": False}))
    assert ["server"] == nodes.roles("E")
    nodes.heal()
    nodes.run(0.5)
    assert ["server"] == nodes.roles("E")


def test_a_grant_that_comes_late_changes_nothing() -> None:
    """The name server repeats it, and a copy may arrive after the next one was granted."""
    nodes = Carriers.with_group("DEF")
    record = nodes.record()
    for epoch in (record.active.epoch, record.active.epoch - 1):
        view = View(epoch, "D", (nodes.node("D"),), 1)
        nodes.frame("A", "D", Grant(nodes.id(), "jobs", {}, view, record.active))
    assert ["leader", "server", "server"] == nodes.roles("DEF")
    assert [] == nodes.lines("granted")


def test_a_refusal_ends_a_leader_that_does_not_know_yet() -> None:
    """L5. Whoever refuses it has promised to its successor; it does not wait for its lease to end."""
    nodes = Carriers.with_group("DEF")
    nodes.frame("E", "D", Refused(nodes.id(), nodes.record().active.epoch))
    assert ["leader"] == nodes.roles("D")
    nodes.frame("E", "D", Refused(nodes.id(), 10_000))
    assert "leader" not in nodes.roles("D")


def test_all_that_was_stable_is_there_after_its_leader_died() -> None:
    """GS-11, B3, L4. F heard nothing of it and would have been next; E has it, and F fetches it."""
    nodes = Carriers.with_group("DEF")
    nodes.lose((Order, Beat), "D>E")
    nodes.submit("F", "a", "b")
    nodes.run(0.01)
    assert (["a", "b"], []) == (nodes.texts("F"), nodes.texts("E"))
    nodes.die("D")
    nodes.heal()
    nodes.run(1.0)
    assert "leader" == nodes.roles("E")[0]
    assert ["a", "b"] == nodes.texts("E")
    assert nodes.messages(RepairAsk, "E", "F")


def test_successors_that_die_one_after_the_other_lose_nothing() -> None:
    """GS-09. Four servers with k of four: each of them has everything, and the last one goes on with it."""
    nodes = Carriers.with_group("DEFG", replicas=4, commit_k=4)
    nodes.submit("G", "a")
    nodes.run(0.1)
    for dead, heir in zip("DEF", "EFG", strict=True):
        nodes.die(dead)
        nodes.run(0.5)
        nodes.submit("G", f"led by {heir}")
        nodes.run(0.1)
        assert "leader" == nodes.roles(heir)[0]
    assert ["a", "led by E", "led by F", "led by G"] == nodes.texts("G")
    assert "G" == nodes.user("G").names


# --- Complaints ---


def test_servers_that_do_not_hear_their_leader_complain_and_receivers_do_not() -> None:
    """A receiver may be cut off alone, and holds nothing that would be missed."""
    nodes = Carriers.with_group("DEFG")
    nodes.loses = lambda sender, receiver, message: sender == "D" and receiver in "EFG"
    nodes.run_until(lambda: bool(nodes.messages(Complaint)), within=2.0)
    nodes.run(0.001)
    assert [("E", "A"), ("F", "A")] == sorted(
        (line.sender, line.receiver) for line in nodes.sent if isinstance(line.message, Complaint)
    )


def test_a_server_that_hears_no_name_server_complains_to_nobody() -> None:
    """Without a lease it may be the one that is cut off."""
    nodes = Carriers.with_group("DEF")
    nodes.cut("E", *"ABCDF")
    nodes.run(1.5)
    nodes.forget_the_past()
    nodes.run(3.0)
    assert [] == nodes.messages(Complaint, "E")


def test_a_server_that_has_not_opened_its_log_holds_nothing() -> None:
    """L4, B3. G heard the view's orders before its claim, so it follows its epoch; but it would report nothing yet.

    Whoever takes over from E's log and G's promise would not know of what D and G alone were said to hold.
    """
    nodes = Carriers.with_group("DEFG")
    nodes.lose(Claim, "D>G")
    nodes.die("F")
    nodes.run_until(lambda: nodes.record().active.names == ("D", "E", "G"), within=3.0)
    nodes.run(0.3)
    nodes.heal()
    nodes.lose(Open, "D>G")
    nodes.run(1.5)
    nodes.lose((Order, Beat, Repair), "D>E G>E")
    nodes.submit("D", "a")
    nodes.run(0.1)
    delivered = nodes.texts("D")
    nodes.die("D")
    nodes.heal()
    nodes.run(3.0)
    assert delivered == nodes.texts("E")


def test_who_led_does_not_complain_of_itself() -> None:
    """It has just promised to somebody who will lead."""
    nodes = Carriers.with_group("DEF")
    nodes.run(2.0)
    nodes.leave("D")
    nodes.run(0.05)
    assert [] == nodes.messages(Complaint, "D")


def test_who_is_to_lead_a_log_with_its_own_removal_leads_it_to_the_end() -> None:
    """V7. G had left, without knowing it, when all others died. Nobody else could let the group go on, or end it."""
    nodes = Carriers.with_group("DEFG", "DEFGH")
    nodes.loses = lambda sender, receiver, message: (
        receiver == "G" and (isinstance(message, Beat) or (isinstance(message, Order) and message.entries == ()))
    )
    nodes.leave("G")
    nodes.run(0.01)
    assert nodes.node("G") not in nodes.part("D").roll.members
    assert nodes.node("G") in nodes.part("G").roll.members
    nodes.die("D", "E", "F")
    nodes.heal()
    user = nodes.join("H")
    nodes.run(12.0)
    assert 1 == len(user.joined_at)
    assert ["none", "leader"] == nodes.roles("GH")


# --- What comes late, or from somebody else than the leader ---


def test_a_late_repair_of_an_older_view_brings_back_nothing_that_a_forced_view_lacks() -> None:
    """B4, B6. D and E made an entry stable that died with them; E's answer to G comes when F leads without it."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose((Order, Beat), "D>F D>G")
    nodes.submit("E", "lost")
    nodes.run(0.05)
    first = nodes.seat("G").replica.log.last + 1
    nodes.lose(Repair)
    nodes.frame("G", "E", RepairAsk(nodes.id(), first, first))
    late = nodes.messages(Repair, "E", "G")[-1]
    assert (1, True) == (len(late.entries), late.stable >= first)
    old = (nodes.incarnation("E"), nodes.engines["E"].domain)
    nodes.die("D", "E")
    nodes.loses = lambda sender, receiver, message: (
        (sender, receiver) == ("F", "G")
        and (isinstance(message, Repair) or (isinstance(message, Order) and message.entries != ()))
    )
    nodes.run_until(lambda: nodes.roles("F") == ["leader"], within=10.0)
    nodes.run_until(lambda: nodes.seat("G").replica.log.accepted == nodes.record().active.epoch)
    nodes.step("G", PeerFrame("E", *old, (late,)))
    nodes.heal()
    nodes.submit("F", "after")
    nodes.run(3.0)
    assert (["after"], ["after"]) == (nodes.texts("F"), nodes.texts("G"))


def test_a_receiver_that_does_not_know_who_leads_asks_on() -> None:
    """SAM-06. A server tells G of a view whose leader G does not hear; its first entry lies beyond that answer."""
    nodes = Carriers.with_group("DEFG")
    nodes.submit("D", "a")
    nodes.run(0.02)
    nodes.cut("G", "D", "E", "F")
    texts = [f"{i} {'x' * 15_000}" for i in range(100)]
    nodes.submit("D", *texts)
    nodes.run(0.2)
    nodes.die("D")
    nodes.run_until(lambda: nodes.roles("E") == ["leader"], within=3.0)
    nodes.heal()
    nodes.cut("G", "E")
    nodes.run(10.0)
    assert ["a", *texts] == nodes.texts("G")


def test_a_server_that_a_view_goes_on_without_is_connected_to_those_that_serve_it() -> None:
    """B2. G came while F was away: F's own list of members does not have it, and nobody else tells F where to ask."""
    nodes = Carriers.with_group("DEF")
    view = View(10_000, "G", (nodes.node("G"),), 1)
    assert "G" not in nodes.engines["F"].links._present
    nodes.frame(nodes.leaders[0], "F", GroupIs(nodes.id(), view))
    assert ["receiver"] == nodes.roles("F")
    assert "G" in nodes.engines["F"].links._present
