"""A checkpoint is advertised once enough servers have it, and nothing is dropped before (SAM-05, SAM-07)."""

from __future__ import annotations

from groupsvcd.core.nodegroups.adverts import Adverts
from groupsvcd.core.peer_messages import Beat, CheckpointHeld, Left, Order, Repair
from groupsvcd.core.stream.checkpoints import NONE, Described

from .carriers import Carriers

X, Y, Z = Described(10, 5, 77), Described(20, 5, 88), Described(30, 6, 99)


def test_the_newest_that_enough_servers_have_is_advertised() -> None:
    adverts = Adverts()
    adverts.heard("A", (X, Y, Z))
    assert (Z, NONE) == (adverts.newest(1), adverts.newest(2))
    adverts.heard("B", (X, Y))
    adverts.heard("C", (X,))
    assert (Z, Y, X) == (adverts.newest(1), adverts.newest(2), adverts.newest(3))


def test_a_server_that_says_something_else_has_nothing_of_what_it_said_before() -> None:
    adverts = Adverts()
    adverts.heard("A", (X,))
    adverts.heard("B", (X,))
    adverts.heard("B", (Y,))
    assert NONE == adverts.newest(2)


def test_different_states_after_one_entry_do_not_add_up_and_are_told_once() -> None:
    """Somebody's machine depends on more than the entries."""
    adverts = Adverts()
    adverts.heard("A", (X,))
    adverts.heard("B", (Described(10, 5, 78),))
    assert NONE == adverts.newest(2)
    assert (10, ["A: 5 bytes, CRC 0000004d", "B: 5 bytes, CRC 0000004e"]) == adverts.dispute()
    assert adverts.dispute() is None


def _advertised(nodes: Carriers, name: str) -> int:
    return nodes.seat(name).replica.checkpoints.advertised.seq


def _base(nodes: Carriers, name: str) -> int:
    return nodes.seat(name).replica.log.base


def test_a_checkpoint_is_advertised_to_all_once_enough_servers_have_it() -> None:
    """G only receives, and drops what is behind it as the servers do."""
    nodes = Carriers.with_group("DEFG", parameters={"retention_margin": 2}, checkpoint_every=10)
    nodes.submit("E", *(f"{number}" for number in range(25)))
    nodes.run(1.5)
    at = nodes.seat("D").replica.log.last
    assert [at] * 4 == [_advertised(nodes, name) for name in "DEFG"]
    assert [at] * 4 == [_base(nodes, name) for name in "DEFG"]


def test_nothing_is_dropped_while_too_few_servers_report_theirs() -> None:
    """With ``checkpoint_k = 3`` D waits for E and F, whatever it has itself."""
    nodes = Carriers.with_group("DEF", checkpoint_k=3, checkpoint_every=10)
    before = [_base(nodes, name) for name in "DEF"]
    nodes.lose(CheckpointHeld, "F>D")
    nodes.submit("E", *(f"{number}" for number in range(50)))
    nodes.run(2.0)
    assert before == [_base(nodes, name) for name in "DEF"]
    assert 50 < nodes.seat("D").replica.log.checkpoint_seq
    nodes.heal()
    nodes.run(1.0)
    assert [nodes.seat("D").replica.log.last] * 3 == [_base(nodes, name) for name in "DEF"]


def test_a_group_says_how_many_servers_must_have_one() -> None:
    """``checkpoint_k = 1``: the leader's own is enough."""
    nodes = Carriers.with_group("DEF", checkpoint_k=1, checkpoint_every=10)
    nodes.lose(CheckpointHeld)
    nodes.submit("E", *(f"{number}" for number in range(50)))
    nodes.run(1.5)
    assert nodes.seat("D").replica.log.last == _advertised(nodes, "D") == _advertised(nodes, "F")


def test_a_history_that_is_full_is_dropped_behind_what_the_leader_has_alone() -> None:
    """X1. A server that never reports does not make the others keep everything for ever."""
    nodes = Carriers.with_group(
        "DEF", parameters={"retention_margin": 5}, checkpoint_k=3, checkpoint_every=10, history_entries_max=40
    )
    nodes.lose(CheckpointHeld, "F>D")
    for _ in range(10):
        nodes.submit("E", *(f"{number}" for number in range(20)))
        nodes.run(0.3)
    assert 80 > len(nodes.seat("D").replica.log.entries)
    assert 80 > len(nodes.seat("F").replica.log.entries)


def test_the_next_leader_goes_on_from_what_was_advertised() -> None:
    nodes = Carriers.with_group("DEF", checkpoint_every=10)
    nodes.submit("E", *(f"{number}" for number in range(25)))
    nodes.run(1.5)
    advertised = _advertised(nodes, "E")
    nodes.die("D")
    nodes.run(0.2)
    assert 20 < advertised == _advertised(nodes, "E")
    nodes.submit("E", *(f"{number}" for number in range(25)))
    nodes.run(2.0)
    assert advertised < _advertised(nodes, "E") == _advertised(nodes, "F")


def test_a_report_of_an_older_view_counts_for_nothing() -> None:
    nodes = Carriers.with_group("DEF")
    nodes.frame("E", "D", CheckpointHeld(nodes.id(), 1, ((900, 1, 1),)))
    nodes.frame("F", "D", CheckpointHeld(nodes.id(), 1, ((900, 1, 1),)))
    nodes.run(0.5)
    assert 900 != _advertised(nodes, "D")


def test_who_is_removed_in_the_middle_of_what_it_catches_up_with_delivers_no_more() -> None:
    """Taking a checkpoint tells users what was delivered, and that may be the end of it; the rest is not for them."""
    nodes = Carriers.with_group("DEFG", checkpoint_every=2)
    nodes.forget_the_past()
    nodes.lose((Order, Beat, Left), "D>G")
    nodes.submit("E", *"abc")
    nodes.leave("G")
    nodes.run(0.1)
    nodes.submit("E", *"defgh")
    nodes.run(0.1)
    assert "DEF" == nodes.user("E").names
    log, first = nodes.seat("E").replica.log, nodes.seat("G").replica.log.last + 1
    rest = tuple(log.between(first, log.last))
    nodes.frame("E", "G", Repair(nodes.id(), log.accepted, log.last, first, rest))
    lines = [line.op for line in nodes.journal if line.op in ("delivered", "group_lost") and line.node == "G"]
    assert ("group_lost", 1) == (lines[-1], lines.count("group_lost"))
    assert "delivered" in lines


def test_a_checkpoint_after_every_entry_does_not_end_a_group_that_is_being_formed() -> None:
    """After the first entry its view is there and nobody is a member yet; that is no removal."""
    nodes = Carriers.with_group("DE", checkpoint_every=1)
    nodes.submit("E", "a")
    nodes.run(0.5)
    assert (["leader", "server"], ["a"], []) == (nodes.roles("DE"), nodes.texts("D"), nodes.user("D").losses)
