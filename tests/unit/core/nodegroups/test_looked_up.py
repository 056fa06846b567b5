"""A durable group that was formed and not written, and whose founder was declared down while it looked it up."""

from __future__ import annotations

from groupsvcd.core.peer_messages import Tell
from tests.unit.core.nodegroups.carriers import GROUP, Carriers


def test_a_founder_that_was_declared_down_while_it_asked_leads_in_the_end() -> None:
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.hang_disk("D")
    nodes.join("D", durable=True)
    nodes.run_until(lambda: nodes.voter("A").directory.groups.named(GROUP) is not None)
    nodes.kill("D")
    nodes.mend_disk("D")
    nodes.boot("D")
    nodes.lose(Tell, "A>D")  # the answer to its look-up is lost
    nodes.run(1.0)
    nodes.cut("D", "A", "B", "C")
    nodes.run(4.0)  # declared down
    nodes.heal()
    nodes.run(10.0)
    assert ["leader"] == nodes.roles("D")
