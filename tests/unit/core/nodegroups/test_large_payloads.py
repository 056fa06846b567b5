"""Payloads that travel apart from their order: the leader gives numbers and does not carry them."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Data, DataAsk, DataHeld, Held, Order, Repair, Submit
from tests.unit.core.nodegroups.carriers import Carriers

LARGE = "x" * 1_000


def _nodes(carriers: str) -> Carriers:
    return Carriers.with_group(carriers, parameters={"inline_bytes_max": 64})


def _ordered(nodes: Carriers) -> int:
    """How many orders with something in them E was sent."""
    return len([one for one in nodes.messages(Order, "D", "E") if one.stream == nodes.id() and one.entries])


def test_a_large_payload_is_sent_once_by_its_origin_and_never_by_the_leader() -> None:
    """SAM-04. Its length and checksum go with the order."""
    nodes = _nodes("DEFG")
    nodes.submit("E", LARGE)
    nodes.run(0.2)
    assert [LARGE] * 4 == [nodes.texts(name)[0] for name in "DEFG"]
    assert ["D", "F", "G"] == sorted(line.receiver for line in nodes.sent if isinstance(line.message, Data))
    orders = [order for order in nodes.messages(Order, "D") if order.stream == nodes.id() and order.entries]
    assert all(len(entry) < 64 for order in orders for entry in order.entries)
    assert all(not isinstance(body, bytes) for submit in nodes.messages(Submit, "E", "D") for body in submit.bodies)


def test_it_gets_its_number_when_enough_servers_have_it() -> None:
    """SAM-05. Otherwise its sender might die, and an entry would stand in the log that nobody can read."""
    nodes = _nodes("DEF")
    nodes.lose(Data, "E>D E>F")
    nodes.submit("E", LARGE)
    nodes.run(0.2)
    assert [] == [order for order in nodes.messages(Order, "D") if order.stream == nodes.id() and order.entries]
    nodes.heal()
    nodes.run(3.0)
    assert [LARGE] == nodes.texts("F")


def test_what_is_submitted_after_a_large_payload_does_not_overtake_it() -> None:
    """B5. Small ones of the same sender wait behind it; others do not."""
    nodes = _nodes("DEF")
    nodes.lose(DataHeld, "E>D F>D")
    nodes.submit("E", LARGE, "after it")
    nodes.run(0.05)
    nodes.submit("F", "of somebody else")
    nodes.run(0.1)
    assert ["of somebody else"] == nodes.texts("F")
    nodes.heal()
    nodes.run(3.0)
    assert ["of somebody else", LARGE, "after it"] == nodes.texts("F")


def test_who_missed_the_payload_fetches_it_and_not_from_the_leader_first() -> None:
    """SAM-06. It has the entry, so it knows what it lacks."""
    nodes = _nodes("DEFG")
    nodes.lose(Data, "E>G")
    nodes.submit("E", LARGE)
    nodes.run(0.015)
    nodes.heal()
    nodes.run(1.0)
    assert [LARGE] == nodes.texts("G")
    assert "D" != next(line.receiver for line in nodes.sent if isinstance(line.message, DataAsk))


def test_a_payload_whose_sender_died_before_it_was_numbered_is_forgotten() -> None:
    """GS-08. Nobody keeps what will never stand in the stream."""
    nodes = _nodes("DEF")
    nodes.lose(Submit, "F>D")
    nodes.submit("F", LARGE)
    nodes.run(0.05)
    assert 1 == len(nodes.seat("D").replica.library.payloads)
    nodes.die("F")
    nodes.heal()
    nodes.run(1.0)
    assert [0, 0] == [len(nodes.seat(name).replica.library.payloads) for name in "DE"]
    assert [] == nodes.texts("E")


def test_nothing_stands_in_line_for_who_has_left_and_its_numbers_go_on_when_it_comes_back() -> None:
    """B2, X1. G leaves while its payload waits for a number: nobody waits for it, and nobody waits behind it later."""
    nodes = _nodes("DEFG")
    nodes.lose(Data, "G>D G>E G>F")
    nodes.submit("G", LARGE, "after it")
    nodes.run(0.05)
    leading = nodes.seat("D").leading
    assert leading is not None
    assert [nodes.node("G")] == list(leading._waiting)
    nodes.leave("G")
    nodes.run(0.5)
    assert ("none", []) == (nodes.roles("G")[0], list(leading._waiting))
    assert 0 == nodes.engines["G"].groups._submitters.outstanding(nodes.id())
    nodes.heal()
    nodes.join("G")
    nodes.run(0.5)
    assert 3 == nodes.submit("G", LARGE)
    nodes.run(0.5)
    assert [LARGE] == nodes.texts("D")


def test_a_payload_that_was_given_up_is_dropped_when_its_origin_comes_back() -> None:
    """X1. E alone has it; G's insertion tells up to where nothing more of G is to be expected."""
    nodes = _nodes("DEFG")
    nodes.lose(Data, "G>D G>F")
    nodes.submit("G", LARGE)
    nodes.run(0.05)
    assert 1 == len(nodes.seat("E").replica.library.payloads.unordered)
    nodes.leave("G")
    nodes.run(0.5)
    nodes.heal()
    nodes.join("G")
    nodes.run(0.5)
    assert () == nodes.seat("E").replica.library.payloads.unordered
    assert {} == nodes.leading("D")._data_held


