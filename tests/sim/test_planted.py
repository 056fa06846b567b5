"""Every short cut of the design that concerns domain, leases and election is planted, and must be caught."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from groupsvc.testing.sim.planted import ALL, UNSORTED, Planted, caught


@pytest.mark.parametrize("bug", ALL, ids=[bug.name for bug in ALL])
def test_a_planted_bug_breaks_a_promise(bug: Planted) -> None:
    failure = caught(bug)
    assert failure is not None, f"nothing shows that {bug.goes_wrong}"
    assert failure.invariant in bug.shown_by


def test_a_core_that_depends_on_the_order_of_a_set_gives_another_trace() -> None:
    """X3: the comparison of traces under different hash seeds is not blind."""
    assert _digests("1") == _digests("1")
    assert _digests("1", "--plant", UNSORTED.name) != _digests("2", "--plant", UNSORTED.name)
    assert _digests("1") == _digests("2")


def _digests(hash_seed: str, *options: str) -> str:
    command = [sys.executable, "-m", "groupsvc.testing.sim", "digest", "--seeds", "3", *options]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=120).stdout
