"""The rules for NodeUp, NodeDown and NodeGone, and the node list that is told to everyone."""

from __future__ import annotations

import pytest

from groupsvcd.core.domain import nodes as nodes_module
from groupsvcd.core.domain.commands import FormGroup, NodeDown, NodeGone, NodeUp
from tests.unit.directory.scene import Scene


def node_up(name: str, incarnation: int, state_id: str = "") -> NodeUp:
    return NodeUp(name, incarnation, state_id, f"tcp://{name}", voter=False)


def test_an_incarnation_must_be_above_the_last_known_one() -> None:
    """A node declared down goes on under a higher incarnation, never under the same (GS-08)."""
    scene = Scene()
    assert scene.order(node_up("x", 5))["ok"]
    refused = scene.order(node_up("x", 4))
    assert not refused["ok"]
    assert 5 == refused["node"]["incarnation"]
    scene.down("x", 5)
    refused = scene.order(node_up("x", 5))
    assert not refused["ok"]
    assert "down" == refused["node"]["status"]
    assert scene.order(node_up("x", 6))["ok"]


def test_repeating_an_accepted_command_gives_the_same_answer_and_changes_nothing() -> None:
    scene = Scene()
    for command in (node_up("x", 1), NodeDown("x", 1, early=True), NodeGone("x", 1)):
        first = scene.order(command)
        version = scene.directory.list_version
        assert first["ok"]
        assert first == scene.order(command)
        assert version == scene.directory.list_version


def test_the_same_incarnation_at_another_address_is_refused() -> None:
    scene = Scene()
    scene.order(node_up("x", 1))
    assert not scene.order(NodeUp("x", 1, "", "tcp://elsewhere", voter=False))["ok"]


def test_what_was_never_up_cannot_be_down_or_gone() -> None:
    scene = Scene()
    assert not scene.order(NodeDown("x", 1, early=False))["ok"]
    assert not scene.order(NodeGone("x", 1))["ok"]
    scene.order(node_up("x", 1))
    assert not scene.order(NodeDown("x", 2, early=False))["ok"]


def test_what_is_up_cannot_be_gone() -> None:
    scene = Scene()
    scene.order(node_up("x", 1))
    refused = scene.order(NodeGone("x", 1))
    assert not refused["ok"]
    assert "up" == refused["node"]["status"]


def test_late_news_of_an_older_incarnation_do_not_touch_the_new_one() -> None:
    scene = Scene()
    scene.order(node_up("x", 1))
    scene.order(node_up("x", 2))
    version = scene.directory.list_version
    assert scene.order(NodeDown("x", 1, early=False))["ok"]
    assert version == scene.directory.list_version
    assert scene.directory.nodes.is_up(("x", 2))


def test_a_quick_restart_makes_the_old_incarnation_only_down() -> None:
    """Without the proof of the same locked disk the old process may still act until its lease ends."""
    scene = Scene()
    scene.order(node_up("x", 1, "memory-1"))
    scene.order(node_up("x", 2, "memory-2"))
    nodes = scene.directory.nodes
    assert not nodes.is_up(("x", 1))
    assert not nodes.is_gone(("x", 1))
    assert (("x", 1),) == nodes.not_gone()
    assert scene.order(NodeGone("x", 1))["ok"]
    assert nodes.is_gone(("x", 1))
    assert nodes.is_up(("x", 2))
    assert () == nodes.not_gone()


def test_an_incarnation_that_is_down_is_not_gone_because_a_newer_one_is_up() -> None:
    scene = Scene()
    scene.order(node_up("x", 1, "memory-1"))
    scene.down("x", 1)
    scene.order(node_up("x", 2, "memory-2"))
    assert not scene.directory.nodes.is_gone(("x", 1))


def test_the_same_disk_proves_that_the_old_incarnation_is_gone() -> None:
    scene = Scene()
    scene.order(node_up("x", 1, "disk"))
    scene.order(node_up("x", 2, "disk"))
    assert scene.directory.nodes.is_gone(("x", 1))


def test_the_node_list_tells_only_what_changed() -> None:
    scene = Scene()
    scene.up("x", "y")
    version = scene.directory.list_version
    assert scene.seq == version
    assert () == scene.directory.node_entries(version)
    scene.down("x")
    (entry,) = scene.directory.node_entries(version)
    assert ("x", "down", scene.seq) == (entry.name, entry.status, entry.changed)
    assert scene.seq == scene.directory.list_version
    assert ["x", "y"] == [entry.name for entry in scene.directory.node_entries(0)]


def test_other_commands_leave_the_list_version_alone() -> None:
    scene = Scene()
    scene.up("x")
    version = scene.directory.list_version
    scene.order(FormGroup("g", "x", 1, {}))
    assert version == scene.directory.list_version


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 64, "\u00e9"])
def test_strange_node_names_are_refused(name: str) -> None:
    assert not Scene().order(node_up(name, 1))["ok"]


def test_a_node_that_restarts_too_often_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "FORMER_INCARNATIONS_MAX", 2)
    scene = Scene()
    for incarnation in (1, 2, 3):
        assert scene.order(node_up("x", incarnation))["ok"]
    assert "not yet gone" in scene.order(node_up("x", 4))["problem"]
    scene.order(NodeGone("x", 1))
    assert scene.order(node_up("x", 4))["ok"]


def test_a_full_table_forgets_the_longest_gone_and_else_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes_module, "NODES_MAX", 3)
    scene = Scene()
    scene.up("x", "y", "z")
    assert "no more fit" in scene.order(node_up("w", 1))["problem"]
    scene.gone("y")
    scene.gone("x")
    scene.up("w")
    assert ["w", "x", "z"] == [node.name for node in scene.directory.nodes.all()]
    assert scene.directory.nodes.is_gone(("y", 1))
