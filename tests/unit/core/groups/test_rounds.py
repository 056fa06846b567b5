"""Barriers as a function of the stream: which rulings fit, what is kept of them, and that no number comes again."""

from __future__ import annotations

import pytest

from groupsvc.wire.notices import ProviderId, RoundEnd
from groupsvcd.core.groups import rounds as rounds_module
from groupsvcd.core.groups.commands import RoundEnded
from groupsvcd.core.groups.rounds import Rounds

A, B, C = (("A", 1, 1), ("B", 1, 1), ("C", 1, 1))


def _ruling(
    number: int, *arrived: ProviderId, end: RoundEnd = "released", parties: int = 0, barrier: str = "x"
) -> RoundEnded:
    return RoundEnded(
        barrier=barrier, round=number, end=end, parties=parties, arrived=tuple((one, b"") for one in arrived)
    )


def _apply(rounds: Rounds, ruling: RoundEnded, *living: ProviderId) -> bool:
    """Whether it fits."""
    before = len(rounds.ended)
    rounds.apply(9, ruling, living, ())
    return len(rounds.ended) > before


def test_a_ruling_fits_only_the_next_round() -> None:
    rounds = Rounds()
    assert not _apply(rounds, _ruling(2, A, B), A, B)
    assert _apply(rounds, _ruling(1, A, B), A, B)
    assert not _apply(rounds, _ruling(1, A, B), A, B)
    assert 2 == rounds.next_round("x")
    assert 1 == rounds.next_round("y")


def test_a_ruling_is_void_if_somebody_in_it_is_no_more() -> None:
    rounds = Rounds()
    assert not _apply(rounds, _ruling(1, A, B, parties=2), A, C)
    assert _apply(rounds, _ruling(1, A, C, parties=2), A, C)


def test_a_ruling_about_all_is_void_if_somebody_has_joined() -> None:
    rounds = Rounds()
    assert not _apply(rounds, _ruling(1, A, B), A, B, C)
    assert _apply(rounds, _ruling(1, A, B, C), A, B, C)


def test_what_broke_releases_nobody_before_it_was_reset() -> None:
    rounds = Rounds()
    assert not _apply(rounds, _ruling(1, A, end="reset"), A)
    assert _apply(rounds, _ruling(1, A, end="broken"), A, B)
    broken = rounds.broken("x")
    assert broken is not None
    assert ((B, True),) == broken.missing
    assert not _apply(rounds, _ruling(2, A, B), A, B)
    assert _apply(rounds, _ruling(2, A, B, end="reset"), A, B)
    assert rounds.broken("x") is None
    assert _apply(rounds, _ruling(3, A, B), A, B)


def test_names_that_were_not_used_for_long_are_forgotten_and_their_numbers_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R3: a word about a round of long ago never counts for another one."""
    monkeypatch.setattr(rounds_module, "BARRIERS_KEPT", 3)
    rounds = Rounds()
    for number in range(1, 8):
        assert _apply(rounds, _ruling(number, A, barrier="old"), A)
    assert _apply(rounds, _ruling(1, A, end="broken", barrier="broken"), A)
    for name in ("p", "q", "r"):
        assert _apply(rounds, _ruling(rounds.next_round(name), A, barrier=name), A)
    assert 8 == rounds.next_round("old")
    assert 8 == rounds.next_round("never seen")
    assert rounds.broken("broken") is not None
    assert not _apply(rounds, _ruling(7, A, barrier="old"), A)
    assert _apply(rounds, _ruling(8, A, barrier="old"), A)


def test_what_is_brought_is_kept_until_the_round_ends_and_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds_module, "BROUGHT_BYTES_MAX", 10)
    rounds = Rounds()
    rounds.bring(A, "x", 1, b"123456")
    rounds.bring(B, "x", 7, b"123456")
    assert (True, False, True) == (
        rounds.has_brought(A, "x", 1), rounds.has_brought(B, "x", 7), rounds.has_brought(B, "x", 0)
    )  # fmt: skip
    named = RoundEnded(
        barrier="x", round=1, end="released", parties=1, arrived=((A, b""),), brought=((A, 2),)
    )  # of another time
    assert not _apply(rounds, named, A, B)
    named = RoundEnded(barrier="x", round=1, end="released", parties=1, arrived=((A, b""),), brought=((A, 1),))
    assert _apply(rounds, named, A, B)
    assert ((A, b"123456"),) == rounds.ended[-1][1].arrived
    assert not rounds.has_brought(A, "x", 1)
    rounds.bring(B, "x", 8, b"123456")
    rounds.is_out(B)
    assert not rounds.has_brought(B, "x", 8)


def test_what_is_taken_back_is_not_what_was_brought_since() -> None:
    """Whoever was late brings something anew, before it is known that what it brought first is of no use."""
    rounds = Rounds()
    rounds.bring(A, "x", 1, b"first")
    rounds.bring(A, "x", 2, b"second")
    rounds.bring(A, "x", 1, b"")
    assert rounds.has_brought(A, "x", 2)
    rounds.bring(A, "x", 2, b"")
    assert not rounds.has_brought(A, "x", 2)


def test_a_copy_from_a_checkpoint_is_the_same_and_goes_on_the_same() -> None:
    rounds = Rounds()
    _apply(rounds, _ruling(1, A, B), A, B)
    _apply(rounds, _ruling(1, A, end="broken", barrier="y"), A, B)
    rounds.bring(A, "x", 3, b"much")
    rounds.died(5, C)
    copy = Rounds(rounds.stored())
    assert rounds.stored() == copy.stored()
    for one in (rounds, copy):
        assert _apply(one, _ruling(2, A, B), A, B)
    assert rounds.stored() == copy.stored()
    assert rounds.ended[-1] == copy.ended[-1]


def test_when_the_last_provider_has_left_nothing_is_broken_and_no_number_comes_again() -> None:
    rounds = Rounds()
    for number in range(1, 5):
        _apply(rounds, _ruling(number, A), A)
    _apply(rounds, _ruling(1, A, end="broken", barrier="y"), A)
    rounds.start_again()
    assert rounds.broken("y") is None
    assert (5, 5) == (rounds.next_round("x"), rounds.next_round("y"))