def test_who_gives_up_a_payload_from_outside_is_heard_again() -> None:
    """B2, X1. The leader has it in line and never gets it; what G sends next says that it is settled."""
    nodes = _nodes("DEF")
    nodes.lose(Data, "G>D G>E G>F")
    nodes.send("G", LARGE)
    nodes.run(0.5)
    leading = nodes.seat("D").leading
    assert leading is not None
    assert [nodes.node("G")] == list(leading._waiting)
    nodes.act("G", lambda groups: groups._outsiders["jobs"].give_up("nobody waits for it"))
    assert 0 == nodes.engines["G"].groups._submitters.outstanding(nodes.id())
    nodes.send("G", "small")
    nodes.run(1.0)
    assert ["small"] == nodes.texts("D")
    assert ({}, 2) == (leading._waiting, nodes.user("G").accepted_upto)


def test_the_next_leader_numbers_a_payload_that_the_last_one_did_not() -> None:
    """SAM-10. The servers tell it which ones wait; its sender submits it again."""
    nodes = _nodes("DEF")
    nodes.lose(Submit, "F>D")
    nodes.submit("F", LARGE)
    nodes.run(0.05)
    nodes.die("D")
    nodes.heal()
    nodes.run(1.5)
    assert [LARGE] == nodes.texts("E") == nodes.texts("F")


def test_what_is_stable_can_be_read_by_whoever_takes_over() -> None:
    """L4. F held the order and not the payload, so it did not count; E has both, and F fetches it."""
    nodes = _nodes("DEF")
    nodes.lose((Data, DataAsk), "E>F D>F F>E F>D")
    nodes.submit("D", LARGE)
    nodes.run(0.02)
    assert ([LARGE], []) == (nodes.texts("E"), nodes.texts("F"))
    nodes.die("D")
    nodes.heal()
    nodes.run(1.5)
    assert [LARGE] == nodes.texts("F")


def test_who_lacks_a_payload_that_is_kept_nowhere_has_lost_the_group() -> None:
    """GS-12, SAM-08. It has the entry that refers to it, so it never asks for the checkpoint, and waits for ever."""
    nodes = Carriers(inline_bytes_max=64)
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.assemble("DEFG", history_entries_max=10)
    nodes.run(1.0)
    nodes.lose(Data, "D>G E>G F>G")
    nodes.submit("E", "x" * 1_000)
    nodes.run(0.2)
    nodes.submit("E", *(f"{i}" for i in range(30)))
    nodes.run(2.0)
    nodes.heal()
    nodes.run(10.0)
    assert ["lagged: entries that were not delivered here are no longer kept"] == nodes.user("G").losses


