"""X3: the same seed gives the same trace, byte for byte, whatever the hash seed of the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from groupsvc.testing.sim import draw, run_plan
from groupsvc.testing.sim.trial import judge_nothing, trace_digest
from groupsvc.testing.sim.world import ENGINE

ROOT = Path(__file__).resolve().parents[2]
TOY = "tests.sim.toy_engine:ToyEngine"


def _digests_with_hash_seed(hash_seed: str, engine: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'daemon'}"}
    command = [sys.executable, "-m", "groupsvc.testing.sim", "digest", "--seeds", "4", "--engine", engine]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("engine", [TOY, ENGINE])
def test_a_trace_does_not_depend_on_the_hash_seed(engine: str) -> None:
    first = _digests_with_hash_seed("1", engine)
    assert 4 == len(first.splitlines())
    assert first == _digests_with_hash_seed("4242", engine)


def test_running_a_seed_twice_in_one_process_gives_the_same_bytes() -> None:
    worlds = [run_plan(draw(11), engine=TOY, judge=judge_nothing)[0] for _ in range(2)]
    assert list(worlds[0].history.lines()) == list(worlds[1].history.lines())


def test_another_seed_gives_another_trace() -> None:
    digests = {trace_digest(run_plan(draw(seed), engine=TOY, judge=judge_nothing)[0]) for seed in (1, 2, 3)}
    assert 3 == len(digests)


def test_a_prefix_of_a_run_has_a_prefix_of_its_history() -> None:
    whole, _ = run_plan(draw(5), engine=TOY, judge=judge_nothing)
    part, _ = run_plan(draw(5), engine=TOY, judge=judge_nothing, events_max=500)
    assert 500 == part.processed
    assert list(whole.history.lines())[: len(part.history)] == list(part.history.lines())
