"""Whether one log has what was delivered from another: by the views in it alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.stream.heritage import common_beginning, has_beginning

VIEWS = ((7, 40), (9, 51), (12, 60))


@pytest.mark.parametrize(
    "view, seq, expected",
    [
        (7, 40, True),  # nothing but the first entry of the view
        (7, 50, True),  # all of view 7 that the log has
        (7, 51, False),  # one more
        (9, 55, True),
        (9, 60, False),
        (12, 70, True),
        (12, 71, False),  # more than there is
        (8, 45, False),  # a view that the log has never seen
        (3, 20, False),  # too long ago for anybody to know
        (0, 0, True),  # nothing was delivered
    ],
)
def test_a_log_has_a_beginning_if_its_newest_view_went_on_at_least_as_far(view: int, seq: int, expected: bool) -> None:
    """B6: the entries of one view are numbered by one leader, on a log that all have who accept it."""
    assert expected == has_beginning(VIEWS, 70, (view,), seq)


def test_a_log_without_views_has_nothing() -> None:
    """Who reports nothing has nothing."""
    assert not has_beginning((), 0, (7,), 1)
    assert has_beginning((), 0, (0,), 0)


@pytest.mark.parametrize(
    "newest, seq, expected",
    [
        (12, 65, 65),  # the checkpoint is in the middle of the view that is our newest
        (12, 99, 70),  # and behind all that we have of it
        (9, 55, 55),
        (9, 64, 59),  # our view 12 began on less of view 9 than the checkpoint has
        (7, 40, 40),
        (10, 55, 0),  # a view that we have not seen begin
        (13, 71, 0),
    ],
)
def test_a_checkpoint_stands_behind_what_we_have_of_its_newest_view(newest: int, seq: int, expected: int) -> None:
    """B3: what is not known to be stable is kept if it is in the log that we are to go on with."""
    assert expected == common_beginning(VIEWS, 70, newest, seq)


_Entry = tuple[int, int]  # the view it was numbered in, and its place in that view


def _views_in(log: tuple[_Entry, ...]) -> tuple[_Entry, ...]:
    return tuple((epoch, seq) for seq, (epoch, place) in enumerate(log, 1) if place == 0)


@given(st.data())
def test_however_views_go_on_from_one_another_what_is_called_common_is(data: st.DataObject) -> None:
    """B4. Each view begins with an entry of its own, on a beginning of any log, and is numbered by one leader."""
    logs: list[tuple[_Entry, ...]] = [()]
    for epoch in range(1, data.draw(st.integers(1, 6)) + 1):
        before = data.draw(st.sampled_from(logs))
        begun = before[: data.draw(st.integers(0, len(before)))]
        logs.append(begun + tuple((epoch, place) for place in range(data.draw(st.integers(1, 4)))))
    ours, theirs = (data.draw(st.sampled_from(logs[1:])) for _ in range(2))
    ours, theirs = (log[: data.draw(st.integers(1, len(log)))] for log in (ours, theirs))
    common = common_beginning(_views_in(ours), len(ours), theirs[-1][0], len(theirs))
    assert ours[:common] == theirs[:common]
    assert common or theirs[-1][0] not in dict(_views_in(ours))
