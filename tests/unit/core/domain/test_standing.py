"""Who is the better candidate: a total order that every voter works out alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.domain.standing import NEVER, Standing, priority_of
from groupsvcd.core.parameters import Parameters

STANDINGS = st.builds(
    Standing,
    name=st.sampled_from("ABC"),
    failed=st.integers(0, 2),
    pinned=st.booleans(),
    priority=st.integers(-1, 2),
)


@given(one=STANDINGS, other=STANDINGS, third=STANDINGS)
def test_of_two_candidates_exactly_one_is_better(one: Standing, other: Standing, third: Standing) -> None:
    """And better than better is better: no three voters can each wait for the next."""
    if one.name != other.name:
        assert one.better_than(other) != other.better_than(one)
    assert not one.better_than(one)
    if one.better_than(other) and other.better_than(third):
        assert one.better_than(third)


def test_who_cannot_get_through_stops_standing_in_the_way() -> None:
    """One failure outweighs everything the administrator wished for."""
    assert Standing("C", 0, False, 0).better_than(Standing("A", 1, True, 9_000_000))


def test_pinned_comes_before_priority_and_priority_before_the_name() -> None:
    assert Standing("C", 0, True, 0).better_than(Standing("A", 0, False, 9))
    assert Standing("C", 0, False, 9).better_than(Standing("A", 0, False, 8))
    assert Standing("A", 0, False, 9).better_than(Standing("C", 0, False, 9))


def test_preference_outweighs_anything_measured() -> None:
    preferred = priority_of(Parameters(node="A", preference=1))
    assert preferred > priority_of(Parameters(node="A", measured=10**9))


def test_who_is_no_candidate_is_below_everybody() -> None:
    """Whatever else is configured."""
    witness = Parameters(node="A", candidate=False, preference=9, measured=9)
    assert NEVER == priority_of(witness) < priority_of(Parameters(node="A", preference=-5, measured=-5))
