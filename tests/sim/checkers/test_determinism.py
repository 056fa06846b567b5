"""X3 turns red at the first byte that differs."""

from __future__ import annotations

from groupsvc.testing.sim.checkers import compare
from groupsvc.wire.history import to_line

from .story import changed, honest


def test_two_equal_traces_are_equal_as_events_and_as_bytes() -> None:
    assert [] == compare(honest(), honest())
    assert [] == compare(honest(), [to_line(line) for line in honest()])


def test_the_first_differing_line_is_named() -> None:
    (violation,) = compare(honest(), changed(honest(), 7, t=1.5))
    assert ("X3", 7) == (violation.invariant, violation.at)


def test_a_trace_that_ends_early_is_seen() -> None:
    (violation,) = compare(honest(), honest()[:-1])
    assert len(honest()) - 1 == violation.at
