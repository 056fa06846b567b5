"""The rules for FormGroup, ProposeView, ActivateView, ContinueGroup and DropGroup."""

from __future__ import annotations

import pytest

from groupsvcd.core.domain import group_rules
from groupsvcd.core.domain.commands import (
    ActivateView,
    AttributeValue,
    ContinueGroup,
    DropGroup,
    FormGroup,
    NodeGone,
    ProposeView,
    ViewStarted,
)
from tests.unit.directory.scene import VOTERS, Scene


def scene_with_nodes() -> Scene:
    scene = Scene()
    scene.up("a", "x", "y", "z")
    return scene


# --- FormGroup --------------------------------------------------------------------------------------


def test_the_first_asker_forms_and_the_others_get_the_record() -> None:
    """GS-05."""
    scene = scene_with_nodes()
    first = scene.order(FormGroup("jobs", "x", 1, {}))
    assert first["formed"]
    assert scene.seq == first["group"]["id"] == first["group"]["active"]["epoch"]
    assert [["x", 1]] == first["group"]["active"]["servers"]
    second = scene.order(FormGroup("jobs", "y", 1, {}))
    assert second["ok"]
    assert not second["formed"]
    assert first["group"] == second["group"]


def test_the_asker_that_lost_its_answer_is_told_again_that_it_forms() -> None:
    scene = scene_with_nodes()
    command = FormGroup("jobs", "x", 1, {})
    assert scene.order(command) == scene.order(command)


def test_who_was_to_be_replaced_does_not_form_any_more() -> None:
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x")
    scene.propose(group_id, ("x", 1), ("y", 1))
    assert not scene.order(FormGroup("jobs", "x", 1, {}))["formed"]


def test_a_restarted_asker_does_not_form_what_its_former_incarnation_formed() -> None:
    scene = scene_with_nodes()
    scene.form("jobs", "x")
    scene.up("x", incarnation=2)
    assert not scene.order(FormGroup("jobs", "x", 2, {}))["formed"]


def test_an_asker_that_is_not_up_forms_nothing() -> None:
    scene = scene_with_nodes()
    scene.down("x")
    assert not scene.order(FormGroup("jobs", "x", 1, {}))["ok"]
    assert not scene.order(FormGroup("jobs", "y", 2, {}))["ok"]
    assert scene.directory.group("jobs") is None


@pytest.mark.parametrize("name", ["", "_own", "a b", "x" * 201, "\u00fc"])
def test_strange_group_names_are_refused(name: str) -> None:
    assert not scene_with_nodes().order(FormGroup(name, "x", 1, {}))["ok"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"replicas": 0},
        {"replicas": True},
        {"replicas": 2, "commit_k": 3},
        {"commit_k": 0},
        {"durable": 1},
        {"on_quorum_lost": "pray"},
        {"durable": True, "on_quorum_lost": "continue"},
        {"note": "x" * 5_000},
    ],
)
def test_attributes_that_make_no_sense_are_refused(attributes: dict[str, AttributeValue]) -> None:
    assert "attribute" in scene_with_nodes().order(FormGroup("jobs", "x", 1, attributes))["problem"]


def test_a_durable_group_needs_a_disk() -> None:
    scene = Scene()
    scene.up("m", state_id="")
    assert "state directory" in scene.order(FormGroup("jobs", "m", 1, {"durable": True}))["problem"]


def test_there_is_a_limit_to_the_number_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_rules, "GROUPS_MAX", 1)
    scene = scene_with_nodes()
    scene.form("one", "x")
    assert "no more fit" in scene.order(FormGroup("two", "x", 1, {}))["problem"]


# --- ProposeView ------------------------------------------------------------------------------------


def test_the_leader_of_the_active_view_is_granted_its_proposal() -> None:
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x")
    answer = scene.propose(group_id, ("x", 1), ("y", 1), k=2)
    assert answer["ok"]
    assert scene.seq == answer["epoch"] == answer["group"]["pending"]["epoch"]
    assert group_id == answer["group"]["pending"]["base"]
    assert group_id == answer["group"]["active"]["epoch"]


def test_a_repeated_proposal_is_not_granted_twice() -> None:
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x")
    command = ProposeView(group_id, group_id, "x", (("x", 1), ("y", 1)), 2, ("x", 1))
    first = scene.order(command)
    assert first == scene.order(command)
    scene.activate(group_id)
    assert first["epoch"] == scene.order(command)["epoch"] == scene.group(group_id).active.epoch


def test_a_proposal_from_an_old_base_is_refused_with_the_record() -> None:
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x")
    scene.propose(group_id, ("x", 1), ("y", 1))
    late = scene.order(ProposeView(group_id, group_id, "x", (("x", 1), ("z", 1)), 1, ("x", 1)))
    assert not late["ok"]
    assert scene.group(group_id).newest_epoch == late["group"]["newest_epoch"]


def test_only_the_active_leader_or_the_name_server_proposes() -> None:
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x")
    scene.serve(group_id, ("x", 1), ("y", 1))
    assert not scene.propose(group_id, ("y", 1), by=("y", 1))["ok"]
    assert not scene.propose(group_id, ("y", 1), by=("x", 2))["ok"]
    assert scene.propose(group_id, ("y", 1), by=("a", 1))["ok"]


def test_a_deposed_name_server_proposes_nothing() -> None:
    scene = scene_with_nodes()
    scene.up("b")
    group_id = scene.form("jobs", "x")
    scene.order(ViewStarted(2, "b", VOTERS, 2))
    assert not scene.propose(group_id, ("x", 1), by=("a", 1))["ok"]


