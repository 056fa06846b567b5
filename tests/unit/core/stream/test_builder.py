"""A new log is built beside the old one from one source, and is there only when it is complete."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.parameters import Timers
from groupsvcd.core.peer_messages import Repair, RepairAsk
from groupsvcd.core.stream.builder import PAYLOAD_ASKS_MAX, Builder

TIMERS = Timers()
LOG = tuple(f"entry {seq}".encode() for seq in range(1, 21))


def _repair(first: int, upto: int, accepted: int = 7) -> Repair:
    return Repair(0, accepted, upto, first, LOG[first - 1 : upto])


@given(keep=st.integers(0, 20), pieces=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), max_size=30))
def test_whatever_pieces_come_the_new_log_is_that_of_the_source(keep: int, pieces: list[tuple[int, int]]) -> None:
    """Own entries up to ``keep``, then the source's: overlapping, doubled and too early pieces change nothing."""
    builder = Builder(0, "B", 7, keep, 20, TIMERS)
    for first, count in pieces:
        builder.take("B", _repair(first, min(20, first + count)))
        assert LOG[keep : builder.reached] == tuple(builder.entries)
    while builder.missing:
        ask = builder.next_ask(builder.ask_at + TIMERS.repeat_max)
        assert ask is not None
        assert builder.take("B", _repair(ask.first, min(ask.upto, ask.first + 3)))
    assert LOG[keep:] == tuple(builder.entries)
    assert 20 == builder.reached


def test_only_the_source_and_only_its_chosen_log_count() -> None:
    """C's log, or B's log of another epoch, may have other entries under the same numbers."""
    builder = Builder(0, "B", 7, 0, 20, TIMERS)
    assert not builder.take("C", _repair(1, 5))
    assert not builder.take("B", _repair(1, 5, accepted=8))
    assert builder.take("B", _repair(1, 5))
    assert not builder.take("B", _repair(1, 5))


def test_nothing_is_asked_for_when_nothing_is_missing() -> None:
    """Our own log is the best one."""
    builder = Builder(0, "A", 7, 20, 20, TIMERS)
    assert not builder.missing
    assert builder.next_ask(100.0) is None


def test_a_lost_answer_is_asked_for_again_ever_more_slowly() -> None:
    """And at once when one arrived and more is missing."""
    builder = Builder(0, "B", 7, 4, 20, TIMERS)
    assert RepairAsk(0, 5, 20) == builder.next_ask(1.0)
    assert builder.next_ask(1.0) is None
    times = [1.0, builder.ask_at]
    for _ in range(6):
        builder.next_ask(builder.ask_at)
        times.append(builder.ask_at)
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert pytest.approx(TIMERS.repeat_first) == waits[0]
    assert pytest.approx(TIMERS.repeat_max) == max(waits) == waits[-1]
    builder.take("B", _repair(5, 9))
    assert RepairAsk(0, 10, 20) == builder.next_ask(1.0)


def test_a_checkpoint_replaces_what_the_source_keeps_no_longer() -> None:
    """In blocks; the entries after it come with the last block."""
    builder = Builder(0, "B", 7, 2, 20, TIMERS)
    state = b"state after twelve"
    assert builder.take("B", Repair(0, 7, 20, 13, (), 12, 0, len(state), state[:10]))
    assert RepairAsk(0, 3, 20, 12, 10) == builder.next_ask(1.0)
    assert builder.take("B", Repair(0, 7, 20, 13, LOG[12:], 12, 10, len(state), state[10:]))
    assert (12, state, LOG[12:]) == (builder.checkpoint_seq, builder.checkpoint, tuple(builder.entries))
    assert not builder.missing


def _with_own(upto: int) -> Builder:
    """B's log is to be fetched from 5 on; ours is the same up to ``upto``, as a checkpoint tells."""
    return Builder(0, "B", 7, 4, 20, TIMERS, lambda after, seq, state: [*LOG[after : min(seq, upto)]])


def _checkpoint(seq: int, kept_from: int) -> Repair:
    return Repair(0, 7, 20, seq + 1, LOG[seq:], seq, 0, 5, b"state", kept_from=kept_from)


def test_what_we_have_ourselves_stays_if_the_source_began_later() -> None:
    """B3: B has entries from 13 on, and our own 5 … 12 are those that it began behind."""
    builder = _with_own(15)
    assert builder.take("B", _checkpoint(12, kept_from=13))
    assert (4, 0, LOG[4:]) == (builder.keep, builder.checkpoint_seq, tuple(builder.entries))


def test_what_we_have_ourselves_stays_if_the_source_keeps_what_follows_it() -> None:
    """The checkpoint is one of later on, and we have less than that; we need not skip what lies between."""
    builder = _with_own(10)
    assert builder.take("B", _checkpoint(16, kept_from=11))
    assert RepairAsk(0, 11, 20) == builder.next_ask(1.0)
    assert not builder.take("B", _checkpoint(16, kept_from=11)), "the answer to an older ask"
    assert builder.take("B", _repair(11, 20))
    assert (4, 0, LOG[4:]) == (builder.keep, builder.checkpoint_seq, tuple(builder.entries))


def test_what_we_have_ourselves_goes_if_there_is_a_gap_behind_it() -> None:
    """We have up to 10, and 11 is kept nowhere that we know of."""
    builder = _with_own(10)
    assert builder.take("B", _checkpoint(12, kept_from=12))
    assert (4, 12, LOG[12:]) == (builder.keep, builder.checkpoint_seq, tuple(builder.entries))


def test_what_refers_to_payloads_that_never_come_is_cut_off_and_fetched_anew() -> None:
    """The source keeps that entry no longer, and answers with its checkpoint."""
    builder = Builder(0, "B", 7, 4, 20, TIMERS)
    assert builder.take("B", _repair(5, 20))
    assert not any(builder.has_asked_in_vain(2) for _ in range(PAYLOAD_ASKS_MAX))
    assert not builder.has_asked_in_vain(1), "one has come"
    assert not any(builder.has_asked_in_vain(1) for _ in range(PAYLOAD_ASKS_MAX - 1))
    assert builder.has_asked_in_vain(1)
    builder.cut(10)
    assert RepairAsk(0, 10, 20) == builder.next_ask(1.0)
    assert LOG[4:9] == tuple(builder.entries)
    builder.cut(3)
    assert RepairAsk(0, 3, 20) == builder.next_ask(1.0)
    assert (2, []) == (builder.keep, builder.entries)
    assert builder.take("B", Repair(0, 7, 20, 13, LOG[12:], 12, 0, 5, b"state"))
    assert (12, LOG[12:], False) == (builder.checkpoint_seq, tuple(builder.entries), builder.missing)
    builder.cut(15)
    assert RepairAsk(0, 15, 20) == builder.next_ask(1.0)
    assert LOG[12:14] == tuple(builder.entries)
