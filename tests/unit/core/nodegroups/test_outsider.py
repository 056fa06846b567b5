"""Submitting to a group without carrying it: each submission is ordered once, or its fate is unknown."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Accepted, Ask, Beat, NotLeader, Order, Repair, Submit, SubmitRefused, Tell
from tests.unit.core.nodegroups.carriers import Carriers


def test_a_stranger_is_told_once_its_entries_are_stable() -> None:
    """SAM-03. It waits for nothing meanwhile, and several may be outstanding."""
    nodes = Carriers.with_group("DEF")
    assert nodes.send("G", "a", "b")
    nodes.run(0.01)
    nodes.send("G", "c")
    nodes.run(0.1)
    assert (3, []) == (nodes.user("G").accepted_upto, nodes.user("G").failures)
    assert ["a", "b", "c"] == nodes.texts("E")
    assert "DEF" == nodes.user("D").names


def test_what_is_sent_before_the_leader_is_known_waits() -> None:
    """One sending at a time until then; what is not taken was not sent."""
    nodes = Carriers.with_group("DEF")
    assert nodes.send("G", "a")
    assert not nodes.send("G", "b")
    nodes.run(0.1)
    assert nodes.send("G", "b")
    nodes.run(0.1)
    assert ["a", "b"] == nodes.texts("E")


def test_an_entry_whose_acceptance_was_lost_is_not_ordered_twice() -> None:
    """B1, SAM-03. It is sent again under the same number, and the leader only answers again."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Accepted)
    nodes.send("G", "a")
    nodes.run(0.5)
    assert 0 == nodes.user("G").accepted_upto
    nodes.heal()
    nodes.run(2.0)
    assert 1 == nodes.user("G").accepted_upto
    assert ["a"] == nodes.texts("E")


