"""Without a lease a node delivers nothing; also when a write ends then that made an entry complete."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Block, Data, Open, Order, Repair
from tests.unit.core.nodegroups.carriers import Carriers
from tests.unit.core.nodegroups.test_catching_up import Sum, _join

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


def test_a_log_that_is_complete_when_the_lease_is_over_restores_nothing() -> None:
    """L5. E is to open a log that begins with a checkpoint; the last payload of it is written after E's lease."""
    nodes = Carriers(inline_bytes_max=64, retention_margin=2)
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    for name in "DE":
        _join(nodes, name, checkpoint_every=10, history_entries_max=5, durable=True, commit_k=1)
        nodes.run(0.8)
    nodes.lose((Order, Repair, Block, Data, Open), "D>E")
    for number in range(40):
        nodes.submit("D", f"{number}")
        nodes.run(0.05)
    nodes.submit("D", LARGE)
    nodes.run(0.05)
    _join(nodes, "F")
    nodes.run_until(lambda: bool(nodes.messages(Open, "D", "E")), 20.0)
    member, user = nodes.engines["E"].member, nodes.user("E")
    assert isinstance(user, Sum)
    nodes.loses = lambda sender, receiver, message: isinstance(message, Open)
    nodes.cut("E", "A", "B", "C")
    nodes.run_until(lambda: member.lease_until - nodes.now < 0.1)
    nodes.frame("D", "E", nodes.messages(Open, "D", "E")[-1])
    nodes.hang_disk("E")
    nodes.run(0.02)
    assert 1 == len(nodes.waiting_writes["E"])
    nodes.run_until(lambda: member.isolated)
    nodes.mend_disk("E")
    nodes.run(0.2)
    assert member.isolated
    assert [] == user.restored_at
    nodes.heal()
    nodes.run(3.0)
    assert 1 == len(user.restored_at)
    assert LARGE in user.text
