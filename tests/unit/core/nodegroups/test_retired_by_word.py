"""A server that retires on the word of the name server is still bound by what it promised."""

from __future__ import annotations

import pytest

from groupsvcd.core.peer_messages import GroupIs, Open, Opened
from groupsvcd.core.stream.entries import decode_entry
from groupsvcd.core.stream.receiver import Receiver
from tests.unit.core.nodegroups.carriers import Carriers


@pytest.mark.parametrize("durable", [False, True])
def test_a_server_that_was_told_to_retire_still_refuses_what_it_promised_to_refuse(durable: bool) -> None:
    """L3, B4. D leads e1 = {D, E, G, F}, k = 2; F has not opened it yet.

    D is cut off, and hands over: E leads e2 by the promises of E, F and G. F does not get to open e2 either, so E goes
    on without it, and A tells F so.
    D, which knows nothing of all this, still tells F to open e1.
    """
    nodes = Carriers.with_group("DEG", replicas=4, commit_k=2, **({"durable": True} if durable else {}))
    nodes.lose(Open, "D>F E>F")
    nodes.join("F")
    nodes.run(0.6)
    e1 = nodes.record().active
    assert ["D", "E", "F", "G"] == sorted(e1.names)
    nodes.cut("D", "E", "F", "G")
    nodes.lose(GroupIs, "A>D")
    nodes.submit("D", "x")
    nodes.run(0.01)
    number = nodes.seat("D").replica.log.last
    nodes.leave("D")
    nodes.run(0.5)
    e2 = nodes.record().active
    assert e2.epoch > e1.epoch
    assert "E" == e2.leader
    assert ["E", "F", "G"] == sorted(e2.names)
    assert e2.epoch == nodes.seat("F").role.promised
    nodes.submit("E", "y")
    nodes.run(0.3)
    assert ["y"] == nodes.texts("E")
    # F and E, G do not hear each other: E goes on without F, and F hears of it from the name server.
    nodes.cut("F", "E", "G")
    nodes.run_until(lambda: nodes.record().active.names == ("E", "G"))
    nodes.run_until(lambda: isinstance(nodes.seat("F").role, Receiver))
    nodes._cut -= {("D", "F"), ("F", "D")}
    nodes.loses = lambda sender, receiver, message: isinstance(message, GroupIs) and receiver == "D"
    nodes.forget_the_past()
    nodes.run(4.0)
    mine, theirs = nodes.seat("D").replica, nodes.seat("E").replica
    entries = [decode_entry(replica.log.entry(number)) for replica in (mine, theirs)]
    assert mine.delivered < number or entries[0] == entries[1], f"two entries at {number}: {entries}"
    assert [] == [one for one in nodes.messages(Opened, "F", "D") if one.epoch == e1.epoch]
