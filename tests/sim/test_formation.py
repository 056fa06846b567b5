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

    def spoke(node: Node, said: str, stream: int, epoch: int) -> None:
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


def test_a_domain_is_formed_without_a_voter_whom_the_operator_excuses_and_who_comes_later() -> None:
    """GS-01: formation needs all voters, or a word of the operator; the late one is let in like a replaced disk."""
    world = World(1, 3, voters=3, parameters={"form_without": ("n3",)}, start_within_s=None)
    for name in ("n1", "n2"):
        world.nodes[name].start()
    assert world.run_until(lambda: world.name_server() is not None, within=5.0)
    world.nodes["n3"].start()
    assert converge(world), world.failures
    assert 1 == world.marks["voter-replaced"]
    assert 1 == world.marks["domain-formed"]


def test_without_such_a_word_two_of_three_form_nothing() -> None:
    """GS-01: two voters that never heard of the third cannot know that it is not part of a domain already."""
    world = World(1, 3, voters=3, start_within_s=None)
    for name in ("n1", "n2"):
        world.nodes[name].start()
    world.run(until=20.0)
    assert world.name_server() is None
    assert 0 == world.marks.get("domain-formed", 0)
    status = world.nodes["n1"].status()
    assert status is not None
    assert "the domain is not formed yet: waits for n3" == status.trouble
