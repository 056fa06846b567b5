"""A disk does not forget its promise with its log: after a restart it refuses whom it had promised to refuse."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Complaint, GroupIs, Open, Opened
from groupsvcd.core.stream.entries import decode_entry
from groupsvcd.core.stream.receiver import Receiver
from tests.unit.core.nodegroups.carriers import Carriers


def test_a_disk_that_retired_still_refuses_what_it_promised_to_refuse() -> None:
    """L3. D leads e1 = {D, E, F}, and F has not opened it yet.

    D is cut off, and hands over: E leads e2 by the promises of E and F. Then F retires, and restarts. D, which knows
    nothing of all this, still tells F to open e1.
    """
    nodes = Carriers.with_group("DE", durable=True)
    nodes.lose(Open, "D>F")
    nodes.join("F")
    nodes.run(0.6)
    e1 = nodes.record().active
    assert ["D", "E", "F"] == sorted(e1.names)
    assert ["leader", "server", "server"] == nodes.roles("DEF")
    # D is cut off from E and F, and never hears from the name server that it was replaced.
    nodes.cut("D", "E", "F")
    nodes.lose(GroupIs, "A>D")
    nodes.submit("D", "x")
    nodes.run(0.01)
    number = nodes.seat("D").replica.log.last
    nodes.leave("D")
    nodes.run(1.0)
    e2 = nodes.record().active
    assert e2.epoch > e1.epoch
    assert "E" == e2.leader
    assert ["E", "F"] == sorted(e2.names)
    assert e2.epoch == nodes.seat("F").role.promised
    nodes.submit("E", "y")
    nodes.run(0.3)
    assert ["y"] == nodes.texts("E")
    # F is away for a while: E goes on alone. F hears of that and retires.
    nodes.lose(Complaint, "F>A")
    nodes.cut("E", "F")
    nodes.run_until(lambda: nodes.record().active.names == ("E",))
    nodes._cut -= {("E", "F"), ("F", "E")}
    nodes.run_until(lambda: isinstance(nodes.seat("F").role, Receiver))
    nodes.run(0.01)
    nodes.kill("F")
    nodes.boot("F")
    nodes.cut("E", "F")
    nodes._cut -= {("D", "F"), ("F", "D")}
    nodes.loses = lambda sender, receiver, message: isinstance(message, GroupIs) and receiver == "D"
    nodes.forget_the_past()
    nodes.run(4.0)
    mine, theirs = nodes.seat("D").replica, nodes.seat("E").replica
    entries = [decode_entry(replica.log.entry(number)) for replica in (mine, theirs)]
    assert mine.delivered < number or entries[0] == entries[1], f"two entries at {number}: {entries}"
    assert [] == [one for one in nodes.messages(Opened, "F", "D") if one.epoch == e1.epoch]
