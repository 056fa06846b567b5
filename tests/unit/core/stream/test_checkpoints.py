"""The checkpoints that a node keeps: which of them, for how long, and when the next one is due (SAM-07)."""

from __future__ import annotations

from groupsvcd.core.records import StoredStream
from groupsvcd.core.stream.checkpoints import NONE, SMALL_BYTES, Checkpoints
from groupsvcd.core.stream.log import Log

LARGE = b"." * SMALL_BYTES


def _checkpoints(every: int = 10, *, taken: int = 0, state: bytes = LARGE) -> Checkpoints:
    """Those after entries 10, 20, … up to ``taken``, each too large to be kept without a reason."""
    log = Log(StoredStream(accepted=7))
    checkpoints = Checkpoints(log, every)
    for seq in range(every, taken + 1, every):
        log.checkpoint_seq, log.checkpoint = seq, state
        checkpoints.took(seq, state)
    return checkpoints


def _numbers(checkpoints: Checkpoints) -> list[int]:
    return list(checkpoints._kept)


def test_one_is_due_after_every_so_many_entries_wherever_a_copy_begins() -> None:
    checkpoints = _checkpoints()
    assert 10 == checkpoints.due
    checkpoints.reached(10)
    assert 20 == checkpoints.due
    checkpoints.reached(37)  # it was inserted there, or fetched a checkpoint that was taken when the group was idle
    assert 40 == checkpoints.due
    assert 40 == Checkpoints(Log(StoredStream(base=31, checkpoint_seq=31)), 10).due


def test_the_newest_are_kept() -> None:
    assert [90, 100] == _numbers(_checkpoints(taken=100))


def test_more_of_them_if_they_are_small() -> None:
    assert list(range(50, 201, 10)) == _numbers(_checkpoints(taken=200, state=b"small"))


def test_the_advertised_one_is_kept_until_the_next_is_advertised() -> None:
    checkpoints = _checkpoints(taken=20)
    assert checkpoints.advertise(checkpoints.offer(0)[0])
    checkpoints.offer(20)
    for seq in (30, 40, 50):
        checkpoints.took(seq, LARGE)
    assert [10, 40, 50] == _numbers(checkpoints)
    assert checkpoints.advertise(checkpoints.newest)
    assert [40, 50] == _numbers(checkpoints)


def test_what_was_advertised_before_is_no_news() -> None:
    """A beat that comes late."""
    checkpoints = _checkpoints(taken=20)
    older, newer = checkpoints.offer(0)
    assert checkpoints.advertise(newer)
    assert not checkpoints.advertise(older)
    assert newer == checkpoints.advertised


def test_what_was_offered_is_kept_until_something_else_is() -> None:
    """The leader may be about to advertise it."""
    checkpoints = _checkpoints(taken=20)
    assert [10, 20] == [described.seq for described in checkpoints.offer(0)]
    for seq in (30, 40, 50):
        checkpoints.took(seq, LARGE)
    assert [10, 20, 40, 50] == _numbers(checkpoints)
    assert [40, 50] == [described.seq for described in checkpoints.offer(20)]
    assert [40, 50] == _numbers(checkpoints)


def test_what_somebody_fetches_is_kept_and_so_are_the_entries_behind_it() -> None:
    """SAM-08. Traffic goes on, and new ones are taken meanwhile."""
    checkpoints = _checkpoints(taken=20)
    checkpoints.advertise(checkpoints.offer(0)[0])
    assert 10 == checkpoints.give(10, now=5.0)[0].seq
    for seq in (30, 40, 50):
        checkpoints.took(seq, LARGE)
    checkpoints.advertise(checkpoints.newest)
    checkpoints.offer(50)
    assert [10, 40, 50] == _numbers(checkpoints)
    assert 10 == checkpoints.fetched_from(since=4.0)
    assert checkpoints.fetched_from(since=6.0) is None
    checkpoints.took(60, LARGE)
    assert 10 not in _numbers(checkpoints)


def test_who_asks_for_none_in_particular_is_given_the_advertised_one() -> None:
    """Others have it, too; of the newest perhaps not."""
    checkpoints = _checkpoints(taken=20)
    checkpoints.advertise(checkpoints.offer(0)[0])
    assert [10, 20, 10] == [checkpoints.give(wanted, now=1.0)[0].seq for wanted in (0, 20, 99)]


def test_without_an_advertised_one_the_newest_is_given() -> None:
    assert 20 == _checkpoints(taken=20).give(0, now=1.0)[0].seq


def test_in_a_new_epoch_an_advertised_one_that_we_have_not_reached_is_void() -> None:
    """A forced view may go on without the entries it is the state of."""
    checkpoints = _checkpoints(taken=20)
    checkpoints.advertise(checkpoints.newest)
    checkpoints.forget_advertised(delivered=20)
    assert 20 == checkpoints.advertised.seq
    checkpoints.forget_advertised(delivered=19)
    assert NONE == checkpoints.advertised
