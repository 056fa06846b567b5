"""A sample of what ``make faults`` does: real daemons and clients in networks of their own, some harm, all checkers.

The history of the first run is then edited, a line here and there, and must turn red: a checker that sees nothing in
lines of real processes would let everything pass. And two runs have a bug planted in their daemons: one that counts
votes wrongly, one that does not sync what it has acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from groupsvc.wire.history import HistoryEvent

from . import recording
from .judging import judge
from .runs import Result, Run
from .wires import Missing

pytestmark = pytest.mark.alone

SEED = 20
SECONDS = 7.0

POWER_SEED = 28
POWER_SECONDS = 6.5
CONTROLS_MAX = 3
"""The plan of this seed has the power fail once, after 5.2 s."""


def ran(directory: Path, *, seed: int = SEED, seconds: float = SECONDS, **what: Any) -> Result:
    """What came out of it; skipped, by name, where something is missing."""
    try:
        return Run(seed=seed, seconds=seconds, histories=directory, **what).go()
    except Missing as missing:
        pytest.skip(str(missing))


def assert_all_is_well(result: Result) -> None:
    """And there was something to judge."""
    assert [] == [str(finding) for finding in result.findings[:10]]
    assert result.strikes > 0
    assert result.counts.outcomes["ok"] > 50


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run in which daemons are killed, with its history."""
    return ran(tmp_path_factory.mktemp("histories"), nemesis="kill", workload="mix", keep=True)


def test_promises_are_kept_while_daemons_are_killed_and_all_is_well_afterwards(first: Result) -> None:
    """V1 … L7, G1 … R6, K1, K2, as far as histories of real runs tell; V7: at rest in bounded time."""
    assert_all_is_well(first)


@pytest.mark.parametrize("nemesis, workload", [("isolate-leader", "locks"), ("pause", "barriers")])
def test_promises_are_kept_and_all_is_well_again_afterwards(tmp_path: Path, nemesis: str, workload: str) -> None:
    """The same when the name server is cut off, or stands still."""
    assert_all_is_well(ran(tmp_path, nemesis=nemesis, workload=workload))


def test_what_was_acknowledged_is_there_after_all_machines_have_lost_their_power(tmp_path: Path) -> None:
    """S1: on file systems of their own, of which what was not synced is gone."""
    result = ran(tmp_path, nemesis="power-loss-all", workload="mix", seed=POWER_SEED, seconds=POWER_SECONDS)
    assert_all_is_well(result)
    assert result.bites == result.run.nodes * result.strikes


def test_a_store_that_does_not_sync_is_found_by_a_loss_of_power(tmp_path: Path) -> None:
    """S1: the negative control of the test before. What was not on the disk may be what nobody asks for: then again."""
    for seed in range(POWER_SEED, POWER_SEED + CONTROLS_MAX):
        result = ran(
            tmp_path, nemesis="power-loss-all", workload="multicast", seed=seed, seconds=POWER_SECONDS,
            plant="syncs-now-and-then",
        )  # fmt: skip
        assert result.bites == result.run.nodes * result.strikes > 0
        if result.findings:
            return
    pytest.fail(f"nobody has noticed in {CONTROLS_MAX} runs")


def test_a_bug_that_is_planted_in_the_daemons_is_found(tmp_path: Path) -> None:
    """G3."""
    result = ran(tmp_path, nemesis="none", workload="ballots", plant="app-tally-forgets-rejections")
    assert "G3" in {finding.rule for finding in result.findings}


# --- Edited histories -------------------------------------------------------------------------------------------

History = Sequence[HistoryEvent]
_replace = msgspec.structs.replace


def changed(history: History, line: HistoryEvent, **fields: Any) -> list[HistoryEvent]:
    """The same, with one line that says something else."""
    return [_replace(one, **fields) if one is line else one for one in history]


def without(history: History, is_one: Callable[[HistoryEvent], bool]) -> list[HistoryEvent]:
    """The same without such lines."""
    return [_replace(line, i=i) for i, line in enumerate(line for line in history if not is_one(line))]


