"""A node's copy of a stream: what is kept of it, what is dropped, and what others are given."""

from __future__ import annotations

from zlib import crc32

import pytest

from groupsvcd.core.effects import Persist, SendToPeer
from groupsvcd.core.peer_messages import PeerMessage, Repair, RepairAsk
from groupsvcd.core.records import CheckpointRecord, StoredStream
from groupsvcd.core.stream.checkpoints import Described
from groupsvcd.core.stream.replica import Replica
from groupsvcd.core.turn import Turn
from tests.unit.core.stream.list_host import ListHost, drain, entries, replica_of, state_after


def _replica(text: str = "abcdefgh", **retention: int) -> tuple[Replica, ListHost, Turn]:
    """C's copy in epoch 7, none of it known to be stable; entries are kept until the leader says that all have them."""
    turn, host = Turn("C"), ListHost()
    turn.now = 1.0
    stored = StoredStream(promised=7, accepted=7, entries=entries(text))
    replica = replica_of(turn, host, stored, "ABC", until_discarded=True, **retention)
    return replica, host, turn


def _answers(turn: Turn) -> list[PeerMessage]:
    return [effect.message for effect in drain(turn) if isinstance(effect, SendToPeer)]


def test_nothing_is_dropped_that_somebody_may_lack() -> None:
    """GS-12. The checkpoint is taken all the same; entries before it stay."""
    replica, _, _ = _replica(checkpoint_every=4, margin=1)
    replica.learn_stable(8)
    assert (8, 0, 8) == (replica.log.checkpoint_seq, replica.log.base, replica.log.last)


@pytest.mark.parametrize("margin, base", [(1, 5), (6, 2)])
def test_what_all_have_is_dropped_behind_an_advertised_checkpoint_but_for_a_margin(margin: int, base: int) -> None:
    """GS-12, SAM-07, SAM-09. A short lag is repaired without a checkpoint."""
    replica, _, _ = _replica(checkpoint_every=4, margin=margin)
    replica.learn_discard(5)
    replica.learn_stable(8)
    assert (8, 0) == (replica.log.checkpoint_seq, replica.log.base)
    replica.learn_advertised(replica.checkpoints.newest)
    assert (8, base) == (replica.log.checkpoint_seq, replica.log.base)


def test_a_checkpoint_is_taken_after_the_same_entries_everywhere() -> None:
    """SAM-07. Whether they become stable one by one or all at once: states of the same entries have the same bytes."""
    at_once, _, _ = _replica(checkpoint_every=3)
    at_once.learn_stable(8)
    one_by_one, _, _ = _replica(checkpoint_every=3)
    for seq in range(1, 9):
        one_by_one.learn_stable(seq)
    states = [Described(seq, len(state), crc32(state)) for seq, state in _states((3, "abc"), (6, "abcdef"))]
    assert tuple(states) == at_once.checkpoints.offer(0) == one_by_one.checkpoints.offer(0)


def _states(*texts: tuple[int, str]) -> list[tuple[int, bytes]]:
    return [(seq, state_after(entries(text))) for seq, text in texts]


def test_a_disk_keeps_what_memory_keeps() -> None:
    """SAM-11. Payloads of entries that only the disk still had would be missing after a restart."""
    replica, host, turn = _replica(checkpoint_every=4, margin=0)
    host.is_cheap = False
    replica.learn_discard(8)
    replica.learn_stable(4)
    replica.learn_advertised(replica.checkpoints.newest)
    assert 0 == replica.log.base
    drain(turn)
    replica.learn_stable(8)
    records = [record for effect in drain(turn) if isinstance(effect, Persist) for record in effect.records]
    assert [(8, 4)] == [(record.seq, record.drop_upto) for record in records if isinstance(record, CheckpointRecord)]
    assert 4 == replica.log.base


def test_the_discard_line_never_falls() -> None:
    """An old beat arrives late."""
    replica, _, _ = _replica()
    replica.learn_discard(5)
    replica.learn_discard(3)
    assert 5 == replica.discard_said


def test_when_nobody_lags_and_nothing_comes_no_history_is_kept() -> None:
    """GS-12. Thousands of groups that sleep cost next to nothing."""
    replica, _, _ = _replica()
    replica.learn_stable(8)
    replica.learn_discard(7)
    assert 8 == len(replica.log.entries)
    replica.learn_discard(8)
    replica.learn_advertised(replica.checkpoints.newest)
    assert (0, 8, 8) == (len(replica.log.entries), replica.log.base, replica.log.last)
    assert 0 == replica.log.bytes


def test_what_was_not_delivered_here_is_never_dropped() -> None:
    """The others may all have it; this node has not handed it up."""
    replica, host, _ = _replica()
    replica.learn_stable(4)
    replica.learn_discard(8)
    assert 8 == len(replica.log.entries)
    replica.learn_stable(8)
    assert list(entries("abcdefgh")) == host.delivered


def test_a_repair_gives_what_is_held_and_says_under_which_epoch() -> None:
    """SAM-06. Stable or not: the asker knows what it may take."""
    replica, _, turn = _replica()
    replica.learn_stable(3)
    replica.on_repair_ask("D", RepairAsk(0, 3, 5))
    assert [Repair(0, 7, 3, 3, entries("cde"))] == _answers(turn)
    replica.on_repair_ask("D", RepairAsk(0, 7, 99))
    assert [Repair(0, 7, 3, 7, entries("gh"))] == _answers(turn)


def test_of_what_is_not_there_nothing_is_said() -> None:
    """Somebody else may have it."""
    replica, _, turn = _replica()
    replica.on_repair_ask("D", RepairAsk(0, 9, 12))
    assert [] == _answers(turn)


def test_a_repair_says_where_the_view_began() -> None:
    """Who has delivered that number under an older view has delivered what is lost; it must not go on with this."""
    replica, _, turn = _replica()
    replica.began = 6
    replica.on_repair_ask("D", RepairAsk(0, 7, 7))
    (repair,) = _answers(turn)
    assert isinstance(repair, Repair)
    assert 6 == repair.began
    replica.switch(8, 8, ())
    assert 0 == replica.began


def test_who_lacks_what_is_kept_no_longer_gets_the_checkpoint_and_the_rest() -> None:
    """SAM-08."""
    replica, _, turn = _replica(checkpoint_every=4, margin=0)
    replica.learn_discard(4)
    replica.learn_stable(4)
    replica.learn_advertised(replica.checkpoints.newest)
    replica.on_repair_ask("D", RepairAsk(0, 2, 6))
    state = state_after(entries("abcd"))
    whole = Repair(0, 7, 4, 5, entries("ef"), 4, 0, len(state), state, checkpoint_crc=crc32(state), kept_from=5)
    assert [whole] == _answers(turn)


def test_switching_epochs_drops_what_is_above_the_cut_and_counts_its_bytes() -> None:
    """The history's limit in bytes depends on it."""
    replica, _, _ = _replica()
    replica.switch(8, 3, entries("xy"))
    assert list(entries("abcxy")) == replica.log.entries
    assert sum(map(len, entries("abcxy"))) == replica.log.bytes
