"""R5 and R6 on the history of a run with tasks that were replaced, which was changed in one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from groupsvc.testing.sim.checkers import check
from groupsvc.testing.sim.planted.tasks import REPLACED
from groupsvc.testing.sim.trial import run_plan
from groupsvc.wire.history import HistoryEvent

VOTERS = ("n1", "n2", "n3")
Lines = Sequence[HistoryEvent]


@pytest.fixture(scope="module")
def replaced() -> Lines:
    """Tasks died and stood still, and others came in their places."""
    world, trial = run_plan(REPLACED.plan(0, ()))
    assert () == trial.failures
    assert 0 < trial.marks["task-replaced"] <= trial.marks["task-fenced"]
    return world.history.events()


def _changed(lines: Lines, is_it: Callable[[HistoryEvent], bool], **changes: Callable[[Any], Any]) -> Lines:
    """The last such line is another."""
    place = max(number for number, line in enumerate(lines) if is_it(line))
    made = {name: change(getattr(lines[place], name)) for name, change in changes.items()}
    return [*lines[:place], msgspec.structs.replace(lines[place], **made), *lines[place + 1 :]]


def _found(lines: Lines, invariant: str, *, converged: bool = False) -> list[str]:
    return [one.text for one in check(lines, voters=VOTERS, converged=converged) if one.invariant == invariant]


def _is_kept(line: HistoryEvent) -> bool:
    return (line.op, line.type) == ("ask_round", "ok")


def _is_released(line: HistoryEvent) -> bool:
    return (line.op, line.type) == ("come_to_barrier", "ok")


def _invoke_of(lines: Lines, end: HistoryEvent) -> HistoryEvent:
    return next(
        line for line in lines
        if line.type == "invoke" and (line.who, line.op, line.args["id"]) == (end.who, end.op, end.args["id"])
    )  # fmt: skip


def _says(lines: Lines, end: HistoryEvent, **args: Any) -> Lines:
    """Whoever was told of this end had said something else when it came."""
    invoke = _invoke_of(lines, end)
    return _changed(lines, lambda line: line is invoke, args=lambda said: {**said, **args})


def test_the_history_itself_breaks_no_promise(replaced: Lines) -> None:
    assert [] == [text for invariant in ("R5", "R6") for text in _found(replaced, invariant, converged=True)]


# --- R5 ---


def test_r5_sees_that_another_round_is_told(replaced: Lines) -> None:
    lines = _changed(replaced, _is_kept, result=lambda result: {**result, "round": result["round"] + 1})
    assert any("is told how round" in text for text in _found(lines, "R5"))


def test_r5_sees_that_a_round_is_told_otherwise_than_to_those_who_were_there(replaced: Lines) -> None:
    lines = _changed(replaced, _is_kept, result=lambda result: {**result, "arrived": result["arrived"][::-1]})
    assert any("otherwise than to those who were there" in text for text in _found(lines, "R5"))


def test_r5_sees_that_somebody_had_not_brought_what_is_kept(replaced: Lines) -> None:
    def other(result: dict[str, Any]) -> dict[str, Any]:
        (provider, _), *others = result["arrived"]
        return {**result, "arrived": [[provider, 1], *others]}

    lines = _changed(replaced, _is_kept, result=other)
    assert any("had come with 1, which it had not" in text for text in _found(lines, "R5"))


def test_r5_sees_that_two_who_ask_are_told_different_things_when_nobody_else_knows(replaced: Lines) -> None:
    *_, (asked, number) = [(line, line.result["round"]) for line in replaced if _is_kept(line)]
    first = next(line for line in replaced if _is_kept(line) and line.result["round"] == number)
    if first is asked:  # then somebody else asks for the same
        again = msgspec.structs.replace(
            _invoke_of(replaced, asked), args={**_invoke_of(replaced, asked).args, "id": 999}
        )
        replaced = [*replaced, again, msgspec.structs.replace(asked, args={**asked.args, "id": 999})]
    nobody_knows = [
        line for line in replaced if not (line.op == "come_to_barrier" and line.result.get("round") == number)
    ]
    lines = _changed(nobody_knows, _is_kept, result=lambda result: {**result, "parties": 2})
    assert any("is told otherwise than to " in text for text in _found(lines, "R5"))


def test_r5_sees_that_a_round_is_told_that_has_not_ended(replaced: Lines) -> None:
    lines = _changed(replaced, _is_kept, result=lambda result: {**result, "seq": 1})
    assert any("by a node that had come to 1" in text for text in _found(lines, "R5"))


def test_r5_sees_that_a_round_is_kept_that_was_not_to_be(replaced: Lines) -> None:
    kept = [line for line in replaced if _is_kept(line)][-1]
    crcs = {crc for _, crc in kept.result["arrived"]}
    lines = _changed(
        replaced, lambda line: line.type == "invoke" and line.args.get("payload") in crcs,
        args=lambda args: {**args, "on_failure": "continue"},
    )  # fmt: skip
    assert any("was not to be kept" in text for text in _found(lines, "R5"))


NOT_KEPT = {"error": "Failed", "not_kept": True, "lost_seq": 0, "is_fast": False}


@pytest.mark.parametrize("why, is_red", [({}, True), ({"lost_seq": 10**9}, False), ({"is_fast": True}, False)])
def test_r5_sees_that_what_is_kept_is_said_not_to_be(replaced: Lines, why: dict[str, Any], is_red: bool) -> None:
    lines = _changed(replaced, _is_kept, type=lambda _: "fail", result=lambda _: {**NOT_KEPT, **why})
    assert is_red == any("is told that it is not kept" in text for text in _found(lines, "R5"))


def test_r5_asks_for_nothing_that_the_node_had_not_heard_of(replaced: Lines) -> None:
    kept = [line for line in replaced if _is_kept(line)][-1]
    lines = _changed(replaced, _is_kept, type=lambda _: "fail", result=lambda _: NOT_KEPT)
    lines = _changed(
        lines, lambda line: line.op == "at_barrier" and (line.who, line.args["call"]) == (kept.who, kept.args["id"]),
        args=lambda args: {**args, "applied": 1},
    )  # fmt: skip
    assert [] == _found(lines, "R5")


def test_r5_asks_for_nothing_from_before_the_last_provider_left(replaced: Lines) -> None:
    """Who asks had joined with the entry by which that one left, and its node had heard of nothing since."""
    kept = [line for line in replaced if _is_kept(line)][-1]
    joined = next(
        line for line in replaced
        if (line.op, line.type, line.who) == ("join_group", "ok", kept.who) and line.result["m"] == kept.args["m"]
    )  # fmt: skip
    seq, me = joined.result["view"]["seq"], joined.result["provider"]
    lines = _changed(replaced, _is_kept, type=lambda _: "fail", result=lambda _: NOT_KEPT)
    lines = _changed(
        lines, lambda line: line.op == "at_barrier" and (line.who, line.args["call"]) == (kept.who, kept.args["id"]),
        args=lambda args: {**args, "applied": seq},
    )  # fmt: skip
    assert [] != _found(lines, "R5")
    others = [one[0] for one in joined.result["view"]["providers"] if one[0] != me]
    left = {"m": 1, "kind": "left", "view": 1, "fence": 1, "full": {"providers": others, "cause": "goodbye"}}
    told = msgspec.structs.replace(joined, op="told", type="event", seq=seq, crc=1, args=left, result={})
    assert [] == _found([*lines, msgspec.structs.replace(told, group=joined.group)], "R5")


# --- R6 ---


def test_r6_sees_that_a_rank_is_there_twice(replaced: Lines) -> None:
    end = [line for line in replaced if _is_released(line)][-1]
    lines = _says(replaced, end, rank=(_invoke_of(replaced, end).args["rank"] + 1) % 3)
    assert any("is released with ranks" in text for text in _found(lines, "R6"))


@pytest.mark.parametrize("more", [-1, 1])
def test_r6_sees_that_a_round_was_missed_or_is_done_twice(replaced: Lines, more: int) -> None:
    end = [line for line in replaced if _is_released(line)][-1]
    lines = _says(replaced, end, after=_invoke_of(replaced, end).args["after"] + more)
    assert any("knows rounds up to" in text for text in _found(lines, "R6"))


def test_r6_sees_that_somebody_counts_who_was_replaced(replaced: Lines) -> None:
    ends = [line for line in replaced if _is_released(line)]
    last = _invoke_of(replaced, ends[-1]).args
    before = [
        args for args in (_invoke_of(replaced, end).args for end in ends)
        if args["rank"] == last["rank"] and args["attempt"] != last["attempt"]
    ]  # fmt: skip
    assert before
    first = before[0]["attempt"]
    lines = _says(replaced, ends[-1], attempt=first)
    expected = f"counts attempt {first} of rank {last['rank']}, which attempt"
    assert any(expected in text for text in _found(lines, "R6"))


def test_r6_sees_that_two_of_one_rank_are_left(replaced: Lines) -> None:
    ended = next(
        line for line in replaced if line.op == "member_ended" and line.who.startswith("task-") and line.group
    )  # fmt: skip
    lines = [line for line in replaced if line is not ended]
    assert any("are both there as rank" in text for text in _found(lines, "R6", converged=True))
