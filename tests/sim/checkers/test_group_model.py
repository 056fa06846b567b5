"""The model by which the stories of applications are judged, on what it is fed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from groupsvc.testing.sim.checkers.group_model import GroupModel

VIEW: dict[str, Any] = {
    "providers": [["a/1/1", "anna", "", 3], ["b/1/1", "bert", "", 4]], "state": "", "version": 0,
    "default_vote": "approve",
}  # fmt: skip


def _change(model: GroupModel, batch: str) -> list[str]:
    """What cannot be about an attribute that is changed without a vote."""
    changes = [["batch", batch]]
    outcome = {
        "about": "attributes", "ballot": 9, "approved": True, "phases": 1, "reason": "one_phase", "votes": [],
        "joining": [], "leaving": [], "left_out": [], "state": None, "payload": "", "changes": changes, "cause": None,
    }  # fmt: skip
    found = [*model.begin_entry(), *model.happened("attributes", {"changes": changes}, 9), *model.ended(outcome, ())]
    return [invariant for invariant, _ in found]


@pytest.mark.parametrize("before, after", [("leaves", "joins"), ("both", "none"), ("both", "leaves")])
def test_a_change_of_the_rules_has_its_turn_by_those_of_before(before: str, after: str) -> None:
    """GS-29: a failure is being collected, so it waits; that it is not from now on does not matter to this turn."""
    model = GroupModel(VIEW, {"batch": before}, {"b/1/1": "failure"})
    assert [] == _change(model, after)


@pytest.mark.parametrize("before, after", [("joins", "leaves"), ("none", "both"), ("none", "joins")])
def test_g7_sees_a_change_of_the_rules_before_a_failure_that_nobody_collects(before: str, after: str) -> None:
    """GS-28: also where failures are collected from now on."""
    model = GroupModel(VIEW, {"batch": before}, {"b/1/1": "failure"})
    assert ["G7"] == _change(model, after)


def _opened(model: GroupModel, about: str) -> list[str]:
    """What cannot be about a ballot of this kind that is opened now."""
    proposal = {
        "about": about, "ballot": 9, "phase": 1, "electorate": ["a/1/1"], "leaving": [], "state": None,
        "time_limit": 2.0,
    }  # fmt: skip
    return [invariant for invariant, _ in (*model.begin_entry(), *model.proposed(proposal, 9, 0))]


@pytest.mark.parametrize("cause, about, expected", [
    ("node_failure", "state", []), ("node_failure", "join", ["G7"]), ("node_failure", "failure", []),
    ("failure", "state", ["G7"]), ("failure", "join", ["G7"]),
])  # fmt: skip
def test_in_an_exclusive_group_only_who_failed_with_its_node_is_passed(
    cause: str, about: str, expected: list[str]
) -> None:
    """GS-28, GS-30: it may hold something until its node is gone; and nobody joins while it is listed."""
    assert expected == _opened(GroupModel(VIEW, {"exclusive": True}, {"b/1/1": cause}), about)
    assert (["G7"] if about != "failure" else []) == _opened(GroupModel(VIEW, {}, {"b/1/1": cause}), about)


def test_g7_sees_somebody_join_while_a_failure_is_collected() -> None:
    """GS-30: be it for its batch."""
    model = GroupModel(VIEW, {"batch": "both"}, {"b/1/1": "failure"})
    assert ["G7"] == _opened(model, "join")
    assert [] == _opened(GroupModel(VIEW, {"batch": "both"}, {"b/1/1": "failure"}), "state")
