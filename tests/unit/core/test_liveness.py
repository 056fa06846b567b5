"""Who is declared down, and who is not: refused ports, restarts, and disks that hang."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Alive, AliveAck, Held, Order, PeerMessage, Repair
from tests.unit.core.trio import Trio


def test_a_restarted_node_is_not_declared_down_for_its_predecessors_refusal() -> None:
    """L6. D dies, everybody's connection to it is refused, and D is back at once.

    A port that refused a moment ago proves that the old process is gone; it proves nothing about the new one.
    """
    trio = Trio.in_service(others="D")
    old = trio.engines["D"].incarnation
    trio.kill("D")
    trio.refuse("D", "A", "B", "C")
    trio.run(0.3)
    trio.boot("D")
    trio.run(4.0)
    downs = [line.args for line in trio.lines("node_down")]
    assert [("D", old)] == [(args["name"], args["inc"]) for args in downs]
    assert not trio.status("D").suspended
    assert [] == trio.lines("down_learned")


def test_a_refusal_that_arrives_after_the_restart_counts_for_nobody() -> None:
    """L6. D is back before anybody noticed; the Suspect of B names the incarnation that B knew."""
    trio = Trio.in_service(others="D")
    trio.kill("D")
    trio.refuse("D", "A")
    trio.boot("D")
    trio.run(0.6)
    trio.refuse("D", "B")
    trio.run(3.0)
    assert not trio.status("D").suspended
    assert [] == [line for line in trio.lines("node_down") if line.args["inc"] == trio.engines["D"].incarnation]


def test_one_observer_alone_declares_nobody_down_early() -> None:
    """A firewall between A and D looks like a dead process to A alone."""
    trio = Trio.in_service(others="D")
    for _ in range(20):
        trio.refuse("D", "A")
        trio.run(0.1)
    assert [] == trio.lines("node_down")


def test_two_observers_declare_a_dead_node_down_early() -> None:
    """Long before its lease has run out (GS-07)."""
    trio = Trio.in_service(others="D")
    trio.kill("D")
    trio.refuse("D", "A", "B")
    trio.run(0.1)
    assert [True] == [line.args["early"] for line in trio.lines("node_down")]


def test_a_follower_with_a_hung_disk_stops_taking_orders_and_its_writes_stay_bounded() -> None:
    """L9. C's disk hangs for five seconds under a steady load.

    Whatever C takes, it keeps in memory until it is written; what it does not take now is repaired later.
    """
    trio = Trio.in_service()
    trio.hang_disk("C")
    for number in range(100):
        trio.set("A", f"key-{number % 3}", "value")
        trio.run(0.01)
    trio.run(0.2)
    after_a_second = len(trio.waiting_writes["C"])
    last = trio.voter("C").server.log.last
    for number in range(400):
        trio.set("A", f"key-{number % 3}", "value")
        trio.run(0.01)
    assert len(trio.waiting_writes["C"]) <= after_a_second + 10
    assert last == trio.voter("C").server.log.last
    assert ["A"] == trio.leaders
    trio.mend_disk("C")
    trio.run(4.0)
    a, c = trio.voter("A"), trio.voter("C")
    assert a.server.log.last == c.server.log.last
    assert a.directory.digest() == c.directory.digest()


def test_what_waits_for_the_disk_is_not_held() -> None:
    """C's Held leaves when its copy is safe, never before."""
    trio = Trio.in_service()
    trio.hang_disk("C")
    safe = trio.voter("C").server.log.last
    trio.set("A", "color", "red")
    trio.run(0.9)
    assert trio.voter("C").server.log.last > safe
    assert all(held.upto <= safe for held in trio.messages(Held, "C"))


def test_a_name_server_with_a_hung_disk_falls_silent_and_another_takes_over() -> None:
    """A cannot write, so it can order nothing; holding on to the office would stop everybody."""
    trio = Trio.in_service()
    trio.hang_disk("A")
    trio.set("A", "color", "red")
    trio.run(6.0)
    assert "A" not in trio.leaders
    assert 1 == len(trio.leaders)
    trio.mend_disk("A")
    trio.run(4.0)
    assert 1 == len({trio.voter(name).directory.digest() for name in "ABC"})


def test_the_only_voter_that_cannot_write_declares_nobody_down() -> None:
    """S4. A's disk is full for ten seconds: it calls nobody meanwhile, so nobody can be blamed for not answering."""
    trio = Trio.in_service("A", "BC")
    trio.hang_disk("A")
    trio.set("B", "color", "red")
    trio.run(10.0)
    assert trio.engines["B"].member.isolated
    trio.mend_disk("A")
    trio.run(2.0)
    assert [] == trio.lines("node_down")
    assert not trio.engines["B"].member.isolated


def test_who_is_about_to_be_declared_down_is_given_no_lease() -> None:
    """K2. D was silent for too long, and A has ordered that it is down; nobody holds that yet when D answers again.

    Whoever leads next may find the entry, and then D is down for all, though it believed otherwise by its own clock.
    """
    trio = Trio.in_service(others="D")
    (leader,) = trio.leaders
    is_away = True

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        return (is_away and "D" in (sender, receiver)) or isinstance(message, Order | Repair)

    trio.loses = loses
    trio.forget_the_past()
    trio.run_until(lambda: bool(trio.lines("ordered")))
    is_away = False
    trio.forget_the_past()
    trio.run(0.6)
    assert trio.messages(Alive, "D", leader), "D does answer its calls"
    assert [] == trio.messages(AliveAck, leader, "D")
    trio.loses = lambda sender, receiver, message: False
    trio.run(3.0)
    assert trio.messages(AliveAck, leader, "D"), "it has come back as another"


def test_who_is_silent_is_declared_down_the_moment_it_is_due() -> None:
    """Not at the next look: D's last answer is heard at any moment between two looks, and nobody waits for the next."""
    for wait in (0.01, 0.06, 0.11, 0.16):
        trio = Trio.in_service(others="D")
        (leader,) = trio.leaders
        trio.run(wait)
        trio.forget_the_past()
        trio.run_until(lambda trio=trio, leader=leader: bool(trio.messages(Alive, "D", leader)))
        trio.run(0.01)  # it arrives
        heard = trio.now
        trio.kill("D")
        trio.run_until(lambda trio=trio: bool(trio.lines("node_down")))
        timers = trio.engines[leader].parameters.timers
        assert trio.now - heard < timers.lease + timers.margin + 0.01
