"""What a program says of those who are missing at a barrier: since when they are silent, and whether they ever came."""

from __future__ import annotations

import pytest

from groupsvc import Missing, Provider
from groupsvc.errors import BarrierBroken
from groupsvc.sansio import rounds
from groupsvc.sansio.attendance import BARRIERS_MAX, Attendance
from groupsvc.sansio.membership_machine import Membership
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices
from groupsvc.wire.notices import ProviderId, Round
from tests.unit.client.daemon_in_memory import NODE, Line
from tests.unit.client.scenes import join

ME, B, C = (*NODE, 1), ("n2", 3, 1), ("n3", 5, 1)


def a_round(number: int, *arrived: ProviderId, barrier: str = "b") -> Round:
    return Round(barrier=barrier, number=number, end="released", arrived=tuple((one, b"") for one in arrived))


def test_who_was_in_a_round_has_come_and_of_who_was_in_none_it_is_known_if_all_were_seen() -> None:
    seen = Attendance()
    assert seen.ever_came("b", B, 1) is None
    seen.ended(a_round(1, ME, B), 10, (ME, B, C))
    assert seen.ever_came("b", B, 1) is True
    assert seen.ever_came("b", C, 1) is False
    assert seen.ever_came("another", C, 1) is None


def test_of_rounds_before_the_first_that_was_seen_nothing_is_said() -> None:
    """Except of who was not there at the time."""
    seen = Attendance()
    seen.ended(a_round(7, ME), 70, (ME, B, C))
    seen.ended(a_round(8, ME), 80, (ME, B, C))
    assert seen.ever_came("b", B, 69) is None
    assert seen.ever_came("b", C, 71) is False


def test_a_round_that_was_missed_is_one_to_which_anybody_may_have_come() -> None:
    seen = Attendance()
    seen.ended(a_round(1, ME, B), 10, (ME, B, C))
    seen.ended(a_round(3, ME), 30, (ME, B, C))
    assert seen.ever_came("b", B, 1) is True
    assert seen.ever_came("b", C, 1) is None
    seen.ended(a_round(3, ME), 33, (ME, B, C))  # told again: it is broken
    assert seen.ever_came("b", C, 31) is False


def test_an_answer_that_there_was_nothing_to_reset_is_no_round() -> None:
    seen = Attendance()
    seen.ended(Round(barrier="b", number=1, end="reset"), 10, (ME, B))
    assert seen.ever_came("b", B, 1) is None


def test_who_gave_up_had_come() -> None:
    seen = Attendance()
    gave_up = Round(barrier="b", number=1, end="broken", broken_by="cancelled", who=(B,), arrived=((ME, b""),))
    seen.ended(gave_up, 10, (ME, B, C))
    assert [True, False] == [seen.ever_came("b", one, 1) for one in (B, C)]


def test_what_is_remembered_has_a_limit() -> None:
    seen = Attendance()
    for number in range(BARRIERS_MAX + 1):
        seen.ended(a_round(1, ME, B, barrier=str(number)), number, (ME, B))
    assert seen.ever_came("0", B, 1) is None
    assert seen.ever_came("1", B, 1) is True


def wait(line: Line, membership: Membership, round_: Round) -> BarrierBroken:
    """Come to the barrier, and be told that it broke so."""
    call = rounds.come(line.machine, membership, rounds.BarrierTerms("b", 0, "break"), b"", 1.0)(line.now, 1.0)
    line.tell(wire.RoundIs(call.id, 9, round_))
    assert isinstance(call.error, BarrierBroken)
    return call.error


def test_an_error_says_for_how_long_who_is_missing_was_silent_and_that_it_never_came(line: Line) -> None:
    """The requirement of time-outs: who, at which node, since when, whether it responds, whether it came."""
    membership = join(line, name="anna")
    both = tuple(notices.Provider(id, name, b"", 2) for id, name in ((B, "bert"), (C, "cleo")))
    line.tell(wire.Told(1, notices.Joined(2, both, 102)))
    line.at(3.0)
    line.tell(wire.Told(1, notices.Responsive(3, B, False)))
    line.at(10.5)
    round_ = Round(
        barrier="b", number=1, end="broken", broken_by="timeout", who=(ME,), arrived=((ME, b""),),
        missing=((B, False), (C, True)),
    )  # fmt: skip
    broken = wait(line, membership, round_)
    bert, cleo = (Provider(f"{id[0]}/{id[1]}/1", id[0], name, b"", 2) for id, name in ((B, "bert"), (C, "cleo")))
    assert (Missing(bert, False, 3.0, False), Missing(cleo, True, None, False)) == broken.missing
    silent = "bert (n2/3/1), which has not responded for 7.5 s and has come to no round yet"
    assert f"missing: {silent}, cleo (n3/5/1), which has come to no round yet" in str(broken)


def test_who_answers_again_is_silent_no_more(line: Line) -> None:
    membership = join(line)
    line.tell(wire.Told(1, notices.Joined(2, (notices.Provider(B, "bert", b"", 2),), 102)))
    for seq, does in enumerate((False, True, False), start=3):
        line.at(float(seq))
        line.tell(wire.Told(1, notices.Responsive(seq, B, does)))
    assert 5.0 == membership.attendance.silent_since(B)
    line.tell(wire.Told(1, notices.Left(6, (B,), "failure", 103)))
    assert membership.attendance.silent_since(B) is None


@pytest.mark.parametrize(
    "missing, words",
    [
        (Missing(Provider("i", "n2", "bert", b"", 2), True), "bert (i)"),
        (Missing(Provider("i", "n2", "bert", b"", 2), True, ever_came=True), "bert (i)"),
        (Missing(Provider("i", "n2", "bert", b"", 2), False), "bert (i), which does not respond"),
    ],
)
def test_what_is_not_known_is_not_said(missing: Missing, words: str) -> None:
    assert words == str(missing) == missing.in_words(12.0)