def test_proposed_servers_must_be_up_and_one_must_have_the_stream() -> None:
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x")
    assert "not up" in scene.propose(group_id, ("x", 1), ("y", 2))["problem"]
    assert "not up" in scene.propose(group_id, ("x", 1), ("nobody", 1))["problem"]
    assert "active view" in scene.propose(group_id, ("y", 1))["problem"]
    assert "twice" in scene.propose(group_id, ("x", 1), ("x", 1))["problem"]
    assert "k must" in scene.propose(group_id, ("x", 1), k=2)["problem"]
    assert not scene.order(ProposeView(group_id, group_id, "x", (), 1, ("x", 1)))["ok"]
    assert not scene.order(ProposeView(group_id, group_id, "z", (("x", 1),), 1, ("x", 1)))["ok"]


# --- ActivateView -----------------------------------------------------------------------------------


def test_activation_of_the_active_view_is_so_already() -> None:
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x")
    assert scene.order(ActivateView(((group_id, group_id),)))["ok"]


def test_many_activations_in_one_entry_are_judged_each_for_itself() -> None:
    scene = scene_with_nodes()
    one, two = scene.form("one", "x"), scene.form("two", "x")
    scene.propose(one, ("x", 1), ("y", 1))
    scene.propose(two, ("x", 1), ("y", 1))
    epoch = scene.group(one).newest_epoch
    answer = scene.order(ActivateView(((one, epoch), (two, epoch), (99, 1))))
    assert not answer["ok"]
    assert [True, False, False] == [each["ok"] for each in answer["activations"]]
    assert epoch == scene.group(one).active.epoch
    assert two == scene.group(two).active.epoch


# --- ContinueGroup ----------------------------------------------------------------------------------


def scene_with_lost_quorum(**attributes: AttributeValue) -> tuple[Scene, int]:
    """Of the servers x, y with k 2 both are down, and x is gone."""
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x", **attributes)
    scene.serve(group_id, ("x", 1), ("y", 1), k=2)
    scene.gone("x")
    scene.down("y")
    return scene, group_id


def continue_at_z(scene: Scene, group_id: int) -> ContinueGroup:
    return ContinueGroup(group_id, scene.group(group_id).newest_epoch, "z", (("z", 1),))


def test_a_group_continues_only_when_the_quorum_is_gone() -> None:
    """Down is not enough: who is only down may still have told someone something."""
    scene, group_id = scene_with_lost_quorum()
    command = continue_at_z(scene, group_id)
    assert "gone" in scene.order(command)["problem"]
    scene.order(NodeGone("y", 1))
    answer = scene.order(command)
    assert answer["ok"]
    assert answer["group"]["pending"]["forced"]
    assert scene.seq == answer["epoch"]
    assert answer == scene.order(command)


def test_a_group_that_waits_or_dissolves_is_not_continued() -> None:
    for word in ("wait", "dissolve"):
        scene, group_id = scene_with_lost_quorum(on_quorum_lost=word)
        scene.order(NodeGone("y", 1))
        assert word in scene.order(continue_at_z(scene, group_id))["problem"]


def test_a_late_continuation_is_refused() -> None:
    scene, group_id = scene_with_lost_quorum()
    scene.order(NodeGone("y", 1))
    late = ContinueGroup(group_id, group_id, "z", (("z", 1),))
    assert "newest epoch" in scene.order(late)["problem"]


# --- DropGroup --------------------------------------------------------------------------------------


def test_the_leader_drops_its_group_and_the_name_is_free() -> None:
    scene = scene_with_nodes()
    old = scene.form("jobs", "x")
    assert scene.order(DropGroup(old, old, ("x", 1)))["ok"]
    assert scene.directory.group("jobs") is None
    new = scene.form("jobs", "y")
    assert new > old
    assert scene.group(new).newest_epoch > old


def test_late_commands_for_a_dropped_group_do_not_touch_the_one_formed_anew() -> None:
    scene = scene_with_nodes()
    old = scene.form("jobs", "x")
    drop = DropGroup(old, old, ("x", 1))
    first = scene.order(drop)
    new = scene.form("jobs", "x")
    before = scene.group(new)
    assert first == scene.order(drop)
    assert not scene.order(ProposeView(old, old, "x", (("x", 1),), 1, ("x", 1)))["ok"]
    assert not scene.order(ActivateView(((old, old),)))["ok"]
    assert not scene.order(ContinueGroup(old, old, "x", (("x", 1),)))["ok"]
    assert before == scene.group(new)


def test_a_group_is_not_dropped_by_others_or_while_a_view_is_pending() -> None:
    scene = scene_with_nodes()
    group_id = scene.form("jobs", "x")
    assert not scene.order(DropGroup(group_id, group_id, ("y", 1)))["ok"]
    assert not scene.order(DropGroup(group_id, group_id, ("a", 1)))["ok"]
    assert not scene.order(DropGroup(group_id, group_id - 1, ("x", 1)))["ok"]
    scene.propose(group_id, ("x", 1), ("y", 1))
    assert not scene.order(DropGroup(group_id, group_id, ("x", 1)))["ok"]


def test_the_name_server_gives_up_a_group_only_when_nothing_of_it_is_left() -> None:
    scene, group_id = scene_with_lost_quorum()
    drop = DropGroup(group_id, scene.group(group_id).newest_epoch, ("a", 1))
    assert not scene.order(drop)["ok"]
    scene.order(NodeGone("y", 1))
    assert scene.order(drop)["ok"]
    scene.form("jobs", "z")


def test_a_group_that_waits_is_never_given_up() -> None:
    scene, group_id = scene_with_lost_quorum(on_quorum_lost="wait")
    scene.order(NodeGone("y", 1))
    assert not scene.order(DropGroup(group_id, scene.group(group_id).newest_epoch, ("a", 1)))["ok"]
