"""When a command must end: not before anybody else can have the lock, and not after."""

from __future__ import annotations

import pytest

from groupsvc.cli.vouching import ASLEEP_S, BREAK_S, LOOK_S, WAKING_S, Standing, Vouching

HELD, DOUBTED, LOST = Standing.HELD, Standing.DOUBTED, Standing.LOST


def looked(vouching: Vouching, *seconds: float, valid_until: float = -1.0) -> list[Standing]:
    """What is found at these times, if a daemon vouches for it until then."""
    return [vouching.look(now, valid_for=max(0.0, valid_until - now), is_lost=False) for now in seconds]


def test_what_is_vouched_for_is_held() -> None:
    assert [HELD] * 3 == looked(Vouching(0.0), 0.0, 0.2, 0.4, valid_until=2.0)


def test_after_a_break_it_may_go_on_for_as_long_as_was_promised() -> None:
    vouching = Vouching(0.0)
    assert [HELD] == looked(vouching, 0.0, valid_until=1.5)
    assert [DOUBTED, DOUBTED, LOST] == looked(vouching, 0.2, 1.0, 1.6)


def test_what_comes_back_in_time_is_held_as_before() -> None:
    vouching = Vouching(0.0)
    looked(vouching, 0.0, valid_until=1.5)
    assert [DOUBTED, DOUBTED] == looked(vouching, 0.2, 1.0)
    assert [HELD] == looked(vouching, 1.2, valid_until=3.0)
    assert [DOUBTED, DOUBTED, LOST] == looked(vouching, 1.9, 2.8, 3.1)


def test_a_lease_that_ends_while_the_connection_stands_is_over_at_once() -> None:
    """The daemon has no word from its domain: others may go on."""
    vouching = Vouching(0.0)
    assert [HELD, HELD, LOST] == looked(vouching, 0.0, 0.8, 1.0, valid_until=1.0)


def test_patience_is_added_to_what_was_promised() -> None:
    vouching = Vouching(0.0, patience_s=2.0)
    assert [HELD] == looked(vouching, 0.0, valid_until=1.0)
    assert [DOUBTED, DOUBTED, DOUBTED, LOST] == looked(vouching, 0.8, 1.6, 2.4, 3.1)


def test_a_long_lease_does_not_outlast_the_session() -> None:
    """A daemon forgets who was cut off for some seconds, however long its lease is."""
    vouching = Vouching(0.0)
    assert [HELD] == looked(vouching, 0.0, valid_until=60.0)
    times = [0.5, 1.0, 1.5, 2.0, 0.5 + BREAK_S - 0.1, 0.5 + BREAK_S]
    assert [DOUBTED] * 5 + [LOST] == looked(vouching, *times)


@pytest.mark.parametrize("valid_for", [0.0, 1.0])
def test_what_is_lost_is_lost(valid_for: float) -> None:
    vouching = Vouching(0.0, patience_s=10.0)
    assert [HELD] == looked(vouching, 0.0, valid_until=60.0)
    assert LOST is vouching.look(0.2, valid_for=valid_for, is_lost=True)


def test_who_was_asleep_hears_from_its_daemon_before_it_judges() -> None:
    """Ctrl-Z, half an hour, fg: a program that was stopped keeps what it holds."""
    vouching = Vouching(0.0)
    assert [HELD] == looked(vouching, 0.0, valid_until=1.5)
    woken = 1800.0
    assert [DOUBTED, DOUBTED] == looked(vouching, woken, woken + 0.2)
    assert [HELD] == looked(vouching, woken + 0.4, valid_until=woken + 2.0)


def test_who_was_asleep_and_hears_nothing_has_lost_it() -> None:
    vouching = Vouching(0.0)
    assert [HELD] == looked(vouching, 0.0, valid_until=1.5)
    woken = ASLEEP_S + 100.0
    assert [DOUBTED, DOUBTED, LOST] == looked(vouching, woken, woken + 0.5, woken + WAKING_S)


def test_who_is_always_late_does_not_go_on_for_ever() -> None:
    vouching = Vouching(0.0)
    assert [HELD] == looked(vouching, 0.0, valid_until=1.5)
    late = ASLEEP_S + 0.5
    assert [DOUBTED, LOST] == looked(vouching, late, 2 * late)


def test_nobody_who_never_vouched_for_it_is_believed() -> None:
    assert [LOST] == looked(Vouching(5.0), 5.0)


def test_nobody_sleeps_over_the_end_of_what_was_promised() -> None:
    vouching = Vouching(0.0)
    looked(vouching, 0.0, valid_until=0.25)
    assert LOOK_S == vouching.next_look(0.0)
    looked(vouching, 0.2)
    assert 0.05 == pytest.approx(vouching.next_look(0.2))
    assert [LOST] == looked(vouching, 0.25)
    assert LOOK_S == vouching.next_look(0.25), "there is nothing left to be in time for"
