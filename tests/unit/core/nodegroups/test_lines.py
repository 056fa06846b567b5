"""What waits at the leader behind a large payload, when part of it is settled elsewhere."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Submit, SubmitRefused
from tests.unit.core.nodegroups.carriers import Carriers

LARGE = (100, 5)
"""Length and checksum of a payload that does not come."""


def _with_a_line() -> tuple[Carriers, int]:
    """G has submitted 1, which is ordered, and 2, 3 and 4 wait at D for their payloads; how far G knew the stream."""
    nodes = Carriers.with_group("DEF")
    nodes.send("G", "one")
    nodes.run_until(lambda: 1 == nodes.user("G").accepted_upto)
    known_seq = nodes.seat("D").replica.delivered
    nodes.frame("G", "D", Submit(nodes.id(), 2, known_seq, (LARGE, LARGE, LARGE), 1))
    nodes.run(0.6)
    return nodes, known_seq


def test_a_late_copy_of_what_is_settled_is_a_duplicate() -> None:
    """X2. Another leader ordered 2 and 3, of which D does not know, and G says so; then an older word of G comes."""
    nodes, known_seq = _with_a_line()
    nodes.frame("G", "D", Submit(nodes.id(), 4, known_seq, (LARGE,), 3))
    nodes.frame("G", "D", Submit(nodes.id(), 2, known_seq, (LARGE, LARGE, LARGE), 1))
    assert [4] == [n for n, _, _ in nodes.leading("D")._waiting[nodes.node("G")]]


def test_what_follows_a_shortened_line_is_no_gap() -> None:
    """G is asked for nothing that it has just sent; else it would send it all again, every 20 ms."""
    nodes, known_seq = _with_a_line()
    nodes.forget_the_past()
    nodes.frame("G", "D", Submit(nodes.id(), 4, known_seq, (LARGE, b"five"), 3))
    assert [] == nodes.messages(SubmitRefused, "D", "G")
    assert [4, 5] == [n for n, _, _ in nodes.leading("D")._waiting[nodes.node("G")]]
