"""Without a lease a node delivers nothing; also when a write ends then that made an entry complete."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Data
from tests.unit.core.nodegroups.carriers import Carriers

LARGE = "x" * 1_000


def test_a_payload_that_is_written_when_the_lease_is_over_delivers_nothing() -> None:
    """L5. E has the order and knows that it is stable; the payload's write takes longer than E's lease."""
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 64}, durable=True)
    nodes.lose(Data, "D>E F>E")
    nodes.submit("D", LARGE)
    nodes.run(0.3)
    assert [LARGE] == nodes.texts("F")
    assert [] == nodes.texts("E")
    nodes.heal()
    nodes.hang_disk("E")
    nodes.run_until(lambda: nodes.waiting_writes["E"] != [], within=3.0)
    nodes.cut("E", *[name for name in nodes.names if name != "E"])
    nodes.run(3.0)
    assert nodes.engines["E"].member.isolated
    assert [] == nodes.texts("E")
    nodes.mend_disk("E")
    nodes.run(0.1)
    assert nodes.engines["E"].member.isolated
    assert [] == nodes.texts("E")
