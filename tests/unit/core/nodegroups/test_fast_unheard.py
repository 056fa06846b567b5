"""A fast leader that was the last to get a payload goes on."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Data
from tests.unit.core.nodegroups.carriers import Carriers

LARGE = "x" * 1_000


def test_a_fast_leader_that_got_a_payload_late_goes_on_numbering() -> None:
    nodes = Carriers.with_group("DEF", parameters={"inline_bytes_max": 64}, delivery="fast")
    nodes.lose(Data, "E>D F>D")
    nodes.submit("E", LARGE)
    nodes.run(0.6)  # E and F have said Held, D asks in vain
    nodes.heal()
    nodes.run(3.0)
    assert [LARGE] == nodes.texts("D") == nodes.texts("F")
    assert nodes.submit("F", "after it")
    nodes.run(20.0)
    assert [LARGE, "after it"] == nodes.texts("F")
