"""A fast node that retires on the word of the name server is connected to those that serve the view it is told of."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Claim, GroupIs
from groupsvcd.core.views import View
from tests.unit.core.nodegroups.linked import Linked


def test_who_promised_and_is_told_of_the_view_is_connected_to_its_servers() -> None:
    nodes = Linked(others="DEFGH")
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.assemble("DEFG", delivery="fast")
    nodes.run(6.0)
    active = nodes.record().active
    view = View(active.epoch + 1, "H", (nodes.node("H"),), 1, base=active.epoch, replaces=active.epoch)
    nodes.frame("E", "G", Claim(nodes.id(), view.epoch, view=view, from_all=True))  # from whoever
    nodes.frame("A", "G", GroupIs(nodes.id(), view))
    nodes.run(0.01)
    assert ("G", "H") in nodes.linked
