"""A leader that lives goes on, whoever else dies: what was numbered in its view is all in its own log."""

from __future__ import annotations

import pytest

from groupsvcd.core.nodegroups.controls import ViewStarted, decode_control
from groupsvcd.core.peer_messages import Claim, Order
from groupsvcd.core.views import AttributeValue, View
from tests.unit.core.nodegroups.carriers import Carriers


def _one_copy(carriers: str = "DEF", **attributes: AttributeValue) -> Carriers:
    return Carriers.with_group(carriers, commit_k=1, **attributes)


def _views_that_may_have_lost(nodes: Carriers, name: str) -> list[int]:
    controls = [decode_control(entry.body) for _, entry in nodes.user(name).entries if not entry.origin]
    return [one.epoch for one in controls if isinstance(one, ViewStarted) and one.tail_may_be_lost]


@pytest.mark.parametrize("on_quorum_lost", ["continue", "dissolve", "wait"])
def test_the_death_of_a_server_whose_copy_nobody_needs_stops_nothing(on_quorum_lost: str) -> None:
    """V7, L4. With k = 1 the promises of all three would be needed to know what was stable. D knows it without them."""
    nodes = _one_copy(on_quorum_lost=on_quorum_lost)
    nodes.submit("E", "before")
    nodes.run(0.1)
    nodes.die("F")
    nodes.run(0.5)
    active = nodes.record().active
    assert (("D", "E"), "D", False) == (active.names, active.leader, active.forced)
    nodes.submit("E", "after")
    nodes.run(10.0)
    assert ["before", "after"] == nodes.texts("D") == nodes.texts("E")
    assert [] == _views_that_may_have_lost(nodes, "D") == nodes.user("D").losses == nodes.user("E").losses


def test_nor_does_the_death_of_all_others() -> None:
    nodes = _one_copy()
    nodes.die("E", "F")
    nodes.run(0.5)
    nodes.submit("D", "alone")
    nodes.run(0.5)
    assert ["alone"] == nodes.texts("D")
    assert (("D",), False) == (nodes.record().active.names, nodes.record().active.forced)


def test_nor_their_deaths_one_upon_the_other() -> None:
    """E dies while D takes over from itself: it led the base, though it leads nothing at the moment."""
    nodes = _one_copy()
    nodes.submit("D", "a")
    nodes.run(0.1)
    nodes.kill("F")
    nodes.run_until(lambda: nodes.about("D").role == "recovering")  # type: ignore[union-attr]
    nodes.die("E", "F")
    nodes.run(0.5)
    nodes.submit("D", "b")
    nodes.run(0.5)
    assert ["a", "b"] == nodes.texts("D")
    assert [] == _views_that_may_have_lost(nodes, "D")


def test_a_durable_group_goes_on_with_the_process_that_led_it() -> None:
    """F's disk may come back or not; nothing that was stable is on it alone."""
    nodes = Carriers.with_group("DEF", commit_k=1, durable=True)
    nodes.die("F")
    nodes.run(4.0)
    nodes.submit("E", "a")
    nodes.run(0.5)
    assert ["a"] == nodes.texts("D") == nodes.texts("E")
    nodes.boot("F")
    nodes.run(4.0)
    assert {"D", "E", "F"} == set(nodes.record().active.names)


def test_a_leader_that_was_started_again_is_not_the_one_that_led() -> None:
    """L4, S1. What E's disk has is stable, though D had not written it; the process that knew of it has died."""
    nodes = Carriers.with_group("DEF", commit_k=1, durable=True)
    nodes.hang_disk("D")
    nodes.submit("E", "only at E and F")
    nodes.run(0.1)
    assert ["only at E and F"] == nodes.texts("E")
    last = nodes.seat("E").replica.log.last
    nodes.kill("D", "E", "F")
    nodes.waiting_writes.clear()
    nodes.boot("D")
    nodes.run(10.0)
    assert ("recovering", last - 1) == (nodes.roles("D")[0], nodes.seat("D").replica.log.last)
    nodes.boot("E", "F")
    nodes.run(10.0)
    assert [last] == [line.seq for line in nodes.journal if line.op == "recovered" and line.group][:1]


def test_a_leader_that_hears_too_few_to_go_on_does_not_take_the_group_with_it() -> None:
    """With k = 2 of 3 nothing gets stable at a leader that hears nobody; E and F, whom all hear, take over."""
    nodes = Carriers.with_group("DEF")
    nodes.loses = lambda sender, receiver, message: receiver == "D" and sender in ("E", "F")
    nodes.run(15.0)
    assert "D" != nodes.record().active.leader


def test_with_two_copies_the_leader_and_one_more_are_as_many_as_ever() -> None:
    nodes = Carriers.with_group("DEFG", replicas=4, commit_k=2)
    nodes.die("G")
    nodes.cut("D", "F")
    nodes.run(0.5)
    nodes.submit("E", "a")
    nodes.run(0.5)
    assert ["a"] == nodes.texts("D") == nodes.texts("E")


