"""With k = 2 a server that holds what its leader holds knows that it is stable, and needs not be told."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Beat, Data, Held, Order
from groupsvcd.core.stream.server import HELD_PATIENCE_ORDERS
from tests.unit.core.nodegroups.carriers import Carriers

ONE_WAY_S = 0.001


def _hops(number: int) -> float:
    """So many messages one after the other, and a little."""
    return number * ONE_WAY_S + ONE_WAY_S / 2


def test_a_server_delivers_with_the_order_and_the_leader_with_the_first_held() -> None:
    """SAM-05. E submits: to D, from D, and E and F have it delivered; D when one of them has answered."""
    nodes = Carriers.with_group("DEF")
    nodes.submit("E", "a")
    nodes.run(_hops(2))
    assert [[], ["a"], ["a"]] == [nodes.texts(name) for name in "DEF"]
    nodes.run(_hops(1))
    assert ["a"] == nodes.texts("D")


def test_nobody_is_told_what_everybody_knows() -> None:
    """Servers alone: the leader says nothing more, until there is something new."""
    nodes = Carriers.with_group("DEF")
    nodes.submit("E", "a")
    nodes.run(0.05)
    orders = [order for order in nodes.messages(Order, "D", "E") if order.stream == nodes.id()]
    assert [1] == [len(order.entries) for order in orders]


def test_a_receiver_waits_for_the_leader_to_say_that_it_is_stable() -> None:
    """It holds nothing for anybody, so what it has got proves nothing."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose(Held)
    nodes.submit("D", "a")
    nodes.run(0.05)
    assert [[], ["a"], ["a"], []] == [nodes.texts(name) for name in "DEFG"]
    nodes.heal()
    nodes.run(0.5)
    assert [["a"]] * 4 == [nodes.texts(name) for name in "DEFG"]


def test_where_three_must_hold_it_two_do_not_deliver() -> None:
    """SAM-05: the second of three knows of itself and the leader alone."""
    nodes = Carriers.with_group("DEF", commit_k=3)
    nodes.lose(Order, "D>F")
    nodes.lose(Beat, "D>F")
    nodes.submit("E", "a")
    nodes.run(0.2)
    assert [[], [], []] == [nodes.texts(name) for name in "DEF"]
    nodes.heal()
    nodes.run(1.0)
    assert [["a"]] * 3 == [nodes.texts(name) for name in "DEF"]


def test_a_leader_that_lacks_a_payload_does_not_count() -> None:
    """SAM-04, SAM-05. E and F have it, so D numbers it. They are told when D has it, too, not with the next beat."""
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 64})
    large = "x" * 1_000
    nodes.lose(Data, "E>D F>D")
    nodes.submit("E", large)
    nodes.run(0.015)
    orders = [order for order in nodes.messages(Order, "D", "F") if order.stream == nodes.id() and order.entries]
    assert [True] == [order.nearly < order.first_seq for order in orders]
    assert [[], [], []] == [nodes.texts(name) for name in "DEF"]
    nodes.heal()
    nodes.run(0.06)
    assert [[large]] * 3 == [nodes.texts(name) for name in "DEF"]


def test_what_two_delivered_survives_the_leader_that_never_knew() -> None:
    """L4, B3. D dies before any Held arrives; E and F have delivered, and so has everybody in the next view."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose(Held)
    nodes.submit("E", "a")
    nodes.run(_hops(2))
    assert [["a"], ["a"]] == [nodes.texts(name) for name in "EF"]
    nodes.die("D")
    nodes.heal()
    nodes.run(1.0)
    assert [["a"]] * 3 == [nodes.texts(name) for name in "EFG"]


def test_a_word_of_an_older_epoch_makes_nothing_stable_in_a_newer_one() -> None:
    """B4. The old leader held it; in the log of the next view there may be something else under that number."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Order, "D>E D>F")
    nodes.submit("D", "only D has it")
    nodes.run(0.01)
    late = [order for order in nodes.messages(Order, "D", "E") if order.stream == nodes.id() and order.entries][-1]
    nodes.die("D")
    nodes.heal()
    nodes.run(1.0)
    nodes.lose(Order, "E>F")
    nodes.submit("E", "new")
    nodes.frame("E", "F", late)
    nodes.run(0.01)
    assert [] == nodes.texts("F")
    nodes.heal()
    nodes.run(1.0)
    assert [["new"]] * 2 == [nodes.texts(name) for name in "EF"]


def test_a_server_whose_word_is_not_needed_keeps_it_for_a_while() -> None:
    """E submits and says Held with it; F's would only wake the leader. Both deliver at once all the same."""
    nodes = Carriers.with_group("DEF")
    nodes.run(1.0)
    nodes.forget_the_past()
    nodes.submit("E", "a")
    nodes.run(0.004)
    assert ["a"] == nodes.texts("D") == nodes.texts("E") == nodes.texts("F")
    last = nodes.seat("D").replica.log.last
    assert last in [held.upto for held in nodes.messages(Held, "E")]
    assert last not in [held.upto for held in nodes.messages(Held, "F")]
    nodes.run(0.02)
    assert last in [held.upto for held in nodes.messages(Held, "F")]


def test_if_the_one_that_was_needed_is_silent_the_other_is_not_waited_for_long() -> None:
    """SAM-05: the k fastest. E has submitted and is not heard any more; F speaks up a moment later."""
    nodes = Carriers.with_group("DEF")
    nodes.run(1.0)
    nodes.lose(Held, "E>D")
    nodes.submit("E", "a")
    nodes.run(0.02)
    assert ["a"] == nodes.texts("D")


def test_under_load_it_speaks_after_a_few_orders() -> None:
    """So that what all have can be dropped."""
    nodes = Carriers.with_group("DEF")
    nodes.run(1.0)
    nodes.forget_the_past()
    for number in range(3 * HELD_PATIENCE_ORDERS):
        nodes.submit("E", str(number))
        nodes.run(0.003)
    spoken = [held for held in nodes.messages(Held, "F") if held.stream == nodes.id()]
    assert 3 <= len(spoken) <= 3 * HELD_PATIENCE_ORDERS // 2


def test_what_the_leader_or_a_stranger_submits_is_answered_at_once() -> None:
    """Nobody else's word is on its way then."""
    nodes = Carriers.with_group("DEF")
    nodes.run(1.0)
    for node in "DG":
        nodes.forget_the_past()
        if node == "D":
            nodes.submit("D", "a")
        else:
            nodes.send("G", "b")
            nodes.run_until(lambda: "b" in nodes.texts("E"))
        nodes.run(0.004)
        last = nodes.seat("D").replica.log.last
        assert all(last in [held.upto for held in nodes.messages(Held, name)] for name in "EF")
