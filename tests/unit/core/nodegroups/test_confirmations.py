"""What a user can wait to hear: that its entry is held by k, seen by all, and that it has been given everything."""

from __future__ import annotations

import pytest

from groupsvcd.core.nodegroups.confirmations import ASKED_FOR_OTHERS_MAX
from groupsvcd.core.nodegroups.rounds import Asked, Rounds
from groupsvcd.core.peer_messages import Beat, Claim, Held, Order, Repair, SyncAsk, Synced
from groupsvcd.core.views import View
from tests.unit.core.nodegroups.carriers import GROUP, Carriers


def _submit_and_wait(nodes: Carriers, name: str, text: str) -> tuple[list[float], list[float]]:
    """Submits; returns when it was told that k hold it, and that all have seen it."""
    held: list[float] = []
    seen: list[float] = []

    def act(groups: object) -> None:
        user, groups = nodes.user(name), nodes.engines[name].groups
        n = groups.submit(GROUP, [text.encode()])
        assert groups.when_held(GROUP, user, n, lambda seq: held.append(nodes.now))
        assert groups.when_seen(GROUP, user, n, lambda seq: seen.append(nodes.now))

    nodes.act(name, act)
    return held, seen


def _sync(nodes: Carriers, name: str) -> list[int]:
    """Asks; returns up to where it was told that it has everything."""
    told: list[int] = []
    nodes.act(name, lambda groups: groups.sync(GROUP, nodes.user(name), told.append) and None)
    return told


# --- Held, seen ---


def test_a_submission_that_somebody_waits_for_is_acknowledged_at_once() -> None:
    """GS-14: in a fast group the order that carries it asks all for an answer, and the stable number is told."""
    nodes = Carriers.with_group("DEFG", delivery="fast")
    began = nodes.now
    held, seen = _submit_and_wait(nodes, "G", "important")
    nodes.run(0.0025)
    assert (["important"], []) == (nodes.texts("G"), held)
    nodes.run(1.0)
    assert [True] == [order.ack for order in nodes.messages(Order, "D", "G") if order.entries]
    assert 1 == len(held) == len(seen)
    assert held[0] - began < 0.01
    assert held[0] < seen[0] < began + 0.6


def test_nobody_is_told_that_k_hold_what_they_do_not() -> None:
    """S1: the answers of E and F are lost."""
    nodes = Carriers.with_group("DEFG", delivery="fast")
    nodes.lose(Held)
    held, seen = _submit_and_wait(nodes, "G", "important")
    nodes.run(0.8)
    assert (["important"], [], []) == (nodes.texts("G"), held, seen)
    nodes.heal()
    nodes.run(1.0)
    assert 1 == len(held) == len(seen)


def test_nobody_is_told_that_all_have_seen_what_one_has_not() -> None:
    """GS-12: G gets nothing for a while."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose((Order, Beat, Repair), "D>G E>G F>G")
    held, seen = _submit_and_wait(nodes, "E", "for all")
    nodes.run(1.0)
    assert (1, 0) == (len(held), len(seen))
    nodes.heal()
    nodes.run(1.0)
    assert 1 == len(seen)


def test_what_is_held_survives_the_leader() -> None:
    """L4: G was told so, and then D dies, and with it all who had delivered the entry but E."""
    nodes = Carriers.with_group("DEF", delivery="fast")
    held, _ = _submit_and_wait(nodes, "D", "important")
    nodes.run(0.01)
    assert 1 == len(held)
    nodes.die("D")
    nodes.run(0.5)
    assert [["important"]] * 2 == [nodes.texts(name) for name in "EF"]


# --- Sync ---


def test_who_is_told_that_it_has_everything_has_it() -> None:
    """K2: G has missed an entry that the others have delivered before it asks."""
    for delivery in ("safe", "fast"):
        nodes = Carriers.with_group("DEFG", delivery=delivery)
        nodes.lose(Order, "D>G")
        nodes.submit("E", "missed")
        nodes.run(0.01)
        nodes.heal()
        assert (["missed"], []) == (nodes.texts("F"), nodes.texts("G"))
        told = _sync(nodes, "G")
        nodes.run(0.01)
        assert [] == told
        nodes.run(0.5)
        assert ["missed"] == nodes.texts("G")
        assert [nodes.about("D").delivered] == told  # type: ignore[union-attr]


def test_a_leader_answers_only_when_its_servers_have_answered() -> None:
    """DESIGN 8: a lease alone is never enough. Held that were on their way before do not count either."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose(Beat, "D>E D>F")
    told = _sync(nodes, "G")
    nodes.run(0.002)
    epoch, last = nodes.record().active.epoch, nodes.about("D").last  # type: ignore[union-attr]
    nodes.frame("E", "D", Held(nodes.id(), epoch, last, last))
    nodes.run(0.2)
    assert ([], []) == (told, nodes.messages(Synced))
    nodes.heal()
    nodes.run(0.5)
    assert 1 == len(told)


def test_a_leader_that_was_replaced_without_knowing_it_answers_nobody() -> None:
    """K2, L5: E and F have promised somebody else, and what was ordered since then D has never heard of."""
    nodes = Carriers.with_group("DEFG")
    view = View(10_000, "E", (nodes.node("E"), nodes.node("F")), 2)
    for name in "EF":
        nodes.frame("E" if name == "F" else "F", name, Claim(nodes.id(), 10_000, view=view))
    nodes.loses = lambda sender, receiver, message: receiver == "D" and sender in "EF"
    told = _sync(nodes, "G")
    nodes.run(0.5)
    assert ([], []) == (told, nodes.messages(Synced))


