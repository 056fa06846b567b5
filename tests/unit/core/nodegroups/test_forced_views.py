"""What a forced view goes on from, and whom it contradicts."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Order, Seen
from tests.unit.core.nodegroups.carriers import Carriers


def test_who_delivered_what_a_forced_view_has_otherwise_has_lost_the_group() -> None:
    """B4, B6. H has a long tail of an old epoch that was never stable; the view after it is lost, and H goes on.

    I has delivered less than H has, but not the same. It followed every view, and is told nothing.
    """
    nodes = Carriers.with_group("DEFGHI", "DEFGHI", replicas=5, commit_k=3)
    assert 5 == len(nodes.record().active.servers)
    nodes.lose(Seen, "I>E")  # so that it stays a receiver
    nodes.lose(Order, "D>E D>F D>G D>I")
    nodes.submit("D", *(f"never stable {number}" for number in range(8)))
    nodes.run(0.01)
    nodes.cut("H", "E", "F", "G", "I")
    nodes.die("D")
    nodes.run_until(lambda: nodes.record().active.leader == "E")
    nodes.submit("E", "stable in the view of E")
    nodes.run(0.05)
    assert ["stable in the view of E"] == nodes.texts("I")
    assert "I" not in nodes.record().active.names
    nodes.die("E", "F", "G")
    nodes.heal()
    nodes.run(15.0)
    assert "leader" == nodes.roles("H")[0], (nodes.record(), nodes.roles("HI"))
    by_number = {name: {seq: entry.body for seq, entry in nodes.user(name).entries} for name in "HI"}
    both = by_number["H"].keys() & by_number["I"].keys()
    different = [seq for seq in sorted(both) if by_number["H"][seq] != by_number["I"][seq]]
    assert [] == different or nodes.user("I").losses
