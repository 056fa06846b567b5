"""Each submitted number is numbered once, in its sender's order, and a forgotten sender stays forgotten."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.stream.duplicates import DuplicateFilter, Verdict
from groupsvcd.core.stream.entries import encode_entry

D = ("D", 4000)


@pytest.mark.parametrize(
    "n, verdict",
    [(3, Verdict.DUPLICATE), (5, Verdict.DUPLICATE), (6, Verdict.NEXT), (7, Verdict.GAP), (60, Verdict.GAP)],
)
def test_only_the_next_number_is_taken(n: int, verdict: Verdict) -> None:
    """D's last one in the log is 5."""
    assert verdict is DuplicateFilter({D: (5, 100)}, 1000).judge(D, n, 90, 101)


@pytest.mark.parametrize("n, verdict", [(1, Verdict.NEXT), (2, Verdict.TOO_OLD)])
def test_an_unknown_origin_may_only_begin(n: int, verdict: Verdict) -> None:
    """In the middle of its numbers it is one that was forgotten."""
    assert verdict is DuplicateFilter({}, 1000).judge(D, n, 90, 101)


def test_an_origin_that_is_known_to_be_new_may_come_out_of_order() -> None:
    """Its second command overtook the first: a gap, which closes when the first is repeated."""
    table = DuplicateFilter({}, 1000)
    table.welcome(D)
    assert Verdict.GAP is table.judge(D, 2, 90, 101)
    assert Verdict.NEXT is table.judge(D, 1, 90, 101)


def test_welcome_forgets_nothing() -> None:
    """The node list is read again by every new name server."""
    table = DuplicateFilter({D: (5, 100)}, 1000)
    table.welcome(D)
    assert 5 == table.last_n(D)


def test_what_was_sent_a_lifetime_ago_is_too_old() -> None:
    """Its origin may have been forgotten in between, so nobody can say whether it is a repetition."""
    table = DuplicateFilter({D: (5, 100)}, 1000)
    assert Verdict.NEXT is table.judge(D, 6, known_seq=100, next_seq=1100)
    assert Verdict.TOO_OLD is table.judge(D, 6, known_seq=100, next_seq=1101)
    assert Verdict.DUPLICATE is table.judge(D, 5, known_seq=100, next_seq=1101)


def test_the_table_is_a_function_of_the_log() -> None:
    """A new leader reads the entries that its directory has not applied yet; the leader's own have no origin."""
    table = DuplicateFilter({D: (5, 100)}, 1000)
    table.note(101, encode_entry("", 0, 0, b"the leader's own"))
    table.note(102, encode_entry("D", 4000, 6, b"body"))
    assert 6 == table.last_n(D)
    assert 0 == table.last_n(("", 0))
    assert 0 == table.last_n(("D", 4001))


@given(arrivals=st.lists(st.tuples(st.sampled_from("DE"), st.integers(1, 12)), max_size=120))
def test_every_number_is_ordered_at_most_once_and_in_order(arrivals: list[tuple[str, int]]) -> None:
    """Whatever is repeated, lost and overtaken."""
    table = DuplicateFilter({}, 1000)
    ordered: dict[str, list[int]] = {"D": [], "E": []}
    seq = 0
    for name, n in arrivals:
        if table.judge((name, 1), n, seq, seq + 1) is Verdict.NEXT:
            seq += 1
            table.ordered((name, 1), n, seq)
            ordered[name].append(n)
    for numbers in ordered.values():
        assert list(range(1, len(numbers) + 1)) == numbers
