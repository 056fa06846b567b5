"""R1 to R4 on the history of a run at barriers that was changed in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from groupsvc.testing.sim.checkers import check
from groupsvc.testing.sim.planted.barriers import MEETING
from groupsvc.testing.sim.trial import run_plan
from groupsvc.wire.history import HistoryEvent

VOTERS = ("n1", "n2", "n3")
Lines = Sequence[HistoryEvent]


@pytest.fixture(scope="module")
def meeting() -> Lines:
    """A history without faults."""
    world, trial = run_plan(MEETING.plan(1, ()))
    assert () == trial.failures
    return world.history.events()


def _changed(lines: Lines, is_it: Callable[[HistoryEvent], bool], **changes: Any) -> Lines:
    """The first such line is another."""
    place = next(number for number, line in enumerate(lines) if is_it(line))
    made = {name: change(getattr(lines[place], name)) for name, change in changes.items()}
    return [*lines[:place], msgspec.structs.replace(lines[place], **made), *lines[place + 1 :]]


def _of_one_round(lines: Lines, end: HistoryEvent, **changes: Any) -> Lines:
    """All who were told of this round are told something else."""

    def is_it(line: HistoryEvent) -> bool:
        return (line.op, line.result.get("round"), line.result.get("seq")) == (
            end.op, end.result["round"], end.result["seq"],
        )  # fmt: skip

    return [msgspec.structs.replace(line, result={**line.result, **changes}) if is_it(line) else line for line in lines]


def _found(lines: Lines, invariant: str) -> list[str]:
    return [one.text for one in check(lines, voters=VOTERS, converged=False) if one.invariant == invariant]


def _is_end(line: HistoryEvent, end: str, *, parties: int | None = None) -> bool:
    if line.op != "come_to_barrier" or line.result.get("end") != end or len(line.result["arrived"]) < 2:
        return False
    return parties is None or line.result["parties"] == parties


def test_the_history_itself_breaks_no_promise(meeting: Lines) -> None:
    assert [] == [text for invariant in ("R1", "R2", "R3", "R4") for text in _found(meeting, invariant)]


def test_r1_sees_that_somebody_is_released_with_who_had_not_come(meeting: Lines) -> None:
    end = next(line for line in meeting if _is_end(line, "released"))
    _, crc = end.result["arrived"][0]

    def is_it(line: HistoryEvent) -> bool:
        return line.type == "invoke" and line.args.get("payload") == crc

    lines = _changed(meeting, is_it, args=lambda args: {**args, "payload": 1})
    assert any("had not come" in text for text in _found(lines, "R1"))


def test_r1_sees_that_a_provider_was_not_waited_for(meeting: Lines) -> None:
    end = next(line for line in meeting if _is_end(line, "released", parties=0))
    gone, *others = end.result["arrived"]
    lines = _of_one_round(meeting, end, arrived=others)
    assert any(f"without {gone[0]}, which lives" in text for text in _found(lines, "R1"))


def test_r1_waits_for_nobody_whose_node_was_given_up_before_the_others_joined(meeting: Lines) -> None:
    """They are not told who was failing already, and who lives there need not know that it is out."""
    end = next(line for line in meeting if _is_end(line, "released", parties=0))
    (gone, _), *others = end.result["arrived"]
    group = next(line.group for line in meeting if line.type == "invoke" and _is_same_call(line, end))
    lines = _of_one_round(meeting, end, arrived=others)
    for taken_off, is_red in ((gone, False), (others[0][0], True)):
        found = _found(_without_node(lines, group, taken_off, end.result["seq"] - 1), "R1")
        assert is_red == any(f"without {gone}, which lives" in text for text in found)


def _is_same_call(line: HistoryEvent, end: HistoryEvent) -> bool:
    return (line.who, line.op, line.args.get("id")) == (end.who, end.op, end.args["id"])


def _without_node(lines: Lines, group: int, provider: str, seq: int) -> Lines:
    """The node of this provider is taken off the list of members with this entry; nothing is told of it later."""
    kept = [line for line in lines if (line.op, line.group) != ("members", group) or line.seq < seq]
    place = max(number for number, line in enumerate(kept) if (line.op, line.group) == ("members", group))
    node, inc, _ = provider.split("/")
    members = [one for one in kept[place].args["members"] if one != [node, int(inc)]]
    shorter = msgspec.structs.replace(kept[place], seq=seq, args={"members": members})
    return [*kept[: place + 1], shorter, *kept[place + 1 :]]


def test_r2_sees_two_ends_of_one_round(meeting: Lines) -> None:
    lines = _changed(
        meeting, lambda line: _is_end(line, "released"),
        result=lambda result: {**result, "arrived": result["arrived"][::-1]},
    )  # fmt: skip
    assert any("ended otherwise" in text for text in _found(lines, "R2"))


def test_r3_sees_that_what_failed_was_counted(meeting: Lines) -> None:
    lines = _changed(
        meeting, lambda line: _is_end(line, "released"), type=lambda _: "fail", result=lambda _: {"error": "TimedOut"}
    )
    assert any("ended with fail" in text for text in _found(lines, "R3"))


def test_r3_sees_that_a_party_is_told_of_an_earlier_round(meeting: Lines) -> None:
    lines = _changed(
        meeting, lambda line: _is_end(line, "released") and line.result["round"] > 3,
        result=lambda result: {**result, "round": 1},
    )  # fmt: skip
    assert any("an earlier call of it" in text for text in _found(lines, "R3"))


def test_r4_sees_a_call_that_takes_longer_than_its_time(meeting: Lines) -> None:
    lines = _changed(
        meeting, lambda line: line.type == "invoke" and line.op == "come_to_barrier",
        args=lambda args: {**args, "timeout": -1.0},
    )  # fmt: skip
    assert any("its time was -1.000 s" in text for text in _found(lines, "R4"))


def test_r4_sees_that_somebody_is_said_to_have_given_up_and_has_not(meeting: Lines) -> None:
    end = next(line for line in meeting if line.result.get("broken_by") == "timeout")
    lines = _of_one_round(meeting, end, by=["nobody"])
    assert any("which has not given up" in text for text in _found(lines, "R4"))


def test_r4_sees_that_not_all_are_released_when_all_is_well(meeting: Lines) -> None:
    last = next(line for line in meeting if line.type == "invoke" and "last" in line.args)

    def is_it(line: HistoryEvent) -> bool:
        return line.type == "ok" and (line.who, line.args.get("id")) == (last.who, last.args["id"])

    lines = _changed(meeting, is_it, type=lambda _: "info")
    assert any("all is well" in text for text in _found(lines, "R4"))
