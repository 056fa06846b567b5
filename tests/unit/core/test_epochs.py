"""Who may put what into whose log: entries of another epoch stay outside until their leader opens it."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Order, PeerMessage, Repair
from tests.unit.core.trio import Trio


def test_a_repair_from_a_higher_epoch_does_not_enter_a_log() -> None:
    """L1. C misses entry 7 of epoch 1. Before it is repaired, B takes over with epoch 2, and B cannot reach C.

    C asks A, which has opened epoch 2 already, and A answers from the log of epoch 2. Would C take that, its log
    of epoch 1 had entries (or a checkpoint) which epoch 1 never had, and C could not be opened any more.
    """
    trio = Trio.in_service(checkpoint_every=20, retention_margin=5)

    def gap(sender: str, receiver: str, message: PeerMessage) -> bool:
        return (sender, receiver) == ("A", "C") and isinstance(message, Order)

    def no_repair(sender: str, receiver: str, message: PeerMessage) -> bool:
        return receiver == "C" and isinstance(message, Repair)

    trio.loses = gap
    trio.set("A", "missed", "by C")
    trio.run(0.002)
    trio.loses = no_repair
    trio.set("A", "seen", "by C, beyond the gap")
    trio.run(0.05)
    trio.loses = lambda sender, receiver, message: (
        (sender, receiver) == ("B", "C") or no_repair(sender, receiver, message)
    )
    trio.hand_over("A", "B")
    trio.run(1.0)
    for number in range(57):
        trio.set("A", f"key-{number}", "in the new epoch")
        trio.run(0.01)
    assert ["B"] == trio.leaders
    log = trio.voter("C").server.log
    accepted, last = log.accepted, log.last
    assert accepted < trio.voter("A").server.log.accepted
    trio.loses = lambda sender, receiver, message: (sender, receiver) == ("B", "C")
    trio.forget_the_past()
    trio.run(3.0)
    assert any(repair.accepted > accepted for repair in trio.messages(Repair, "A", "C"))
    assert (accepted, last) == (log.accepted, log.last)
    trio.heal()
    trio.run(6.0)
    logs = [trio.voter(name).server for name in "ABC"]
    assert 1 == len({(server.log.accepted, server.log.last, server.delivered) for server in logs})
    assert 1 == len({trio.voter(name).directory.digest() for name in "ABC"})


def test_who_cannot_fetch_the_log_it_has_chosen_makes_room_for_another() -> None:
    """V7. B lacks what C has, and wins; C's answers do not get through to it. Everybody waits, but not for long."""
    trio = Trio.in_service()

    def past_b(sender: str, receiver: str, message: PeerMessage) -> bool:
        return receiver == "B" and isinstance(message, Order | Repair)

    trio.loses = past_b
    trio.set("A", "missed", "by B")
    trio.run(0.1)
    trio.kill("A")

    def has_left() -> bool:
        return any(line.op == "mark" and line.args["name"] == "recovery-stuck" for line in trio.journal)

    trio.run_until(has_left, within=4.0)
    assert [] == trio.leaders
    trio.heal()
    trio.run(2.0)
    assert ["C"] == trio.leaders
    assert "by B" == trio.voter("B").directory.config("missed").value
