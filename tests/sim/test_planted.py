"""Every short cut of the design is planted, in the domain and in the streams of groups, and must be caught."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from groupsvc.testing.sim.checkers import GROUPS as CHECKERS_OF_GROUPS
from groupsvc.testing.sim.plan import Plan
from groupsvc.testing.sim.planted import (
    ALL,
    APPLICATIONS,
    BARRIERS,
    BY_NAME,
    GROUPS,
    TASKS,
    UNSORTED,
    Planted,
    broken_promises,
    caught,
)
from groupsvc.testing.sim.world import Failure

ONLY_IN_EDITED_HISTORIES = {"L1", "V2", "B4", "B6", "K2"}
"""Checkers that no bug here has to turn red, only one of several; ``checkers/test_group_*.py`` have what does."""

STAGED = (*GROUPS, *APPLICATIONS, *BARRIERS, *TASKS)

OF_APPLICATIONS = {*(f"G{number}" for number in range(1, 12)), "K1", "K2", "B1", "B5", "L6"}
"""What is checked of what applications call and are told."""


@pytest.mark.parametrize("bug", ALL, ids=[bug.name for bug in ALL])
def test_a_planted_bug_breaks_a_promise(bug: Planted) -> None:
    found = caught(bug)
    assert found is not None, f"nothing shows that {bug.goes_wrong}"
    assert found[1].invariant in bug.shown_by


def worlds() -> dict[str, Plan]:
    """The worlds in which bugs show themselves, each once, by the names of the bugs."""
    bugs_in: dict[str, list[Planted]] = {}
    for bug in STAGED:
        bugs_in.setdefault(repr(bug.plan(bug.first_seed)), []).append(bug)
    return {" ".join(bug.name for bug in bugs): bugs[0].plan(bugs[0].first_seed) for bugs in bugs_in.values()}


@pytest.mark.parametrize("plan", worlds().values(), ids=worlds().keys())
def test_the_same_world_without_the_bug_keeps_its_promises(plan: Plan) -> None:
    """What turns red is the bug, and not the world that was made for it, whenever one looks."""
    assert [] == list(broken_promises(plan))


def test_a_core_into_which_a_bug_does_not_fit_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It breaks in every world, and leaves some of them as if a promise had been broken."""
    broken = [Failure("engine", "TypeError: say_held() takes 1 argument", 0.5), Failure("L3", "a promise", 0.4)]
    monkeypatch.setattr("groupsvc.testing.sim.planted.bug.broken_promises", lambda plan: broken)
    assert caught(BY_NAME["group-holds-below-promise"]) is None


def test_each_checker_of_groups_is_the_one_to_see_some_bug() -> None:
    """V1, V3-V7, B1-B3, B5, L2-L6, S1, S2: a checker without a red run counts as absent."""
    alone = {bug.shown_by[0] for bug in GROUPS if len(bug.shown_by) == 1}
    assert set() == set(CHECKERS_OF_GROUPS) - alone - ONLY_IN_EDITED_HISTORIES


def test_each_checker_of_applications_is_the_one_to_see_some_bug() -> None:
    """G1-G11, K1, K2, B1, B5, L6."""
    alone = {bug.shown_by[0] for bug in APPLICATIONS if len(bug.shown_by) == 1}
    assert set() == OF_APPLICATIONS - alone


def test_each_checker_of_barriers_is_the_one_to_see_some_bug() -> None:
    """R1-R6."""
    alone = {bug.shown_by[0] for bug in (*BARRIERS, *TASKS) if len(bug.shown_by) == 1}
    assert {f"R{number}" for number in range(1, 7)} == alone


def test_a_core_that_depends_on_the_order_of_a_set_gives_another_trace() -> None:
    """X3: the comparison of traces under different hash seeds is not blind."""
    without = _digests("1")
    assert without == _digests("1")
    assert without == _digests("2")
    assert _digests("1", "--plant", UNSORTED.name) != _digests("2", "--plant", UNSORTED.name)


def _digests(hash_seed: str, *options: str) -> str:
    command = [sys.executable, "-m", "groupsvc.testing.sim", "digest", "--seeds", "3", *options]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120).stdout
