"""The runner finds planted bugs, cuts them short, says how to see them again, and keeps its books."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from groupsvc.testing.sim import Plan, World, converge, draw, run_plan, run_seed, shortest_prefix
from groupsvc.testing.sim import ledger as books
from groupsvc.testing.sim.__main__ import main
from groupsvc.testing.sim.clients import Habits
from groupsvc.testing.sim.marks import FAULT_MARKS, REQUIRED, missing
from groupsvc.testing.sim.plan import FIRST_WITH_DRAINS, has_applications, has_groups
from groupsvc.testing.sim.runner import Order, check_determinism, run
from groupsvc.testing.sim.trial import judge_nothing

TOYS = "tests.sim.toy_engine"
TOY = f"{TOYS}:ToyEngine"


def _plan(**changes: object) -> Plan:
    values: dict[str, object] = {"seed": 1, "seconds": 25.0, "habits": Habits(count=2)}
    return Plan(**{**values, **changes})  # type: ignore[arg-type]


def test_an_exception_in_a_step_is_found_with_its_traceback() -> None:
    _, trial = run_plan(_plan(), engine=f"{TOYS}:BrokenEngine", judge=judge_nothing)
    assert "engine" == trial.failures[0].invariant
    assert "a hundred beats are too many" in trial.failures[0].text


def test_an_engine_that_spins_is_found() -> None:
    _, trial = run_plan(_plan(seconds=2.0), engine=f"{TOYS}:SpinningEngine", judge=judge_nothing)
    assert "ticks without end" in trial.failures[0].text


def test_a_daemon_that_does_not_answer_is_found() -> None:
    """K1: every call ends."""
    _, trial = run_plan(_plan(), engine=f"{TOYS}:MuteEngine", judge=judge_nothing)
    assert "K1" == trial.failures[0].invariant


def test_a_domain_whose_lists_miss_a_node_has_not_converged() -> None:
    """V7."""
    world = World(1, 3, engine=f"{TOYS}:NarrowEngine")
    world.run(until=2.0)
    assert not converge(world, within=5.0)
    assert "V7" == world.failures[0].invariant
    assert "wrong about [('n3'" in world.failures[0].text


def test_the_shortest_prefix_ends_with_the_event_that_fails() -> None:
    plan = _plan()
    engine = f"{TOYS}:BrokenEngine"
    _, trial = run_plan(plan, engine=engine, judge=judge_nothing)
    prefix = shortest_prefix(plan, trial, engine=engine, judge=judge_nothing)
    assert prefix.events <= trial.events
    _, one_less = run_plan(plan, engine=engine, judge=judge_nothing, events_max=prefix.events - 1)
    _, again = run_plan(plan, engine=engine, judge=judge_nothing, events_max=prefix.events)
    assert () == one_less.failures
    assert prefix.failure == again.failures[0]


def test_a_failing_sample_ends_with_code_1_and_tells_how_to_replay(tmp_path: Path) -> None:
    out = io.StringIO()
    ledger = tmp_path / "ledger.ndjson"
    order = Order(seeds=2, first=11, jobs=1, engine=f"{TOYS}:BrokenEngine", checked=False, ledger=ledger)
    assert 1 == run(order, out)
    assert "seed 11 failed" in out.getvalue()
    assert "shortest prefix" in out.getvalue()
    assert f"replay 11 --engine {TOYS}:BrokenEngine --unchecked" in out.getvalue()
    assert (2, 2) == books.seeds_so_far(ledger, books.protocol_version())


def test_a_good_sample_ends_with_code_0_and_adds_up_in_the_ledger(tmp_path: Path) -> None:
    ledger = tmp_path / "books" / "ledger.ndjson"
    out = io.StringIO()
    for first in (23, 24):
        assert 0 == run(Order(seeds=1, first=first, jobs=1, engine=TOY, checked=False, ledger=ledger), out)
    assert (2, 0) == books.seeds_so_far(ledger, books.protocol_version())
    assert "2 seeds of this protocol so far, 0 failed" in out.getvalue()
    assert "steps and" in out.getvalue()


def test_the_ledger_counts_the_worlds_with_groups_and_with_applications(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.ndjson"
    assert 0 == run(Order(seeds=8, jobs=1, engine=TOY, checked=False, ledger=ledger), io.StringIO())
    plans = [draw(seed) for seed in range(8)]
    with_groups = sum(bool(plan.group_habits.groups) for plan in plans)
    with_applications = sum(bool(plan.application_habits.count) for plan in plans)
    assert 8 > with_groups > with_applications > 0
    total = books.sums(ledger)[books.protocol_version()]
    assert (with_groups, with_applications) == (total.with_groups, total.with_applications)
    assert (8, 8, 0) == (total.knew_groups, total.knew_applications, total.drawn_again)
    assert f"in whose world are groups: {with_groups} seeds, applications: {with_applications}" == total.describe()[2]


@pytest.mark.parametrize("seed", [0, 7, 300_000])
def test_whether_a_world_has_groups_and_applications_is_known_without_its_plan(seed: int) -> None:
    for one in range(seed, seed + 40):
        plan = draw(one)
        assert (plan.group_habits.groups > 0, plan.application_habits.count > 0) == (
            has_groups(one), has_applications(one),
        )  # fmt: skip


def test_the_ledger_tells_simulators_and_worlds_apart_in_older_lines_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger.ndjson"
    line = '{"protocol":"1-%s","first":40,"seeds":30,"failed":[],"result":"ok"%s}\n'
    ledger.write_text(
        line % ("domain", "")
        + line % ("groups", ',"marks":{"group-formed":5}')
        + line % ("applications", ',"marks":{"group-formed":5,"app-connected":2}')
        + line % ("applications", ',"marks":{"group-formed":5},"with_groups":11,"with_applications":3')
    )
    seeds = range(40, 70)
    groups, applications = sum(map(has_groups, seeds)), sum(map(has_applications, seeds))
    assert 30 > groups > applications > 0
    found = {
        protocol: (one.knew_groups, one.knew_applications, one.with_groups, one.with_applications, one.drawn_again)
        for protocol, one in books.sums(ledger).items()
    }
    assert {
        "1-domain": (0, 0, 0, 0, 0),
        "1-groups": (30, 0, groups, 0, 30),
        "1-applications": (60, 60, groups + 11, applications + 3, 30),
    } == found
    assert 0 == main(["ledger", str(ledger)])
    assert [
        "all 3 protocols",
        "  120 seeds in 4 samples, 0 failed, 0 simulated s",
        "  of a simulator that has groups: 90 seeds, applications: 60",
        f"  in whose world are groups: {2 * groups + 11} seeds, applications: {applications + 3}"
        " (60 seeds are of lines that do not say it, and were drawn again)",
        "  faults: not counted",
        "  marks: app-connected 2, group-formed 15",
    ] == capsys.readouterr().out.splitlines()[-6:]


def test_what_is_drawn_again_is_what_was_written() -> None:
    """Else the sums of older lines would be wrong: the draws that decide it must never change."""
    file = Path(__file__).parents[2] / "docs/ledger/sim.ndjson"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    written = [line for line in lines if "with_groups" in line]
    assert len(written) >= 20
    for line in written:
        seeds = range(line["first"], line["first"] + line["seeds"])
        drawn = (sum(map(has_groups, seeds)), sum(map(has_applications, seeds)))
        assert (line["with_groups"], line["with_applications"]) == drawn, seeds


def test_two_processes_share_the_seeds() -> None:
    out = io.StringIO()
    assert 0 == run(Order(seeds=3, first=23, jobs=2, engine=TOY, checked=False), out)
    assert "3 seeds, 0 failed" in out.getvalue()


def test_time_that_is_up_ends_a_sample_early() -> None:
    out = io.StringIO()
    assert 0 == run(Order(seeds=500, first=23, jobs=1, engine=TOY, checked=False, minutes=0.0), out)
    assert "500 seeds" not in out.getvalue()


def test_determinism_is_checked_over_processes() -> None:
    """X3."""
    out = io.StringIO()
    assert 0 == check_determinism(Order(seeds=2, engine=TOY), out)
    assert "2 seeds gave the same trace twice" in out.getvalue()


def test_replay_writes_the_trace_and_tells_the_play(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.ndjson"
    options = ["replay", "23", "--engine", TOY, "--unchecked", "--until", "3", "--log", "--trace", str(trace)]
    assert 0 == main(options)
    assert "n1 -> all: LeaderAlive" in capsys.readouterr().out
    assert trace.read_bytes().startswith(b'{"v":1,"i":0,')


def test_marks_that_were_not_hit_are_named() -> None:
    assert ["a"] == missing({"b": 2}, ("a", "b"))
    assert "fault kill" in REQUIRED


def test_plans_cover_all_sizes_and_all_nemeses() -> None:
    plans = [draw(seed) for seed in range(300)]
    assert {1, 2, 3, 5} == {plan.voters for plan in plans}
    assert max(plan.nodes for plan in plans) > 20
    later = [draw(seed) for seed in range(FIRST_WITH_DRAINS, FIRST_WITH_DRAINS + 30)]
    faults = {f"fault {name}" for plan in (*plans, *later) for name in plan.faults}
    assert set(FAULT_MARKS) == faults
    troubled = [plan for plan in plans if plan.application_habits.count and plan.application_habits.trouble_s]
    assert len(plans) / 4 < len(troubled)


def test_the_ledger_sums_marks_and_faults_by_protocol_and_still_reads_lines_without(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.ndjson"
    ledger.write_text('{"protocol":"1-old","first":0,"seeds":7,"failed":[3],"result":"failed"}\n')
    order = Order(seeds=1, jobs=1, engine=TOY, checked=False, ledger=ledger)
    assert [0, 0] == [run(order, io.StringIO()) for _ in range(2)]
    old, new = books.sums(ledger)["1-old"], books.sums(ledger)[books.protocol_version()]
    assert (1, 7, 1, {}, {}) == (old.samples, old.seeds, old.failed, old.marks, old.faults)
    assert (2, 2, 0) == (new.samples, new.seeds, new.failed)
    once = run_seed(0, engine=TOY, judge=judge_nothing).marks
    assert {name: 2 * n for name, n in once.items()} == {
        **new.marks,
        **{f"fault {k}": n for k, n in new.faults.items()},
    }
    assert new.faults
    assert "7 seeds in 1 samples, 1 failed, 0 simulated s" == old.describe()[0]
