"""A grant that is for an older process of this node changes nothing."""

from __future__ import annotations

import msgspec

from groupsvcd.core.peer_messages import Grant
from tests.unit.core.nodegroups.carriers import GROUP, Carriers


def test_a_grant_to_an_older_process_leaves_a_receiver_as_it_is() -> None:
    nodes = Carriers.with_group("DEFG")
    assert "receiver" == nodes.roles("G")[0]
    active = nodes.record().active
    old = ("G", nodes.incarnation("G") - 1)
    view = msgspec.structs.replace(active, epoch=active.epoch + 1, leader="G", servers=(old,), k=1, base=active.epoch)
    nodes.frame("A", "G", Grant(nodes.id(), GROUP, {}, view, active))
    nodes.run(0.5)
    assert "receiver" == nodes.roles("G")[0]


def test_a_grant_to_an_older_process_does_not_stop_a_leader() -> None:
    nodes = Carriers.with_group("DEF")
    active = nodes.record().active
    old = ("D", nodes.incarnation("D") - 1)
    view = msgspec.structs.replace(active, epoch=active.epoch + 1, leader="D", servers=(old,), k=1, base=active.epoch)
    other = msgspec.structs.replace(active, servers=(old,))
    nodes.frame("A", "D", Grant(nodes.id(), GROUP, {}, view, other))
    assert ["leader"] == nodes.roles("D")
    nodes.run(0.2)
    nodes.submit("E", "a")
    nodes.run(0.5)
    assert ["a"] == nodes.texts("E")
