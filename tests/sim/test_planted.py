"""Every short cut of the design is planted, in the domain and in the streams of groups, and must be caught."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from groupsvc.testing.sim import run_plan
from groupsvc.testing.sim.checkers import GROUPS as CHECKERS_OF_GROUPS
from groupsvc.testing.sim.planted import ALL, APPLICATIONS, BARRIERS, GROUPS, UNSORTED, Planted, caught

ONLY_IN_EDITED_HISTORIES = {"L1", "V2", "B4", "B6", "K2"}
"""Checkers that no bug here has to turn red, only one of several; ``checkers/test_group_*.py`` have what does."""

STAGED = (*GROUPS, *APPLICATIONS, *BARRIERS)

OF_APPLICATIONS = {*(f"G{number}" for number in range(1, 12)), "K1", "K2", "B1", "B5", "L6"}
"""What is checked of what applications call and are told."""


@pytest.mark.parametrize("bug", ALL, ids=[bug.name for bug in ALL])
def test_a_planted_bug_breaks_a_promise(bug: Planted) -> None:
    found = caught(bug)
    assert found is not None, f"nothing shows that {bug.goes_wrong}"
    assert found[1].invariant in bug.shown_by


@pytest.mark.parametrize("bug", STAGED, ids=[bug.name for bug in STAGED])
def test_the_same_world_without_the_bug_keeps_its_promises(bug: Planted) -> None:
    """What turns red is the bug, and not the world that was made for it."""
    assert () == run_plan(bug.plan(bug.first_seed))[1].failures


def test_each_checker_of_groups_is_the_one_to_see_some_bug() -> None:
    """V1, V3-V7, B1-B3, B5, L2-L6, S1, S2: a checker without a red run counts as absent."""
    alone = {bug.shown_by[0] for bug in GROUPS if len(bug.shown_by) == 1}
    assert set() == set(CHECKERS_OF_GROUPS) - alone - ONLY_IN_EDITED_HISTORIES


def test_each_checker_of_applications_is_the_one_to_see_some_bug() -> None:
    """G1-G11, K1, K2, B1, B5, L6."""
    alone = {bug.shown_by[0] for bug in APPLICATIONS if len(bug.shown_by) == 1}
    assert set() == OF_APPLICATIONS - alone


def test_each_checker_of_barriers_is_the_one_to_see_some_bug() -> None:
    """R1-R4."""
    assert {"R1", "R2", "R3", "R4"} == {bug.shown_by[0] for bug in BARRIERS if len(bug.shown_by) == 1}


def test_a_core_that_depends_on_the_order_of_a_set_gives_another_trace() -> None:
    """X3: the comparison of traces under different hash seeds is not blind."""
    assert _digests("1") == _digests("1")
    assert _digests("1", "--plant", UNSORTED.name) != _digests("2", "--plant", UNSORTED.name)
    assert _digests("1") == _digests("2")


def _digests(hash_seed: str, *options: str) -> str:
    command = [sys.executable, "-m", "groupsvc.testing.sim", "digest", "--seeds", "3", *options]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120).stdout
