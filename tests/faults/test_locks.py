"""What judges the locks of a run is shown what it must refuse, by the door through which histories of runs come."""

from __future__ import annotations

from typing import Any

import pytest

from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent

from .judging import Finding, judge

ABOUT = {"voters": ["n1"], "lease": 2.0, "converged": False}

Line = tuple[float, str, str, dict[str, Any]]
"""When, ``lock`` or ``use``, who, and what."""


def has(t: float, who: str, fence: int, asked: float) -> Line:
    return (t, "lock", who, {"what": "has", "fence": fence, "asked": asked})


def held(t: float, who: str, fence: int) -> Line:
    return (t, "lock", who, {"what": "held", "fence": fence})


def used(t: float, who: str, fence: int, *, is_taken: bool = True) -> Line:
    return (t, "use", who, {"what": "use", "fence": fence, "is_taken": is_taken})


FIRST = [has(1.0, "a", 7, asked=0.5), used(1.1, "a", 7), held(1.2, "a", 7), used(1.3, "a", 7)]
THEN = [has(2.0, "b", 8, asked=0.6), used(2.1, "b", 8), held(2.2, "b", 8)]
GOOD: list[Line] = [*FIRST, *THEN, used(2.3, "a", 7, is_taken=False), has(3.0, "a", 9, asked=2.5), held(3.1, "a", 9)]
"""A has it and uses it, then B; A is late with a use, which the resource refuses; then A again."""


def judged(lines: list[Line]) -> list[Finding]:
    """All that is found in a run with these lines."""
    history = [HistoryEvent(v=SCHEMA_VERSION, i=0, t=0.0, who="sim", op="run", args=ABOUT)]
    for i, (t, op, who, args) in enumerate(lines, start=1):
        history.append(HistoryEvent(v=SCHEMA_VERSION, i=i, t=t, local=t, who=who, op=op, args=args))
    return judge(history)


def test_turns_one_after_the_other_are_no_finding() -> None:
    """L6."""
    assert [] == judged(GOOD)


@pytest.mark.parametrize(
    "lines, at, words",
    [
        ([*FIRST, *THEN, used(2.3, "a", 7)], 8, "a used it with fence 7, after 8"),
        ([*FIRST, *THEN, held(2.3, "a", 7)], 8, "a holds it by 7, and 8 was had before"),
        ([*FIRST, has(2.0, "b", 7, asked=1.5)], 5, "b and a both have fence 7"),
        ([*FIRST, has(2.0, "a", 7, asked=1.5)], 5, "a and a both have fence 7"),
        ([*THEN, has(3.0, "a", 7, asked=2.5)], 4, "a has fence 7; before it asked somebody had 8"),
    ],
    ids=["a-use-goes-back", "two-hold-it", "two-have-one-fence", "one-fence-twice", "a-fence-goes-back"],
)
def test_a_history_of_a_lock_that_was_edited_turns_red(lines: list[Line], at: int, words: str) -> None:
    """L6: found by its line, and nothing else is."""
    assert [Finding("L6", words, at)] == judged(lines)


def test_a_smaller_fence_that_was_asked_for_before_the_larger_one_was_had_is_no_finding() -> None:
    """L6: A had it first and was late to say so; nobody knows better."""
    assert [] == judged([has(2.0, "b", 8, asked=0.6), has(2.1, "a", 7, asked=0.5)])
