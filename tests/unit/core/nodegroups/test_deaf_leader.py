"""A leader that its servers hear, and that does not hear them."""

from __future__ import annotations

from tests.unit.core.nodegroups.carriers import Carriers


def test_a_leader_that_hears_none_of_its_servers_is_replaced() -> None:
    """V7. D proposes to go on alone and waits for promises that do not come; E and F, which reach all, take over."""
    nodes = Carriers.with_group("DEF")
    nodes.loses = lambda sender, receiver, message: receiver == "D" and sender in ("E", "F")
    nodes.run(0.5)
    nodes.submit("E", "a")
    nodes.run(15.0)
    assert ["a"] == nodes.texts("E") == nodes.texts("F")
    nodes.heal()
    nodes.submit("D", "b")
    nodes.run(5.0)
    assert ["a", "b"] == nodes.texts("D") == nodes.texts("E")


def test_a_leader_that_takes_long_to_change_its_view_is_not_disturbed() -> None:
    """The servers of D hear nothing meanwhile and complain; it has the time of two leases."""
    nodes = Carriers.with_group("DEF", "DEFGH")
    nodes.loses = lambda sender, receiver, message: receiver == "D" and sender in ("E", "F")
    nodes.run_until(lambda: nodes.record().pending is not None)
    pending = nodes.record().pending
    assert pending is not None
    nodes.run(3.5)
    assert pending == nodes.record().pending
    nodes.heal()
    nodes.run(1.0)
    assert pending.epoch == nodes.record().active.epoch or nodes.record().active.leader == "D"
