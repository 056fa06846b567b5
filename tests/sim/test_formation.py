"""The first formation can fail half-way, and whatever was heard of it must not outlive it."""

from __future__ import annotations

import pytest

from groupsvc.testing.sim import Node, World, converge


@pytest.mark.parametrize("kind", ["Claim", "Promised", "LeaderAlive", "Open", "Opened"])
def test_a_voter_that_dies_with_its_writes_under_way_leaves_one_domain_behind(kind: str) -> None:
    """GS-01: words of a formation that never got to a disk bind nobody, nodes without a vote included."""
    world = World(1, 5, voters=3)
    hurt: list[Node] = []

    def kill(node: Node, _: object) -> None:
        node.crash("killed with its writes under way")
        node.disk.unstick()

    def spoke(node: Node, said: str, epoch: int) -> None:
        if said == kind and not hurt:
            hurt.append(node)
            node.disk.stick()
            world.push(world.t + 0.05, kill, node, None)

    for name in world.voters:
        world.nodes[name].on_spoke = spoke
    world.run(until=5.0)
    assert hurt
    converge(world)
    assert [] == world.failures
    assert 1 == len({node.engine.domain for node in world.nodes.values() if node.engine is not None})
