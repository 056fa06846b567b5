"""Who takes over the log of one that began later keeps what it has itself: it is the same, and others may need it."""

from __future__ import annotations

import pytest

from groupsvcd.core.peer_messages import Beat, Open, Order, PeerMessage, Repair, Seen
from tests.unit.core.nodegroups.carriers import Carriers


@pytest.mark.parametrize("large", [False, True])
def test_who_leads_with_the_log_of_a_newcomer_gives_its_users_what_it_has_itself(large: bool) -> None:
    """B3, GS-12. E held all that came before G, was not told that it is stable, and missed the view with G."""
    nodes = Carriers.with_group("DEH", others="DEFGH", replicas=4, commit_k=3, inline_bytes_max=16 if large else 1024)
    b = "b" * (100 if large else 1)
    nodes.submit("D", "a")
    nodes.run(0.5)

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        is_word_of_stable = isinstance(message, Order) and not message.entries
        return (sender, receiver) == ("D", "E") and (is_word_of_stable or isinstance(message, Beat | Open))

    nodes.loses = loses
    nodes.submit("D", b)
    nodes.join("G")
    nodes.run_until(lambda: ["leader", "server", "server"] == nodes.roles("DHG"))
    nodes.submit("D", "c")
    nodes.run(0.1)
    ours, newcomers = nodes.seat("E").replica, nodes.seat("G").replica
    assert ours.stable < newcomers.log.base == ours.log.last
    nodes.die("D", "H")
    nodes.run(6.0)
    assert ["leader", "server"] == nodes.roles("EG")
    nodes.submit("G", "d")
    nodes.run(0.5)
    assert (["a", b, "c", "d"], []) == (nodes.texts("E"), nodes.user("E").losses)
    assert (["c", "d"], []) == (nodes.texts("G"), nodes.user("G").losses)


def test_a_disk_that_comes_back_keeps_for_others_what_a_newcomer_has_not() -> None:
    """B3, GS-12. F is cut off; D holds what it lacks; E, which came after that, leads while D is away."""
    nodes = Carriers.with_group("D", replicas=2, durable=True)
    nodes.loses = lambda sender, receiver, message: isinstance(message, Seen) and sender == "F"
    nodes.join("F")
    nodes.run(0.5)
    nodes.cut("F", "D", "E", "G")
    nodes.submit("D", *"abc")
    nodes.run(0.1)
    nodes.join("E")
    nodes.run_until(lambda: ["leader", "server", "receiver"] == nodes.roles("DEF"))
    lacking = nodes.seat("F").replica.log.last + 1
    assert lacking < nodes.seat("E").replica.log.base
    nodes.kill("D")
    nodes.run_until(lambda: ["leader"] == nodes.roles("E"), 10.0)
    nodes.boot("D")
    nodes.run_until(lambda: ["E", "D"] == [name for name, _ in nodes.record().active.servers], 10.0)
    assert nodes.seat("D").replica.log.base < lacking
    nodes.heal()
    nodes.submit("E", "d")
    nodes.run(5.0)
    assert ([*"abcd"], []) == (nodes.texts("F"), nodes.user("F").losses)


def test_who_follows_a_newcomer_gives_its_users_what_it_had_itself() -> None:
    """B3, GS-12. F has all that came before E, and was not told that the last of it is stable when D died."""
    nodes = Carriers.with_group("D", replicas=2)

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        is_word_of_stable = isinstance(message, Order) and not message.entries
        is_lost = isinstance(message, Beat | Repair) or is_word_of_stable
        return (sender == "F" and isinstance(message, Seen)) or ((sender, receiver) == ("D", "F") and is_lost)

    nodes.lose(Seen, "F>D")
    nodes.join("F")
    nodes.run(0.3)
    nodes.loses = loses
    nodes.submit("D", "a")
    nodes.join("E")
    nodes.run_until(lambda: ["leader", "server", "receiver"] == nodes.roles("DEF"))
    ours, newcomers = nodes.seat("F").replica, nodes.seat("E").replica
    assert ours.stable < newcomers.log.base == ours.log.last
    nodes.die("D")
    nodes.run_until(lambda: ["leader"] == nodes.roles("E"), 10.0)
    nodes.submit("E", "b")
    nodes.run(3.0)
    assert (["a", "b"], []) == (nodes.texts("F"), nodes.user("F").losses)