def test_payloads_of_a_stranger_that_died_before_they_were_numbered_are_dropped() -> None:
    """X1. It was never in the stream, so only what the servers report tells of it; its failure is ordered once."""
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 8})
    nodes.lose(Submit)
    data = Data(nodes.id(), *nodes.node("G"), 1, b"a large one")
    for name in "DEF":
        nodes.frame("G", name, data)
    nodes.run(0.5)
    assert all(nodes.seat(name).replica.library.payloads.unordered for name in "DEF")
    nodes.die("G")
    nodes.run(2.0)
    assert not any(nodes.seat(name).replica.library.payloads.unordered for name in "DEF")
    lists = [line for line in nodes.journal if (line.node, line.op) == ("D", "members")]
    assert 1 == len(lists)


def test_a_number_is_given_when_data_k_servers_have_it_and_it_is_delivered_when_commit_k_do() -> None:
    """SAM-05. Different k: with data_k = 1 the sender's own copy is enough for a number, and not to deliver."""
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 64}, data_k=1, commit_k=2)
    nodes.lose(Data, "E>D E>F")
    nodes.submit("E", LARGE)
    nodes.run(0.2)
    assert 1 == _ordered(nodes)
    assert [[], [], []] == [nodes.texts(name) for name in "DEF"]
    nodes.heal()
    nodes.run(0.5)
    assert [[LARGE]] * 3 == [nodes.texts(name) for name in "DEF"]


def test_a_number_may_need_more_copies_than_the_order_does() -> None:
    """SAM-05. With data_k = 3 all three must have the payload; small messages go on with commit_k = 2."""
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 64}, data_k=3, commit_k=2)
    nodes.lose(Data, "E>F D>F")
    nodes.submit("E", LARGE)
    nodes.run(0.1)
    assert 0 == _ordered(nodes)
    nodes.lose(Held, "F>D")
    nodes.submit("D", "small")
    nodes.run(0.1)
    assert [["small"]] * 2 == [nodes.texts(name) for name in "DE"]
    nodes.heal()
    nodes.run(3.0)
    assert [["small", LARGE]] * 3 == [nodes.texts(name) for name in "DEF"]


def test_a_payload_that_is_here_is_not_sent_again_because_its_number_was_lost() -> None:
    """SAM-06. G has the bytes and asks for the entry alone; that brings a few bytes that say which payload it is."""
    nodes = _nodes("DEFG")
    nodes.lose(Order, "D>G")
    nodes.submit("E", LARGE)
    nodes.run(0.01)
    nodes.heal()
    nodes.submit("E", "shows the gap")
    nodes.run(1.0)
    assert [LARGE, "shows the gap"] == nodes.texts("G")
    repairs = nodes.messages(Repair, "", "G")
    assert [1] == [len(repair.entries) for repair in repairs]
    assert all(len(entry) < 64 for repair in repairs for entry in repair.entries)
    assert ([], 1) == (nodes.messages(DataAsk), len(nodes.messages(Data, "", "G")))


def test_all_payloads_that_are_missing_are_asked_for_in_one_question() -> None:
    """SAM-06. Five of them, of two senders; each is sent once."""
    nodes = _nodes("DEFG")
    nodes.lose(Data, "E>G F>G")
    nodes.submit("E", *(f"{number} {LARGE}" for number in range(3)))
    nodes.submit("F", *(f"{number} {LARGE}" for number in range(2)))
    nodes.run(0.01)
    nodes.heal()
    nodes.forget_the_past()
    nodes.run(1.0)
    assert 5 == len(nodes.texts("G"))
    assert nodes.texts("D") == nodes.texts("G")
    assert [5] == [len(set(ask.payloads)) for ask in nodes.messages(DataAsk)]
    assert 5 == len(nodes.messages(Data))