def test_the_next_leader_gets_what_the_last_one_did_not_accept() -> None:
    """SAM-10. It had numbered "a", and G was not told; "b" never reached it."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Accepted)
    nodes.send("G", "a")
    nodes.run(0.1)
    nodes.lose(Submit, "G>D")
    nodes.send("G", "b")
    nodes.die("D")
    nodes.heal()
    nodes.run(3.0)
    assert 2 == nodes.user("G").accepted_upto
    assert ["a", "b"] == nodes.texts("E")


def test_a_node_that_leads_no_more_sends_a_stranger_on() -> None:
    """The stranger need not wait until it looks up again."""
    nodes = Carriers.with_group("DEF")
    nodes.send("G", "a")
    nodes.run(0.1)
    nodes.leave("D")
    nodes.run(1.5)
    nodes.forget_the_past()
    nodes.send("G", "b")
    nodes.run(0.5)
    assert nodes.messages(NotLeader, "D", "G")
    assert ["a", "b"] == nodes.texts("E")


def test_a_stranger_that_was_a_member_goes_through_the_servers_of_today() -> None:
    """B2. Those who were servers when it left may be strangers themselves."""
    nodes = Carriers.with_group("DEFG")
    nodes.leave("G")
    nodes.run(0.5)
    nodes.leave("E")
    nodes.run(1.5)
    nodes.send("G", "a")
    nodes.run(0.05)
    nodes.lose(Submit, "G>D")
    nodes.send("G", "b")
    nodes.run(3.0)
    assert 2 == nodes.user("G").accepted_upto
    assert nodes.messages(Submit, "G", "F")
    assert not nodes.messages(Submit, "G", "E")


def test_an_answer_to_a_stranger_takes_no_leader_from_a_member() -> None:
    """B2. G sends from outside and has not been told who leads; it becomes a member, and then the answer comes."""
    nodes = Carriers.with_group("DEF")
    nodes.send("G", "a")
    question = nodes.messages(Ask, "G")[-1].number
    nodes.loses = lambda sender, receiver, message: isinstance(message, Tell) and message.number == question
    stranger = nodes.user("G")
    nodes.join("G")
    nodes.run(0.5)
    assert "receiver" == nodes.roles("G")[0]
    nodes.heal()
    nodes.run(1.5)
    nodes.submit("G", "b")
    nodes.run(0.5)
    assert {"a", "b"} == set(nodes.texts("D"))
    assert 1 <= stranger.accepted_upto


def test_there_is_no_such_group() -> None:
    """Nothing was sent to anybody."""
    nodes = Carriers.with_group("DEF")
    nodes.send("G", "a", group="nothing")
    nodes.run(0.5)
    assert ["there is no such group"] == nodes.user("G", "nothing").failures
    assert [] == [submit for submit in nodes.messages(Submit, "G") if submit.stream]


def test_a_group_that_ended_and_was_formed_anew_is_another_one() -> None:
    """What became of the submission is not known: it is not sent to the new group."""
    nodes = Carriers.with_group("D")
    nodes.lose(Submit, "G>D")
    nodes.send("G", "a")
    nodes.run(0.05)
    nodes.leave("D")
    nodes.run(0.5)
    nodes.join("E")
    nodes.run(0.5)
    nodes.heal()
    nodes.run(3.0)
    assert (1, 0) == (len(nodes.user("G").failures), nodes.user("G").accepted_upto)
    assert [] == nodes.texts("E")


def test_a_member_does_not_send_from_outside() -> None:
    """It has its place in the stream."""
    nodes = Carriers.with_group("DEF")
    assert not nodes.send("E", "a")


def test_a_stranger_that_joins_goes_on_with_its_numbers() -> None:
    """B1, B5. The roll knows it already: 1 and 2 were of a stranger, 3 is of a member."""
    nodes = Carriers.with_group("DEF")
    nodes.send("G", "a", "b")
    nodes.run(0.1)
    stranger = nodes.user("G")
    user = nodes.join("G")
    nodes.run(1.0)
    assert 3 == nodes.submit("G", "c")
    nodes.run(0.1)
    assert ["a", "b", "c"] == nodes.texts("E")
    assert stranger.accepted_upto >= 2
    assert ([], ["c"], []) == (stranger.failures, user.texts, user.losses)


def test_a_member_that_left_sends_from_outside_with_its_numbers() -> None:
    """B1. A late copy of its old submissions is still a duplicate."""
    nodes = Carriers.with_group("DEFG")
    nodes.submit("G", "a")
    nodes.run(0.1)
    nodes.leave("G")
    nodes.run(1.0)
    assert nodes.send("G", "b")
    nodes.run(0.5)
    assert ["a", "b"] == nodes.texts("E")
    assert [] == nodes.messages(SubmitRefused)


def test_a_stranger_has_no_link_to_members_that_neither_lead_nor_serve() -> None:
    """GS-02. No all-to-all traffic."""
    nodes = Carriers.with_group("DEFG", others="DEFGH")
    nodes.send("H", "a")
    nodes.run(0.1)
    present = nodes.engines["H"].links._present
    assert {"A", "B", "C", "D", "E", "F"} == set(present)


def test_a_stranger_whose_accepted_entry_is_lost_for_ever_is_told_once() -> None:
    """SAM-03. It cannot close the gap: it let number 2 go when it was told that it was stable."""
    nodes = Carriers.with_group("DEF")
    nodes.send("G", "kept")
    nodes.run(0.5)
    nodes.lose((Order, Beat, Repair), "D>F E>F")
    nodes.send("G", "lost")
    nodes.run(0.01)
    assert 2 == nodes.user("G").accepted_upto
    nodes.die("D", "E")
    nodes.heal()
    nodes.run(6.0)
    nodes.forget_the_past()
    nodes.send("G", "again")
    nodes.run(3.0)
    assert len(nodes.messages(SubmitRefused)) < 5
    assert nodes.texts("F") == ["kept", "again"] or nodes.user("G").failures


def test_a_stranger_can_submit_to_a_group_that_is_old() -> None:
    """SAM-03. It gets the current number with the look-up; that is its logical timestamp."""
    nodes = Carriers.with_group("DEF", logical_lifetime=5)
    nodes.submit("E", *"abcdefgh")
    nodes.run(0.1)
    nodes.send("G", "x")
    nodes.run(1.0)
    assert ([], 1) == (nodes.user("G").failures, nodes.user("G").accepted_upto)


def test_a_stranger_that_joins_hears_the_group() -> None:
    """SAM-03, GS-06. What it did from outside must not take away the links of the member."""
    nodes = Carriers.with_group("DEF")
    nodes.send("G", "a", "b")
    nodes.run(0.1)
    user = nodes.join("G")
    nodes.run(1.0)
    nodes.submit("G", "c")
    nodes.run(0.1)
    assert ["c"] == user.texts
    assert ("G", "D") in nodes._listens


def test_a_strangers_second_submission_may_arrive_before_its_first() -> None:
    """B5, SAM-03. The first was lost on its way: that is a gap, which closes by sending again."""
    nodes = Carriers.with_group("DEF")
    nodes.send("G", "a")
    nodes.run(0.0035)  # looked up, asked where the stream stands, told
    nodes.lose(Submit, "G>D")
    nodes.run(0.005)
    nodes.heal()
    nodes.send("G", "b")
    nodes.run(2.0)
    assert ([], 2) == (nodes.user("G").failures, nodes.user("G").accepted_upto)
    assert ["a", "b"] == nodes.texts("E")


def test_what_a_stranger_is_told_is_stable_is_in_the_stream() -> None:
    """B1, K1. A number was used again, and a late copy of what had it before came in between."""
    nodes = Carriers.with_group("DEF")
    nodes.lose((Order, Beat, Repair), "D>F E>F")
    nodes.send("G", "lost")
    nodes.run(0.02)
    nodes.die("D", "E")
    nodes.heal()
    nodes.run(6.0)
    nodes.forget_the_past()
    nodes.send("G", "x")
    nodes.run(0.5)
    copies = [submit for submit in nodes.messages(Submit, "G", "F") if submit.bodies]
    nodes.send("G", "y")
    nodes.run(1.0)
    nodes.frame("G", "F", copies[0])
    nodes.send("G", "z")
    nodes.run(1.0)
    assert ["x", "y", "z"] == sorted(nodes.texts("F"))


def test_a_stranger_that_was_silent_for_a_lifetime_can_submit() -> None:
    """SAM-03. What it sends for the first time is not old."""
    nodes = Carriers.with_group("DEF", logical_lifetime=5)
    nodes.send("G", "a")
    nodes.run(0.2)
    nodes.submit("E", *"bcdefghijk")
    nodes.run(0.2)
    nodes.send("G", "l")
    nodes.run(1.0)
    assert ([], 2) == (nodes.user("G").failures, nodes.user("G").accepted_upto)
