"""However orders arrive, the log gets every entry once, in order, without a gap."""

from __future__ import annotations

import math
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.parameters import Timers
from groupsvcd.core.stream import intake as intake_module
from groupsvcd.core.stream.entries import Run, one_by_one
from groupsvcd.core.stream.intake import Intake
from groupsvcd.core.stream.log import Log

TIMERS = Timers()
WHOLE = Run("D", 1, 1, tuple(f"entry {seq}".encode() for seq in range(1, 31)))
ALL = tuple(one_by_one((WHOLE,)))


def _intake() -> tuple[Intake, Log]:
    log = Log()
    return Intake(log, TIMERS, Random(1)), log


def _slice(first: int, upto: int) -> tuple[bytes, ...]:
    return ALL[first - 1 : upto]


ORDERS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 8), st.booleans()), max_size=40)


@given(orders=ORDERS, repair_max=st.integers(1, 10))
def test_any_order_duplication_and_loss_with_repairs_gives_the_same_log(
    orders: list[tuple[int, int, bool]], repair_max: int
) -> None:
    """Orders come in any order, in runs or not, some twice, some never; each repair brings a bit of what is missing."""
    intake, log = _intake()
    taken: list[bytes] = []
    now = 0.0
    for first, count, is_run in orders:
        now += 0.001
        upto = min(first + count - 1, 30)
        taken += one_by_one(intake.offer(first, (WHOLE.part(first - 1, upto),) if is_run else _slice(first, upto), now))
    intake.expect(30, now)
    for _ in range(200):
        if log.last == 30:
            break
        assert intake.ask_at < math.inf
        now = intake.ask_at
        ask = intake.next_ask(now)
        assert ask is not None
        first, upto, _attempt = ask
        assert log.last + 1 == first <= upto
        taken += one_by_one(intake.offer(first, _slice(first, min(upto, first + repair_max - 1)), now + 0.001))
    assert list(ALL) == log.entries == taken
    assert math.inf == intake.ask_at


def test_a_gap_may_close_by_itself_before_it_is_asked_for() -> None:
    """Most gaps are only a reordering."""
    intake, _ = _intake()
    assert () == intake.offer(2, _slice(2, 2), 1.0)
    assert 1.0 + TIMERS.repair_delay == intake.ask_at
    assert intake.next_ask(1.0) is None
    assert _slice(1, 2) == intake.offer(1, _slice(1, 1), 1.001)
    assert math.inf == intake.ask_at


def test_only_the_gap_is_asked_for() -> None:
    """Not what waits beyond it."""
    intake, _ = _intake()
    intake.offer(1, _slice(1, 2), 1.0)
    intake.offer(6, _slice(6, 8), 1.0)
    assert (3, 5, 0) == intake.next_ask(2.0)


def test_who_has_a_machine_and_nothing_else_asks_for_what_comes_before_the_first_entry() -> None:
    """SAM-08: a new member goes on from the newest checkpoint, also where the entries before it are still kept."""
    intake, _ = _intake()
    intake.begins_with_checkpoint = True
    intake.expect(5, 0.0)
    assert (0, 5, 0) == intake.next_ask(intake.ask_at)
    intake.offer(1, _slice(1, 2), 1.0)
    assert (3, 5, 0) == intake.next_ask(intake.ask_at)


def test_asking_again_backs_off_up_to_a_limit() -> None:
    """A hole shared by many does not become a storm."""
    intake, _ = _intake()
    intake.expect(5, 0.0)
    waits: list[float] = []
    for attempt in range(12):
        now = intake.ask_at
        assert (1, 5, attempt) == intake.next_ask(now)
        waits.append(intake.ask_at - now)
    assert waits[0] < 0.1
    assert waits[5] > 4 * waits[0]
    assert max(waits) <= 1.5 * TIMERS.repeat_max


def test_who_begins_asks_at_once_and_once_more_when_others_would_begin_to() -> None:
    """The link may be too new to carry the first question, so it does not count."""
    intake, _ = _intake()
    intake.begin(5, 10.0)
    assert (1, 5, 0) == intake.next_ask(10.0)
    assert intake.next_ask(10.001) is None
    assert (1, 5, 0) == intake.next_ask(10.0 + TIMERS.repair_delay)
    assert 1 == intake.asked
    intake.offer(1, _slice(1, 5), 10.03)
    assert math.inf == intake.ask_at


def test_what_waits_beyond_a_gap_is_bounded() -> None:
    """More is dropped and asked for again, and the log is complete in the end all the same."""
    intake, log = _intake()
    limit = intake_module.PENDING_ENTRIES_MAX
    many = tuple(b"x" for _ in range(limit))
    intake.offer(2, many, 0.0)
    intake.offer(limit + 2, many, 0.0)
    assert limit + 1 == len(intake.offer(1, (b"x",), 0.0))
    assert (limit + 2, 2 * limit + 1, 0) == intake.next_ask(1.0)
    assert log.last == limit + 1


def test_a_new_epoch_forgets_what_was_announced_under_the_old_one() -> None:
    """It may never have been."""
    intake, log = _intake()
    intake.offer(3, _slice(3, 4), 0.0)
    intake.reset()
    assert math.inf == intake.ask_at
    assert intake.next_ask(10.0) is None
    assert _slice(1, 2) == intake.offer(1, _slice(1, 2), 10.0)
    assert 2 == log.last