def test_a_question_is_asked_anew_when_another_leads() -> None:
    """Whatever the old leader knew, the new one answers."""
    nodes = Carriers.with_group("DEFG", delivery="fast")
    nodes.lose(Synced)
    told = _sync(nodes, "G")
    nodes.run(0.05)
    nodes.die("D")
    nodes.heal()
    nodes.run(1.0)
    assert 1 == len(told)
    answered = [line for line in nodes.sent if isinstance(line.message, Synced) and line.receiver == "G"]
    assert ["D", "E"] == list(dict.fromkeys(line.sender for line in answered))


def test_the_leader_asks_like_everybody_else() -> None:
    """Its own word is not enough."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Beat)
    told = _sync(nodes, "D")
    nodes.run(0.1)
    assert [] == told
    nodes.heal()
    nodes.run(0.5)
    assert 1 == len(told)


def test_the_only_member_has_everything() -> None:
    """k is 1, and that one is here."""
    nodes = Carriers.with_group("D")
    assert [nodes.about("D").delivered] == _sync(nodes, "D")  # type: ignore[union-attr]


def test_who_has_left_is_told_nothing_more() -> None:
    """K1: another user on the same node stays."""
    nodes = Carriers.with_group("DEFG")
    first = nodes.user("G")
    nodes.join("G")
    told: list[int] = []
    nodes.act("G", lambda groups: groups.sync(GROUP, first, told.append) and None)
    nodes.act("G", lambda groups: groups.leave(GROUP, first))
    nodes.run(0.5)
    assert (["left"], []) == (first.losses, told)


def test_nobody_can_ask_about_a_group_that_is_not_carried() -> None:
    """There is nothing to be confirmed."""
    nodes = Carriers.with_group("DEF")
    answers: list[bool] = []
    nodes.act("G", lambda groups: answers.append(groups.sync(GROUP, nodes.user("D"), lambda seq: None)))
    assert [False] == answers


# --- Rounds ---


def test_a_question_is_answered_by_a_round_that_began_after_it() -> None:
    """A question that comes while a round is under way waits for the next one; one round answers all who wait."""
    begun: list[int] = []
    rounds = Rounds(2, begun.append)
    rounds.ask(Asked(("B", 1), 1, 10))
    rounds.start()
    rounds.ask(Asked(("C", 1), 1, 11))
    rounds.ask(Asked(("D", 1), 1, 12))
    rounds.start()
    assert [1] == begun
    rounds.answered("A", 1)
    rounds.answered("A", 1)
    assert [] == rounds.confirmed(20)
    rounds.answered("B", 1)
    assert ["B"] == [asked.node[0] for asked in rounds.confirmed(20)]
    rounds.start()
    rounds.answered("B", 1)  # late, of the first round
    rounds.answered("A", 2)
    assert [] == rounds.confirmed(20)
    rounds.answered("C", 2)
    assert ["C"] == [asked.node[0] for asked in rounds.confirmed(11)]
    assert ["D"] == [asked.node[0] for asked in rounds.confirmed(12)]
    assert ([1, 2], False) == (begun, rounds.has_any)


# --- By way of a server ---


@pytest.mark.parametrize("delivery", ["safe", "fast"])
def test_who_does_not_reach_the_leader_asks_through_a_server(delivery: str) -> None:
    """K2. G and D do not hear each other; what was ordered before G asked is given to G before it is told so."""
    nodes = Carriers.with_group("DEFG", delivery=delivery)
    nodes.cut("D", "G")
    nodes.submit("E", "a")
    nodes.run(0.1)
    told = _sync(nodes, "G")
    nodes.run(1.5)
    assert (1, ["a"]) == (len(told), nodes.texts("G"))
    assert told[0] >= nodes.seat("E").replica.delivered - 1


def test_a_server_asks_for_others_no_more_than_it_can_keep_and_each_once() -> None:
    nodes = Carriers.with_group("DEFG")
    nodes.lose(Synced, "D>E")
    group = nodes.id()
    asks = [SyncAsk(group, number) for number in range(1, ASKED_FOR_OTHERS_MAX + 10)]
    nodes.frame("G", "E", *asks, *asks)
    nodes.run(5.0)
    confirmations = nodes.part("E").confirmations
    assert confirmations is not None
    assert ASKED_FOR_OTHERS_MAX == len(confirmations._questions)
    assert [] == nodes.messages(SyncAsk, "E", "F"), "what was asked for others goes to the leader alone"
    nodes.loses = lambda sender, receiver, message: False
    nodes.run(3.0)
    assert [*range(1, ASKED_FOR_OTHERS_MAX + 1)] == [synced.number for synced in nodes.messages(Synced, "E", "G")]
    assert [] == confirmations._questions


def test_a_server_asks_for_members_only_and_a_receiver_for_nobody() -> None:
    nodes = Carriers.with_group("DEFG", "DEFGH")
    nodes.frame("H", "E", SyncAsk(nodes.id(), 1))
    nodes.frame("E", "G", SyncAsk(nodes.id(), 1))
    nodes.run(1.0)
    assert [None, None] == [nodes.part(name).confirmations for name in "EG"]


def test_what_a_server_was_asked_before_another_view_began_is_asked_again() -> None:
    """L4. D answers E, and dies with what it had ordered; F leads."""
    nodes = Carriers.with_group("DEFG")
    nodes.cut("D", "G")
    told = _sync(nodes, "G")
    nodes.lose(Synced, "D>E D>F")
    nodes.run(0.9)
    nodes.die("D")
    nodes.run(3.0)
    assert 1 == len(told)
