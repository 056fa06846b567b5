"""What is not done without a lease, also when a disk brings it."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Data
from tests.unit.core.nodegroups.carriers import Carriers


def test_a_payload_that_gets_onto_the_disk_after_the_lease_delivers_nothing() -> None:
    """L5. E lacks a payload; it comes, the disk hangs, E is cut off and declared gone; then the disk works again."""
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 64}, durable=True)
    nodes.lose(Data, "D>E F>E")
    large = "x" * 1_000
    nodes.submit("D", large)
    nodes.run(0.1)
    assert [[large], [], [large]] == [nodes.texts(name) for name in "DEF"]
    nodes.hang_disk("E")
    nodes.loses = lambda sender, receiver, message: False
    nodes.run_until(lambda: bool(nodes.seat("E").role._being_written))
    nodes.cut("E", "A", "B", "C", "D", "F")
    nodes.run(6.0)
    assert nodes.engines["E"].member.isolated
    assert "gone" == nodes.engines["D"].member.nodes["E"].status
    nodes.forget_the_past()
    nodes.mend_disk("E")
    nodes.run(0.1)
    assert nodes.engines["E"].member.isolated
    assert [] == [(line.op, line.seq) for line in nodes.lines("delivered") if line.node == "E"]
    assert [] == nodes.texts("E")
