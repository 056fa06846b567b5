"""Who goes on behind a checkpoint has missed more than entries: a leader, members, links."""

from __future__ import annotations

from tests.unit.core.nodegroups.carriers import GROUP, Carriers
from tests.unit.core.nodegroups.test_catching_up import Sum, _join


def _text(nodes: Carriers, name: str) -> str:
    user = nodes.users[name, GROUP]
    assert isinstance(user, Sum)
    return user.text


def _after_a_skipped_change_of_leader() -> Carriers:
    """D led with E and G; while G was out of their reach D handed over to E, H and I came, and much was ordered."""
    nodes = Carriers(others="DEFGHI", retention_margin=2)
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    for name in "DEG":
        _join(nodes, name, checkpoint_every=10, history_entries_max=20, replicas=1)
        nodes.run(0.3)
    assert ["leader", "receiver", "receiver"] == nodes.roles("DEG")
    nodes.cut("G", "D", "E", "H", "I")
    nodes.leave("D")
    nodes.run(2.0)
    assert ["none", "leader"] == nodes.roles("DE")
    for name in "HI":
        _join(nodes, name)
        nodes.run(0.5)
    for number in range(60):
        nodes.submit("E", f"e-{number}")
        nodes.run(0.02)
    nodes.run(1.0)
    nodes.heal()
    nodes.run(3.0)
    assert _text(nodes, "E") == _text(nodes, "G")
    assert [] == nodes.user("G").losses
    return nodes


def test_who_skipped_a_change_of_leader_submits_to_the_new_one() -> None:
    """B2. G has the state of the others and hears E; what it submits goes to D, for ever."""
    nodes = _after_a_skipped_change_of_leader()
    nodes.submit("G", "from-G")
    nodes.run(60.0)
    assert "from-G" in _text(nodes, "E")


def test_who_skipped_insertions_is_connected_to_the_new_members() -> None:
    """B3. G's roll has H and I, and E as leader."""
    nodes = _after_a_skipped_change_of_leader()
    needed = nodes.engines["G"].links._needed[nodes.id()][0]
    assert {"E", "H", "I"} <= needed.keys(), needed


def test_who_skipped_insertions_is_told_who_the_members_are() -> None:
    """V3, G1. All members have the same list after the same entry; G's user still has that of long ago."""
    nodes = _after_a_skipped_change_of_leader()
    assert nodes.part("E").delivered == nodes.part("G").delivered
    assert nodes.user("E").names == nodes.user("G").names