def line_with(history: History, op: str, is_one: Callable[[HistoryEvent], bool] = lambda line: True) -> HistoryEvent:
    """The one in the middle of all that are like that."""
    found = [line for line in history if line.op == op and is_one(line)]
    return found[len(found) // 2]


def another_is_delivered(history: History) -> list[HistoryEvent]:
    """Of some entry a node has other bytes than all others."""
    line = line_with(history, "delivered", lambda line: line.group > 0 and line.n > 0)
    return changed(history, line, crc=line.crc ^ 1)


def one_is_left_out(history: History) -> list[HistoryEvent]:
    """A client is not told of a message."""
    line = line_with(history, "told", lambda line: line.args["kind"] == "message" and "full" not in line.args)
    return without(history, lambda one: one is line)


def two_lead(history: History) -> list[HistoryEvent]:
    """Somebody else has given a number, too."""
    line = line_with(history, "ordered", lambda line: line.group > 0)
    other = next(one for one in history if one.op == "boot" and one.node != line.node)
    return changed(history, line, node=other.node, inc=other.inc)


def spoken_before_it_was_on_disk(history: History) -> list[HistoryEvent]:
    """No promise is ever on a disk."""
    return without(history, lambda line: line.op == "persisted" and line.args["kind"] in ("promise", "open"))


def failed_and_happened(history: History) -> list[HistoryEvent]:
    """A client is answered that what all were told of has failed."""
    values = {line.args["full"]["value"] for line in history if line.op == "told" and line.args["kind"] == "state"
              and "full" in line.args}  # fmt: skip
    invoke = line_with(history, "propose_state", lambda line: line.type == "invoke" and line.args["value"] in values)
    end = next(line for line in history if line.type not in ("invoke", "event")
               and (line.who, line.args["id"]) == (invoke.who, invoke.args["id"]))  # fmt: skip
    return changed(history, end, type="fail", result={"error": "Failed"})


def two_are_not_at_rest(history: History) -> list[HistoryEvent]:
    """A daemon ends when all is over, and nobody notices."""
    last = history[-1]
    return [*history, _replace(last, i=last.i + 1, node="n1", who="daemon", type="event", op="crash", args={})]


def released_alone(history: History) -> list[HistoryEvent]:
    """Somebody is listed in a round to which it brought something else."""
    line = line_with(history, "come_to_barrier", lambda line: line.type == "ok")
    invoke = next(one for one in history if one.type == "invoke" and (one.who, one.args["id"]) == (
        line.who, line.args["id"]))  # fmt: skip
    return changed(history, invoke, args={**invoke.args, "payload": invoke.args["payload"] ^ 1})


def acts_after_a_failed_sync(history: History) -> list[HistoryEvent]:
    """A sync of somebody's disk fails, and it goes on as if nothing had happened."""
    line = line_with(history, "persisted", lambda line: line.args["seen"])
    failed = _replace(line, op="fsync_failed", args={}, group=0, epoch=0, seq=0)
    place = history.index(line)
    return [*history[:place], failed, *history[place:]]


def serves_what_is_damaged(history: History) -> list[HistoryEvent]:
    """A store found damage in a group, and its node speaks as a server of it."""
    line = line_with(history, "held", lambda line: line.group > 0)
    damaged = _replace(line, op="damaged", args={"what": "entry 7 is not as it was written"})
    place = history.index(line)
    return [*history[:place], damaged, *history[place:]]


def costs_a_full_disk_its_place(history: History) -> list[HistoryEvent]:
    """Nothing has happened but that disks were full, and a node is declared down."""
    return [_replace(line, op="disk-full") if line.who == "sim" and line.op == "kill" else line for line in history]


@pytest.mark.parametrize(
    "edit, rules",
    [
        (another_is_delivered, {"B4"}),
        (one_is_left_out, {"B5", "G1"}),
        (two_lead, {"L1"}),
        (spoken_before_it_was_on_disk, {"L2"}),
        (failed_and_happened, {"K1"}),
        (two_are_not_at_rest, {"V7"}),
        (released_alone, {"R1"}),
        (acts_after_a_failed_sync, {"S3"}),
        (serves_what_is_damaged, {"S2"}),
        (costs_a_full_disk_its_place, {"S4"}),
    ],
)
def test_a_history_that_was_edited_turns_red(
    first: Result, edit: Callable[[History], list[HistoryEvent]], rules: set[str]
) -> None:
    assert first.kept is not None
    found = {finding.rule for finding in judge(edit(recording.read(first.kept)))}
    assert found & rules, f"only {found} were found"
