"""Who answered which call: that is all a name server's authority and everybody's presence rest on."""

from __future__ import annotations

import math

import pytest

from groupsvcd.core.domain.roll_call import RollCall
from groupsvcd.core.parameters import Parameters

B, C = ("B", 2000), ("C", 3000)


def _roll(voters: str = "ABC", claimed_at: float = 9.9, won_at: float = 10.0) -> RollCall:
    return RollCall(Parameters(node="A", voters=tuple(voters)), claimed_at, won_at)


def test_authority_counts_from_when_the_answered_call_was_sent() -> None:
    """Not from when the answer came: in between, a majority may have turned to somebody else."""
    roll = _roll()
    n = roll.call(10.0)
    assert roll.answer(B, n, True, 10.4)
    assert (n, 10.0) == (roll.backed_n, roll.backed_at)
    assert pytest.approx(1.6) == roll.good_for(10.4)
    assert 10.9 < roll.office_until < 11.0


def test_until_a_call_is_answered_office_rests_on_the_claim() -> None:
    """The promises were answers to it; but no call is backed yet."""
    roll = _roll(claimed_at=9.9)
    roll.call(10.0)
    assert (0, 9.9) == (roll.backed_n, roll.backed_at)


def test_a_majority_needs_the_second_of_five_voters_besides_ourselves() -> None:
    """The call that counts is one that so many answered, not the newest that anyone did."""
    roll = _roll("ABCDE")
    first, second = roll.call(10.0), roll.call(10.2)
    roll.answer(B, second, True, 10.3)
    assert 0 == roll.backed_n
    roll.answer(C, first, True, 10.3)
    assert (first, 10.0) == (roll.backed_n, roll.backed_at)


def test_our_own_answer_is_not_counted_twice() -> None:
    """A is part of the majority already."""
    roll = _roll()
    roll.answer(("A", 1000), roll.call(10.0), True, 10.1)
    assert 0 == roll.backed_n


def test_who_does_not_back_is_present_all_the_same() -> None:
    """A node that is no voter, or a voter without its state."""
    roll = _roll()
    assert roll.answer(B, roll.call(10.0), False, 10.1)
    assert 0 == roll.backed_n
    assert 10.1 == roll.last_seen(B)


def test_an_answer_to_a_call_of_long_ago_proves_nothing() -> None:
    """It was delayed for a minute, or is to no call of this term at all."""
    roll = _roll()
    n = roll.call(10.0)
    for i in range(1, 20):
        roll.call(10.0 + 0.2 * i)
    assert not roll.answer(B, n, True, 13.9)
    assert not roll.answer(B, 99, True, 13.9)
    assert 0 == roll.backed_n
    assert 10.0 == roll.last_seen(B)


def test_answers_out_of_order_never_take_authority_back() -> None:
    roll = _roll()
    first, second = roll.call(10.0), roll.call(10.2)
    roll.answer(B, second, True, 10.3)
    roll.answer(B, first, True, 10.4)
    assert second == roll.backed_n


def test_a_restarted_voter_backs_only_what_it_answers_itself() -> None:
    """In five voters: B's predecessor and C together are no majority."""
    roll = _roll("ABCDE")
    n = roll.call(10.0)
    roll.answer(B, n, True, 10.1)
    roll.forget("B")
    roll.answer(C, n, True, 10.1)
    assert 0 == roll.backed_n


def test_a_domain_of_one_backs_itself_for_ever() -> None:
    roll = _roll("A")
    n = roll.call(10.0)
    assert (n, math.inf) == (roll.backed_n, roll.office_until)


def test_overdue_is_who_cannot_have_a_lease_any_more_by_any_clock() -> None:
    """Lease and margin after it was last seen; a new term begins to count when it is won."""
    roll = _roll()
    assert not roll.overdue(B, 12.4)
    assert roll.overdue(B, 12.6)
    roll.answer(B, roll.call(11.0), True, 11.1)
    assert not roll.overdue(B, 13.5)
    assert roll.overdue(B, 13.7)


def test_time_in_which_the_name_server_did_not_run_is_held_against_nobody() -> None:
    """Everybody's answers wait in its own socket."""
    roll = _roll()
    roll.answer(B, roll.call(10.0), True, 10.1)
    roll.pass_over(30.0)
    assert not roll.overdue(B, 42.5)
    assert not roll.overdue(C, 42.4)
    assert roll.overdue(C, 42.6)


def test_a_dismissed_incarnation_is_remembered_until_its_lease_is_over_and_leaves_nothing_behind() -> None:
    """It acts no more, but programs of its node rely on its lease: they are asked about."""
    roll = _roll()
    roll.answer(B, roll.call(11.0), True, 11.1)
    roll.dismiss(B, 11.2)
    assert 11.1 == roll.last_seen(B)
    assert not roll.overdue(B, 13.5)
    roll.dismiss(C, 13.7)
    assert 10.0 == roll.last_seen(B)
