"""A fair sample of seeds of the real thing; ``make sim`` runs as many as there is time for."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

import groupsvcd.core
from groupsvc.testing.sim import World, converge
from groupsvc.testing.sim.marks import ENGINE_MARKS, GROUP_MARKS, RARE_MARKS
from groupsvc.testing.sim.runner import Order, run
from groupsvc.testing.sim.trial import run_seed

SAMPLE = 300


@pytest.mark.timeout(900)  # a minute on two free cores; a shared machine may need far longer
def test_a_sample_of_seeds_breaks_no_promise_and_goes_everywhere() -> None:
    """V1-V4, V7, B1-B4, B6, L1-L5, L7, K1, S1; every mark of the engine and every nemesis is hit."""
    told = io.StringIO()
    assert 0 == run(Order(seeds=SAMPLE, jobs=2, marks_required=True), told), told.getvalue()


@pytest.mark.parametrize("seed", [373, 1545, 1636, 517])
def test_seeds_that_found_something_stay_green(seed: int) -> None:
    """V2, L3: a grant of long ago. S1: a leader counts itself by what was written while it had no lease."""
    assert () == run_seed(seed).failures


def test_every_mark_of_the_core_must_be_hit() -> None:
    """A place that is worth a mark is worth a seed that goes there."""
    core = "".join(path.read_text() for path in Path(next(iter(groupsvcd.core.__path__))).rglob("*.py"))
    written = set(re.findall(r"mark\(\s*\"([a-z-]+)\"", core))
    assert written
    assert set() == written - set(ENGINE_MARKS + GROUP_MARKS + RARE_MARKS)


def test_three_hundred_nodes_outlive_their_name_server() -> None:
    """GS-01, GS-08, GS-09: voters are few, nodes may be many."""
    world = World(1, 303, voters=3)
    assert world.run_until(lambda: world.name_server() is not None, within=10.0)
    world.run(until=world.t + 3.0)
    name_server = world.name_server()
    assert name_server is not None
    world.nodes[name_server].crash("killed")
    assert world.run_until(lambda: world.name_server() not in (None, name_server), within=5.0)
    world.run(until=world.t + 3.0)
    assert converge(world), world.failures
    assert [] == world.failures
