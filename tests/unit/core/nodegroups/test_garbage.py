"""What is forgotten, and what must not be numbered twice because of it (SAM-09)."""

from __future__ import annotations

import gc

from groupsvcd.core.nodegroups.node_group import NodeGroup
from groupsvcd.core.peer_messages import Submit, SubmitRefused

from .carriers import GROUP, Carriers
from .test_catching_up import Sum, _join

KEPT_LITTLE = {"retention_margin": 1}


def _copies(nodes: Carriers, origin: str) -> list[Submit]:
    return [submit for submit in nodes.messages(Submit, origin) if submit.stream and submit.bodies]


def _first_kept(nodes: Carriers, name: str) -> int:
    return nodes.seat(name).replica.log.base + 1


def _parts_in_memory(nodes: Carriers, name: str) -> int:
    """How many parts of this node in groups anything still refers to."""
    gc.collect()
    station = nodes.engines[name].groups.station
    return sum(1 for found in gc.get_objects() if isinstance(found, NodeGroup) and found.station is station)


def _texts(user: Sum) -> list[str]:
    return user.text.split()


def test_a_copy_of_what_a_checkpoint_has_swallowed_is_known_as_a_duplicate() -> None:
    """The entry is kept nowhere any more; that it was numbered is in the roll."""
    nodes = Carriers.with_group("DEF", parameters=KEPT_LITTLE, checkpoint_every=4)
    nodes.submit("E", "once")
    nodes.run(0.05)
    copy = _copies(nodes, "E")[0]
    for number in range(12):
        nodes.submit("F", f"{number}")
        nodes.run(0.1)
    nodes.run(1.0)
    assert _first_kept(nodes, "D") > 10
    nodes.frame("E", "D", copy)
    nodes.run(0.5)
    assert 1 == nodes.texts("F").count("once")


def test_a_leader_that_began_with_a_checkpoint_knows_what_was_numbered_before_it() -> None:
    """G never saw the entry: the table of origins came with the state."""
    nodes = Carriers(**KEPT_LITTLE)
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    for name in "DEF":
        _join(nodes, name, checkpoint_every=4)
        nodes.run(0.3)
    nodes.send("C", "once")
    nodes.run(0.3)
    copy = _copies(nodes, "C")[-1]
    for number in range(12):
        nodes.submit("F", f"{number}")
        nodes.run(0.1)
    nodes.run(1.0)
    late = _join(nodes, "G")
    nodes.run(1.0)
    assert [1] == [len(late.restored_at)]
    for name in "DEF":
        nodes.die(name)
        nodes.run(1.5)
    assert "leader" == nodes.roles("G")[0]
    nodes.frame("C", "G", copy)
    nodes.submit("G", "new")
    nodes.run(0.5)
    assert (1, 1) == (_texts(late).count("once"), _texts(late).count("new"))


def test_what_lay_for_longer_than_the_lifetime_is_refused_by_name_and_never_numbered() -> None:
    """Its origin was forgotten meanwhile, and the leader is new: nobody can tell whether it is a duplicate."""
    nodes = Carriers.with_group("DEF", parameters=KEPT_LITTLE, checkpoint_every=4, logical_lifetime=20)
    nodes.send("C", "once")
    nodes.run(0.3)
    copy = _copies(nodes, "C")[-1]
    for _ in range(60):
        nodes.submit("F", *(f"{number}" for number in range(20)))
        nodes.run(0.02)
    nodes.run(1.0)
    nodes.die("D")
    nodes.run(1.0)
    assert nodes.node("C") not in nodes.part("E").roll.origins
    assert _first_kept(nodes, "E") > 1_000
    nodes.frame("C", "E", copy)
    nodes.run(0.2)
    refused = nodes.messages(SubmitRefused, "E", "C")
    assert ["too old"] == [message.reason for message in refused]
    assert 1 == nodes.texts("F").count("once")


def test_what_is_older_than_the_margin_is_dropped_and_what_is_younger_is_not() -> None:
    """A short lag is repaired without a checkpoint."""
    nodes = Carriers.with_group("DEF", parameters={"retention_margin": 6}, checkpoint_every=10)
    for number in range(45):
        nodes.submit("E", f"{number}")
        nodes.run(0.05)
    for name in "DEF":
        replica = nodes.seat(name).replica
        assert replica.log.base <= replica.checkpoints.advertised.seq - 6
        assert replica.log.base >= replica.checkpoints.advertised.seq - 6 - 10
    assert GROUP == nodes.part("D").name


def test_of_a_group_that_was_left_nothing_stays_but_the_number_of_what_was_submitted() -> None:
    """X1: a node may come to thousands of groups in a day. Who comes back goes on behind what it submitted before."""
    nodes = Carriers.with_group("DE")
    nodes.submit("E", "before")
    nodes.run(0.5)
    assert 1 == _parts_in_memory(nodes, "E")
    nodes.leave("E")
    nodes.run(1.0)
    assert 0 == _parts_in_memory(nodes, "E")
    nodes.join("E")
    nodes.run(1.0)
    nodes.submit("E", "after")
    nodes.run(0.5)
    assert ["before", "after"] == nodes.texts("D")
