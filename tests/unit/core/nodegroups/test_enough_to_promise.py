"""A leader begins no change of its view that its servers cannot promise: it would only stop what goes on."""

from __future__ import annotations

import pytest

from tests.unit.core.nodegroups.carriers import Carriers


@pytest.mark.parametrize("carriers, replicas", [("DE", 2), ("DEF", 3)])
def test_a_server_out_of_reach_does_not_stop_a_leader_that_needs_nobody(carriers: str, replicas: int) -> None:
    """V7. With one copy enough, a view without E needs the promise of E, which D cannot reach."""
    nodes = Carriers.with_group(carriers, replicas=replicas, commit_k=1)
    nodes.cut("D", "E")
    nodes.run(5.0)
    nodes.submit("D", "a")
    nodes.run(0.5)
    assert ["a"] == nodes.texts("D")
    nodes.heal()
    nodes.run(3.0)
    assert ["a"] == nodes.texts("E")


def test_nor_does_who_comes_meanwhile() -> None:
    """G is taken in as a server when E is heard again."""
    nodes = Carriers.with_group("DE", replicas=3, commit_k=1)
    nodes.cut("D", "E")
    nodes.run(3.0)
    nodes.join("G")
    nodes.run(3.0)
    nodes.submit("G", "a")
    nodes.run(0.5)
    assert ["a"] == nodes.texts("D") == nodes.texts("G")
    nodes.heal()
    nodes.run(5.0)
    assert ["leader", "server", "server"] == nodes.roles("DEG")
