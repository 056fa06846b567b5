"""What a stranger is told while the window of its node is full."""

from __future__ import annotations

from tests.unit.core.nodegroups.carriers import Carriers


def test_what_was_taken_while_the_leader_was_looked_up_is_not_dropped() -> None:
    """K1, B2. The window of this node is full with what an earlier call gave up; send says True all the same."""
    nodes = Carriers.with_group("D", durable=True)
    nodes.send("G", "first")
    nodes.run(0.5)
    nodes.hang_disk("D")
    nodes.submit("D", "hangs")
    nodes.run(1.2)
    for number in range(16):
        assert nodes.send("G", *(f"{number}-{one}" for one in range(256)))
    assert not nodes.send("G", "one more")  # the window is full
    nodes.run_until(lambda: bool(nodes.user("G").failures), within=20.0)
    nodes.users.pop(("G", "jobs"))
    assert nodes.send("G", "Y")
    nodes.run(0.5)
    nodes.mend_disk("D")
    nodes.run(20.0)
    assert [] == nodes.user("G").failures
    assert "Y" == nodes.texts("D")[-1]
