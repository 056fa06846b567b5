"""Nobody is told that all members have delivered what one of them has not."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Beat, Order, Repair
from tests.unit.core.nodegroups.carriers import Carriers
from tests.unit.core.nodegroups.test_confirmations import _submit_and_wait


def test_a_member_that_lags_too_far_to_be_waited_for_has_not_seen_it() -> None:
    nodes = Carriers.with_group("DEFG", history_entries_max=5)
    nodes.lose((Order, Beat, Repair), "D>G E>G F>G")
    _, seen = _submit_and_wait(nodes, "E", "for all")
    for number in range(20):
        nodes.submit("E", f"{number}")
        nodes.run(0.05)
    nodes.run(1.0)
    assert nodes.node("G") in nodes.part("D").roll.members
    assert "for all" not in nodes.texts("G")
    assert [] == seen
