"""What is said to a node without a link to it does not leave: who answers has one."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Insert, PeerMessage
from tests.unit.core.nodegroups.carriers import Carriers


def _only_over_links(nodes: Carriers) -> None:
    """As the daemon does it: to one node only if we are connected to it; voters always are."""
    nodes.heal()

    def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
        engine = nodes.engines.get(sender)
        return engine is not None and receiver not in nodes.voters and receiver not in engine.links._present

    nodes.loses = loses


def test_the_control_a_group_works_over_links() -> None:
    """Nothing is wrong with the driver."""
    nodes = Carriers.with_group("DEF")
    _only_over_links(nodes)
    nodes.join("G")
    nodes.run(1.0)
    nodes.submit("G", "a")
    nodes.run(1.0)
    nodes.leave("G")
    nodes.run(2.0)
    assert ["a"] == nodes.texts("D")
    assert "DEF" == nodes.user("D").names


def test_a_ghost_is_removed_though_it_has_no_link_any_more() -> None:
    """V7. G was a member and has left; a copy of its Insert comes a while later. G says Leave, to nobody."""
    nodes = Carriers.with_group("DEF")
    _only_over_links(nodes)
    nodes.join("G")
    nodes.run(1.0)
    late = nodes.messages(Insert, "G", "D")[0]
    nodes.leave("G")
    nodes.run(10.0)
    assert "DEF" == nodes.user("D").names
    nodes.frame("G", "D", late)
    nodes.run(60.0)
    assert "DEF" == nodes.user("D").names
