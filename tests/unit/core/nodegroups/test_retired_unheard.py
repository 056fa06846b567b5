"""A server that promised the view which goes on without it, and then hears nothing of its leader."""

from __future__ import annotations

import pytest

from groupsvcd.core.peer_messages import Beat, Order
from tests.unit.core.nodegroups.carriers import Carriers


def _retired(**attributes: str | bool) -> Carriers:
    """D, E and F served; D leads on without E, which has promised that; then their link breaks."""
    nodes = Carriers.with_group("DEFG", **attributes)
    nodes.lose((Order, Beat), "D>E")
    nodes.leave("E")
    nodes.run_until(lambda: nodes.record().pending is not None)
    epoch = nodes.record().newest_epoch
    nodes.run_until(lambda: nodes.seat("E").epoch == epoch)
    nodes.run(0.0015)
    nodes.cut("D", "E")
    return nodes


@pytest.mark.parametrize("attributes", [{}, {"delivery": "fast"}, {"durable": True}], ids=["safe", "fast", "durable"])
def test_it_gets_what_it_lacks_from_the_others(attributes: dict[str, str | bool]) -> None:
    """V7. The name server tells it; from the others it learns that it is out."""
    nodes = _retired(**attributes)
    nodes.submit("D", "a")
    nodes.run(15.0)
    assert ["none"] == nodes.roles("E")
    assert ["a"] == nodes.texts("G")
