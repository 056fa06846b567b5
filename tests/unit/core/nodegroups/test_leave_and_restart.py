"""The last program has left a durable group, and the node restarts before that is done."""

from __future__ import annotations

from tests.unit.core.nodegroups.carriers import Carriers


def test_who_has_left_before_a_restart_is_out_after_it() -> None:
    """GS-07. The disk knows that nobody on this node needs the group any more."""
    nodes = Carriers.with_group("DEF", durable=True)
    nodes.cut("E", "D", "F")
    nodes.leave("E")
    assert ["left"] == nodes.user("E").losses
    nodes.run(0.05)
    nodes.kill("E")
    nodes.heal()
    nodes.boot("E")
    nodes.run(15.0)
    assert "none" == nodes.roles("E")[0]
