"""That a leader's disk was full is no news when what it refused has been ordered since."""

from __future__ import annotations

from groupsvcd.core.peer_messages import SubmitRefused
from groupsvcd.core.stream.duplicates import Verdict
from tests.unit.core.nodegroups.carriers import GROUP, Carriers


def _no_disk(nodes: Carriers, node: str, n: int) -> SubmitRefused:
    return SubmitRefused(nodes.id(), nodes.incarnation(node), n, 0, Verdict.NO_DISK.value)


def test_a_late_refusal_does_not_stop_a_member() -> None:
    """S4. The word comes when 1 was ordered long ago, so nothing that G sends would ever take it back."""
    nodes = Carriers.with_group("DEFG", durable=True)
    nodes.submit("G", "a")
    nodes.run(0.5)
    nodes.frame("D", "G", _no_disk(nodes, "G", 1))
    assert "" == nodes.engines["G"].groups.refusal(GROUP)
    assert 2 == nodes.submit("G", "b")
    nodes.run(0.5)
    assert ["a", "b"] == nodes.texts("D")


def test_late_refusals_do_not_make_a_stranger_give_up() -> None:
    """K1. Two late words, long after one another, are not four seconds without a disk."""
    nodes = Carriers.with_group("DEF", durable=True)
    nodes.send("G", "a")
    nodes.run_until(lambda: 1 == nodes.user("G").accepted_upto)
    nodes.frame("D", "G", _no_disk(nodes, "G", 1))
    nodes.run(5.0)
    nodes.frame("D", "G", _no_disk(nodes, "G", 1))
    assert [] == nodes.user("G").failures
