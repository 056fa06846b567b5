"""The simulator costs little per step; this guards against a ten-fold slowdown only."""

from __future__ import annotations

import pytest

from groupsvc.testing.sim import Habits, Plan, run_plan
from groupsvc.testing.sim.trial import judge_nothing
from groupsvc.testing.sim.world import ENGINE


@pytest.mark.timing
@pytest.mark.parametrize("engine, steps_per_s", [("tests.sim.toy_engine:ToyEngine", 7_000), (ENGINE, 2_000)])
def test_steps_are_cheap(engine: str, steps_per_s: int) -> None:
    plan = Plan(seed=1, nodes=5, voters=3, seconds=60.0, habits=Habits(count=3))
    _, trial = run_plan(plan, engine=engine, judge=judge_nothing)
    assert trial.steps / trial.ran_s > steps_per_s
