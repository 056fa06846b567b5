"""Whether one log has what was delivered from another: by the views in it alone."""

from __future__ import annotations

import pytest

from groupsvcd.core.stream.heritage import has_beginning

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
