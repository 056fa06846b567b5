"""A client has a group formed on a node while a program of the same node joins it."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import LookUpAsk
from tests.unit.core.nodegroups.carriers import GROUP, Carriers


def _both(join_after: float) -> Carriers:
    nodes = Carriers()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.call("D", lambda number: LookUpAsk(number, GROUP, True, 5.0))
    nodes.run(join_after)
    nodes.join("D")
    nodes.run(20.0)
    return nodes


@pytest.mark.parametrize("join_after", [0.0, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006])
def test_a_group_that_a_client_had_formed_while_a_program_joined_is_led(join_after: float) -> None:
    nodes = _both(join_after)
    assert ["leader"] == nodes.roles("D")
    assert 1 == len(nodes.user("D").joined_at)
