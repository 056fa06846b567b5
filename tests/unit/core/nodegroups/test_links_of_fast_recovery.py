"""Who is to lead a fast group asks members, too, that it knows only from the reports of others."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Beat, Claim, Order, Repair
from tests.unit.core.nodegroups.linked import Linked

STREAM = (Order, Beat, Repair)


def _group() -> Linked:
    nodes = Linked(others="DEFGH")
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.assemble("DEF", delivery="fast")
    nodes.run(6.0)  # no links are left over
    nodes.forget_the_past()
    return nodes


def test_a_member_that_only_others_know_of_is_asked() -> None:
    """G was inserted with an entry that D and F hold and E does not. D dies, E is to lead: G must be asked."""
    nodes = _group()
    nodes.lose(STREAM, "D>E F>E")
    nodes.join("G", delivery="fast")
    nodes.run_until(lambda: nodes.user("G").joined_at != [])
    nodes.lose(STREAM, "D>F")
    nodes.submit("D", "only G hears it")
    nodes.run(0.01)
    assert ["only G hears it"] == nodes.texts("G")
    assert [] == nodes.texts("F") == nodes.texts("E")
    nodes.heal()
    nodes.lose(Claim, "E>F")  # the first one is lost, and repeated after 0.1 s
    nodes.die("D")
    nodes.run(0.06)
    nodes.heal()
    nodes.run(8.0)
    lost = [(a, b) for a, b, m in nodes.unlinked if isinstance(m, Claim)]
    assert [] == nodes.user("G").losses, lost
    assert ["only G hears it"] == nodes.texts("E") == nodes.texts("F") == nodes.texts("G")
