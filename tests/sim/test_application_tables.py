"""Tables of simulated applications: the same everywhere, however each came by it; and G11 sees when they are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import msgspec
import pytest

from groupsvc.attributes import GroupAttributes
from groupsvc.sansio.event_buffer import EventBuffer
from groupsvc.testing.sim.applications import ApplicationHabits
from groupsvc.testing.sim.checkers import check
from groupsvc.testing.sim.planted.applications import TABLES
from groupsvc.testing.sim.trial import run_plan
from groupsvc.testing.sim.world import World
from groupsvc.wire.history import HistoryEvent

VOTERS = ("n1", "n2", "n3")

Lines = Sequence[HistoryEvent]


def _run(seed: int, *faults: str, **habits: object) -> World:
    stage = attrs.evolve(TABLES, applications=attrs.evolve(TABLES.applications, **habits))
    world, trial = run_plan(stage.plan(seed, faults))
    assert () == trial.failures
    assert trial.converged
    return world


def _tables(lines: Lines, did: str) -> list[HistoryEvent]:
    return [line for line in lines if line.op == "table" and line.args["did"] == did]


@pytest.mark.parametrize(
    "seed, faults", [(0, ()), (1, ("kill",)), (3, ("kill-group-leader", "pause")), (13, ("power-loss-all",))]
)
def test_all_providers_have_the_same_table_whoever_dies(seed: int, faults: tuple[str, ...]) -> None:
    """G11, SAM-08."""
    lines = _run(seed, *faults).history.events()
    assert _tables(lines, "applied")
    assert any(line.args["blocks"] > 1 for line in _tables(lines, "restored"))


def test_a_program_that_comes_back_goes_on_with_the_table_it_has() -> None:
    """SAM-15: it asks for the messages since; nothing is restored, and in the end it has what all have."""
    assert sum(_run(seed, count=4).marks.get("app-table-goes-on", 0) for seed in (3, 5, 6)) > 1


def test_a_flush_ends_with_its_part_if_what_its_table_has_before_it_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """K1: a program that was slow flushes; its table applies all that has gathered, and its events are too many."""
    world = World(5, 3, voters=3, drift=False)
    apps = world.applications
    monkeypatch.setattr(apps.deeds, "tables", {"apps-0"})
    monkeypatch.setattr(apps.deeds, "attributes", {"apps-0": GroupAttributes()})
    monkeypatch.setattr(apps.deeds, "_group", lambda: "apps-0")
    monkeypatch.setattr(apps.deeds, "_buffer", lambda: EventBuffer(12))
    world.run(until=2.0)
    slow, other = (apps.at(world.nodes[node], node) for node in ("n1", "n2"))
    for app in (slow, other):
        app.open_session()
        world.run(until=world.t + 1.0)
        apps.deeds._join(app)
        app.turn()
        world.run(until=world.t + 8.0)
    (part,), (others,) = slow.parts.values(), other.parts.values()
    slow.reads_again_at = slow.clock() + 100.0
    for _ in range(20):
        other.multicast(others, 1)
        world.run(until=world.t + 0.05)
    assert part.is_open
    slow.flush(part, 5.0)
    assert [] == world.failures
    assert ["invoke", "info"] == [line.type for line in world.history.events() if line.op == "flush"]
    assert {} == slow.parts


@pytest.fixture(scope="module")
def calm() -> Lines:
    """A history without faults."""
    return _run(0, trouble_s=0.0).history.events()


def _with(lines: Lines, which: Callable[[HistoryEvent], bool], **args: object) -> list[HistoryEvent]:
    place = next(number for number, line in enumerate(lines) if line.op == "table" and which(line))
    line = lines[place]
    return [*lines[:place], msgspec.structs.replace(line, args={**line.args, **args}), *lines[place + 1 :]]


def _red(lines: Lines) -> set[str]:
    return {found.invariant for found in check(lines, voters=VOTERS, converged=False)}


def test_g11_sees_a_table_that_is_not_what_it_was_restored_from(calm: Lines) -> None:
    assert set() == _red(calm)
    assert {"G11"} == _red(_with(calm, lambda line: line.args.get("blocks", 0) > 0, digest=1))


def test_g11_sees_a_write_that_was_applied_wrongly_though_nobody_else_is_there(calm: Lines) -> None:
    """What all writes add up to is the checker's own sum: a table is wrong also where there is no other to compare."""
    assert {"G11"} == _red(_with(calm, lambda line: line.args["did"] == "applied", digest=1))


def test_g11_sees_somebody_told_the_contrary_of_what_became_of_his_write(calm: Lines) -> None:
    assert {"G11"} == _red(_with(calm, lambda line: line.args.get("result") is True, result=False))


def test_g11_sees_two_writes_as_one_entry(calm: Lines) -> None:
    other = ["put", "a", "of nobody", None]
    assert "G11" in _red(_with(calm, lambda line: line.seq == 0 and "write" in line.args, write=other))


def test_who_keeps_no_table_writes_of_none() -> None:
    """A world of before has the same history."""
    assert (0.0, 0.0) == (ApplicationHabits().tables, ApplicationHabits().earlier)
    assert [] == [line for line in _run(0, tables=0.0).history.events() if line.op == "table"]