def test_a_server_out_of_reach_becomes_a_receiver_and_another_takes_its_place() -> None:
    """E does not hear D. D needs no promise of it, and G holds the third copy instead."""
    nodes = _one_copy("DEFG")
    nodes.cut("D", "E")
    nodes.run(6.0)
    assert {"D", "F", "G"} == set(nodes.record().active.names)
    assert "receiver" == nodes.roles("E")[0]
    nodes.submit("G", "a")
    nodes.run(6.0)
    assert ["a"] == nodes.texts("E")


def test_a_leader_that_lacks_a_payload_needs_the_others_as_any_successor_does() -> None:
    """L4. E alone has a large payload, whose number may be stable with it."""
    nodes = _one_copy("DEF", data_k=1, inline_bytes_max=10)
    seat = nodes.seat("D")
    large = "x" * 1000
    nodes.loses = lambda sender, receiver, message: sender == "E" and type(message).__name__ == "Data"
    nodes.submit("E", large)
    nodes.run(0.05)
    log, library = seat.replica.log, seat.replica.library
    assert library.complete_upto < log.last
    nodes.die("F")
    nodes.run(1.0)
    assert "recovering" == nodes.roles("D")[0]


@pytest.mark.parametrize("on_quorum_lost", ["continue", "dissolve", "wait"])
def test_a_leader_that_lacks_a_payload_goes_on_with_one_who_has_it(on_quorum_lost: str) -> None:
    """L4, V7. All that D numbered is in E's log, and complete: nobody needs a word of F, which is dead."""
    nodes = _one_copy("DEF", data_k=1, inline_bytes_max=10, on_quorum_lost=on_quorum_lost)
    large = "x" * 1000
    nodes.loses = lambda sender, receiver, message: sender == "E" and type(message).__name__ == "Data"
    nodes.submit("E", large)
    nodes.run(0.05)
    assert not nodes.seat("D").replica.is_whole
    nodes.die("F")
    nodes.run(0.3)
    nodes.loses = lambda sender, receiver, message: False
    nodes.run(10.0)
    active = nodes.record().active
    assert (("D", "E"), "D", False) == (active.names, active.leader, active.forced)
    assert [large] == nodes.texts("D") == nodes.texts("E")
    assert [] == _views_that_may_have_lost(nodes, "D") == nodes.user("D").losses


def test_the_leaders_own_death_is_another_matter_and_is_announced() -> None:
    """With k = 1 what only D had is gone with it: the others go on, and are told that something may be lost."""
    nodes = _one_copy()
    nodes.lose(Order, "D>E D>F")
    nodes.submit("D", "only at D")
    nodes.run(0.01)
    assert ["only at D"] == nodes.texts("D")
    nodes.die("D")
    nodes.heal()
    nodes.loses = lambda sender, receiver, message: False
    nodes.run(10.0)
    active = nodes.record().active
    assert [active.epoch] == _views_that_may_have_lost(nodes, "E")
    nodes.submit("E", "a")
    nodes.run(0.5)
    assert ["a"] == nodes.texts("E") == nodes.texts("F")


def test_claims_of_the_leader_are_still_sent_to_all() -> None:
    """Who can be reached promises before it opens; only who cannot is not waited for."""
    nodes = _one_copy()
    nodes.die("F")
    nodes.run(0.5)
    assert [] != [sent for sent in nodes.sent if isinstance(sent.message, Claim) and sent.receiver == "E"]


def test_who_was_left_out_unheard_continues_the_group_when_its_leader_is_gone() -> None:
    """E and F know from the name server alone that D goes on without them. Then D dies, and only they have anything."""
    nodes = _one_copy()
    nodes.submit("D", "a")
    nodes.run(0.1)
    nodes.cut("D", "E", "F")
    nodes.run(6.0)
    assert (("D",), ["receiver", "receiver"]) == (nodes.record().active.names, nodes.roles("EF"))
    nodes.die("D")
    nodes.run(10.0)
    assert [[], []] == [nodes.user(name).losses for name in "EF"]
    nodes.submit("E", "b")
    nodes.run(1.0)
    assert ["a", "b"] == nodes.texts("E") == nodes.texts("F")


def test_who_led_and_only_follows_by_now_is_not_the_one_that_led() -> None:
    """L4, B6. D has retired for a view that is active; then comes a grant that was overtaken. Its log is out."""
    nodes = Carriers.with_group("DEFG", replicas=4, commit_k=2)
    before = nodes.record().active
    nodes.loses = lambda sender, receiver, message: receiver == "G" and type(message).__name__ in ("Order", "Beat")
    nodes.submit("E", "a")
    nodes.run(0.1)
    assert (["a"], []) == (nodes.texts("D"), nodes.texts("G"))
    nodes.cut("D", "E", "F")
    servers = dict(before.servers)
    without_d = View(before.epoch + 5, "E", (("E", servers["E"]), ("F", servers["F"])), 2, base=before.epoch)
    overtaken = View(before.epoch + 3, "D", before.servers, 2, base=before.epoch)
    nodes.act("D", lambda groups: nodes.seat("D").superseded_by(without_d))
    nodes.act("D", lambda groups: nodes.seat("D").take_grant(overtaken, before))
    nodes.run(0.5)
    assert [] == nodes.user("D").losses
