"""The three words of a server: it holds, it promises, it accepts; and each only when its disk has it."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import pytest

from groupsvcd.core.effects import Effect, Journal, Persist, SendToPeer
from groupsvcd.core.invariants import InvariantBroken
from groupsvcd.core.peer_messages import (
    Beat,
    Data,
    DataAsk,
    Held,
    Open,
    Opened,
    Order,
    PeerMessage,
    Promised,
    Refused,
    Repair,
    RepairAsk,
)
from groupsvcd.core.records import AppendRecord, CheckpointRecord, OpenRecord, Record, StoredStream
from groupsvcd.core.stream.builder import PAYLOAD_ASKS_MAX
from groupsvcd.core.stream.carrier import Carrier
from groupsvcd.core.stream.entries import encode_reference
from groupsvcd.core.stream.replica import shared_upto, usable_entries
from groupsvcd.core.stream.server import Server
from groupsvcd.core.turn import Turn
from tests.unit.core.stream.list_host import ListHost, drain, entries, entry, replica_of, state_after

ABC = ("A", "B", "C")


class Stage:
    """Server C on a disk whose writes the test completes."""

    def __init__(
        self, stored: StoredStream | None = None, *, carrier: type[Carrier] = Carrier, complete: bool = True,
        **retention: int,
    ) -> None:  # fmt: skip
        self.turn = Turn("C")
        self.turn.now = 10.0
        self.host = ListHost()
        stored = stored or StoredStream(promised=7, accepted=7, entries=entries("ab"))
        replica = replica_of(self.turn, self.host, stored, ABC, carrier=carrier, **retention)
        self.server = Server(replica, stored.promised, 2, complete=complete)
        self.writes: list[Persist] = []

    def said(self) -> list[tuple[str, PeerMessage]]:
        """What left for others since the last look."""
        return self._look(drain(self.turn))

    def _look(self, effects: list[Effect]) -> list[tuple[str, PeerMessage]]:
        self.writes += [effect for effect in effects if isinstance(effect, Persist)]
        return [(effect.node, effect.message) for effect in effects if isinstance(effect, SendToPeer)]

    def sync(self) -> list[tuple[str, PeerMessage]]:
        """All writes complete; what left then."""
        said = self.said()
        while self.writes:
            write = self.writes.pop(0)
            said += [(effect.node, effect.message) for effect in write.then if isinstance(effect, SendToPeer)]
            self.turn.persisted(write.number)
            said += self.said()
        return said


def test_held_is_said_when_the_write_is_safe() -> None:
    """Not before: what is lost with the power was not held."""
    stage = Stage()
    stage.server.on_order("A", Order(0, 7, 3, entries("cd"), 0))
    assert [] == stage.said()
    assert (AppendRecord(0, 3, entries("cd")),) == stage.writes[0].records
    assert [("A", Held(0, 7, 4, 0))] == stage.sync()


class LeasedCarrier(Carrier):
    """Carries a stream while a lease lasts, until second 12."""

    valid_until = 12.0


def test_history_says_held_only_as_long_as_it_may_be_said() -> None:
    """L5: the write takes longer than the lease. The word does not leave, nor does the line about it."""
    stage = Stage(carrier=LeasedCarrier)
    stage.server.on_order("A", Order(0, 7, 3, entries("cd"), 0))
    stage.said()
    line, word = stage.writes[0].then
    assert isinstance(line, Journal)
    assert ("held", 4) == (line.op, line.seq)
    assert [12.0, 12.0] == [line.valid_until, word.valid_until]


def test_a_server_holds_only_under_the_epoch_it_has_accepted() -> None:
    """Epoch 8 was neither promised nor opened here: its entries may follow another log than ours."""
    stage = Stage()
    stage.server.on_order("B", Order(0, 8, 3, entries("xy"), 4))
    assert [] == stage.sync()
    assert (2, []) == (stage.server.log.last, stage.host.delivered)


def test_a_promise_refuses_everything_below_it() -> None:
    """A still thinks that it leads epoch 7."""
    stage = Stage()
    stage.server.promise(8)
    stage.server.on_order("A", Order(0, 7, 3, entries("c"), 2))
    stage.server.on_beat("A", Beat(0, 7, 3, 2, 0))
    stage.server.on_open("A", Open(0, 7, 6, 2, 2, 0))
    assert [("A", Refused(0, 8))] * 3 == stage.said()
    assert (2, []) == (stage.server.log.last, stage.host.delivered)


def test_a_promise_freezes_the_log() -> None:
    """What was reported must stay true until the new leader opens, so a late repair is not taken either."""
    stage = Stage()
    stage.server.on_beat("A", Beat(0, 7, 4, 0, 0))
    stage.server.promise(8)
    assert Promised(0, 8, 7, 2, 0, 0) == stage.server.report()
    stage.server.on_repair("A", Repair(0, 7, 4, 3, entries("cd")))
    assert 2 == stage.server.log.last


def test_a_promise_never_falls() -> None:
    """It binds for ever."""
    stage = Stage()
    with pytest.raises(InvariantBroken, match="promise 7 after 7"):
        stage.server.promise(7)


def test_accepting_an_epoch_is_one_write_and_is_said_after_it() -> None:
    """Nothing is missing: the log of 8 is ours."""
    stage = Stage()
    stage.server.promise(8)
    stage.server.on_open("B", Open(0, 8, 7, 2, 1, 0))
    assert [] == stage.said()
    assert [OpenRecord(0, 8, 2, ())] == list(stage.writes[-1].records)
    assert 7 == stage.server.accepted_persisted
    assert [("B", Opened(0, 8, 2))] == stage.sync()
    assert (8, 8) == (stage.server.log.accepted, stage.server.accepted_persisted)
    assert list(entries("a")) == stage.host.delivered


def test_until_the_new_log_is_complete_the_old_one_is_reported_and_repaired_from() -> None:
    """Dropping the old tail too early loses stable entries when the leader dies half way."""
    stage = Stage()
    stage.server.promise(8)
    stage.server.on_open("B", Open(0, 8, 6, 4, 0, 0))
    assert [("B", RepairAsk(0, 1, 4))] == stage.said()
    stage.server.on_repair("B", Repair(0, 8, 0, 1, entries("wxy")))
    assert (7, 2) == (stage.server.report().accepted, stage.server.report().last)
    stage.said()
    stage.server.replica.on_repair_ask("A", RepairAsk(0, 1, 2))
    assert [("A", Repair(0, 7, 0, 1, entries("ab")))] == stage.said()
    stage.server.on_repair("B", Repair(0, 8, 0, 4, entries("z")))
    assert [("B", Opened(0, 8, 4))] == stage.sync()
    assert list(entries("wxyz")) == stage.server.log.entries


def test_a_payload_that_the_leader_keeps_no_longer_does_not_keep_a_server_out() -> None:
    """C came back with entry 2 and without its payload; B has gone on alone, and has a checkpoint of it only."""
    reference = encode_reference("E", 1, 1, 100, 0)
    stored = StoredStream(promised=7, accepted=7, entries=(entry("a"), reference, entry("c")))
    stage = Stage(stored)
    stage.server.promise(8)
    stage.server.on_open("B", Open(0, 8, 7, 3, 3, 3))
    for _ in range(PAYLOAD_ASKS_MAX):
        assert [("B", DataAsk(0, (("E", 1, 1),)))] == stage.said()
        stage.turn.now = stage.server.deadline
        stage.server.tick()
    assert {"name": "payload-kept-no-longer"} in [one.args for one in stage.turn.effects if isinstance(one, Journal)]
    assert [("B", RepairAsk(0, 2, 3))] == stage.said()
    state = state_after([entry("a"), entry("b"), entry("c")])
    stage.server.on_repair("B", Repair(0, 8, 3, 4, (), 3, 0, len(state), state))
    assert [("B", Opened(0, 8, 3))] == stage.sync()
    assert [entry("a"), entry("b"), entry("c")] == stage.host.delivered


def test_who_opens_the_epoch_it_has_followed_takes_nothing_in_meanwhile() -> None:
    """C followed A and is to be a server; it waits for a payload, and the stream goes on. Nothing stable is cut off."""
    payload = b"x" * 100
    reference = encode_reference("E", 1, 1, len(payload), crc32(payload))
    stage = Stage(StoredStream(promised=7, accepted=7, entries=(entry("a"), reference)), complete=False)
    stage.server.on_open("A", Open(0, 7, 6, 2, 1, 0))
    stage.server.on_order("A", Order(0, 7, 3, entries("c"), 3))
    stage.server.on_beat("A", Beat(0, 7, 3, 3, 0))
    stage.server.on_data(Data(0, "E", 1, 1, payload))
    assert ("A", Opened(0, 7, 2)) in stage.sync()
    stage.server.on_order("A", Order(0, 7, 3, entries("c"), 3))
    stage.sync()
    assert (3, 3) == (stage.server.log.last, stage.server.delivered)


def test_of_another_epochs_log_only_what_is_stable_is_kept() -> None:
    """Our entry 2 of epoch 7 need not be entry 2 of epoch 6's log that is opened."""
    stage = Stage()
    stage.server.learn_stable(1)
    assert 1 == stage.server.common_upto(6, 4)
    assert 2 == stage.server.common_upto(7, 4)
    assert 1 == stage.server.common_upto(7, 1)


def test_a_log_that_lacks_what_is_stable_is_never_opened() -> None:
    """That would take back what was delivered: stop instead."""
    stage = Stage()
    stage.server.learn_stable(2)
    stage.server.promise(8)
    with pytest.raises(InvariantBroken, match="settled up to 2"):
        stage.server.on_open("B", Open(0, 8, 6, 1, 1, 0))


def test_opening_the_same_epoch_again_is_only_answered_again() -> None:
    """The leader did not hear us."""
    stage = Stage()
    stage.server.on_open("A", Open(0, 7, 6, 2, 0, 0))
    assert [("A", Opened(0, 7, 2))] == stage.said()
    assert [] == stage.writes


def test_every_beat_is_answered_with_what_is_safe() -> None:
    """Not with what is only in memory."""
    stage = Stage()
    stage.server.on_order("A", Order(0, 7, 3, entries("c"), 0))
    stage.server.on_beat("A", Beat(0, 7, 3, 0, 0))
    assert [("A", Held(0, 7, 2, 0))] == stage.said()


def test_a_gap_is_repaired_and_stable_entries_are_delivered_in_order() -> None:
    """Entry 3 is lost and comes with the repair; 4 waited."""
    stage = Stage()
    stage.server.on_order("A", Order(0, 7, 4, entries("d"), 4))
    assert list(entries("ab")) == stage.host.delivered
    stage.turn.now = stage.server.deadline
    stage.server.tick()
    assert ("B", RepairAsk(0, 3, 3)) in stage.said()
    stage.server.on_repair("B", Repair(0, 7, 4, 3, entries("c")))
    assert list(entries("abcd")) == stage.host.delivered


def test_checkpoints_are_taken_and_a_margin_of_entries_is_kept() -> None:
    """A short lag is repaired without sending the whole state."""
    stage = Stage(checkpoint_every=5, margin=2)
    stage.server.on_order("A", Order(0, 7, 3, entries("cdefg"), 7))
    log = stage.server.log
    assert (5, 3, 7) == (log.checkpoint_seq, log.base, log.last)
    stage.said()
    records = [record for write in stage.writes for record in write.records]
    assert CheckpointRecord(0, 5, state_after(entries("abcde")), 3) == records[-1]


def test_what_is_kept_no_longer_is_answered_with_a_checkpoint_in_blocks() -> None:
    """The entries after it come with the last block."""
    state = state_after(entries("ab"))
    stored = StoredStream(promised=7, accepted=7, base=2, entries=entries("cd"), checkpoint_seq=2, checkpoint=state)
    stage = Stage(stored, block_bytes=len(state) - 1)
    stage.server.replica.on_repair_ask("B", RepairAsk(0, 1, 4))
    ((_, first),) = stage.said()
    told = {"checkpoint_crc": crc32(state), "kept_from": 3}
    assert Repair(0, 7, 2, 3, (), 2, 0, len(state), state[:-1], **told) == first
    stage.server.replica.on_repair_ask("B", RepairAsk(0, 1, 4, 2, len(state) - 1))
    ((_, second),) = stage.said()
    assert Repair(0, 7, 2, 3, entries("cd"), 2, len(state) - 1, len(state), state[-1:], **told) == second


def test_a_hung_disk_takes_no_more_orders() -> None:
    """L9. What would only pile up in memory is repaired later."""
    stage = Stage()
    stage.server.on_order("A", Order(0, 7, 3, entries("c"), 0))
    stage.said()
    stage.turn.now += 1.5
    stage.server.on_order("A", Order(0, 7, 4, entries("d"), 0))
    assert 3 == stage.server.log.last
    stage.sync()
    stage.server.on_order("A", Order(0, 7, 4, entries("d"), 0))
    assert 4 == stage.server.log.last


def test_usable_of_a_repair_is_all_of_the_same_epoch_and_else_what_was_stable_before_the_view() -> None:
    """``stable`` may lie before the first entry or beyond the last, or beyond where a forced view began."""
    for accepted, stable, began, usable in [
        (7, 0, 9, "cde"), (6, 4, 9, "cd"), (6, 2, 9, ""), (6, 0, 9, ""),
        (6, 9, 9, "cde"), (6, 9, 4, "c"), (6, 9, 0, ""),
    ]:  # fmt: skip
        repair = Repair(0, accepted, stable, 3, entries("cde"))
        assert entries(usable) == usable_entries(repair, shared_upto(repair, 7, began))


class MemoryCarrier(Carrier):
    """Carries a stream that memory alone holds."""

    durable = is_stored = False

    def persist(
        self, *records: Record, then: tuple[SendToPeer | Journal, ...] = (), done: Callable[[], None] | None = None
    ) -> None:
        """Safe at once."""
        self.turn.remember(then, done)


def _go_round(stage: Stage) -> None:
    while stage.turn.round_trip:
        what = stage.turn.round_trip.popleft()
        assert callable(what)
        what()


def test_the_second_of_two_holders_delivers_before_it_is_told() -> None:
    """SAM-05: up to where the leader holds it, too, and up to where it holds it itself."""
    stage = Stage(carrier=MemoryCarrier)
    stage.server.on_order("A", Order(0, 7, 3, entries("cd"), 0, nearly=3))
    _go_round(stage)
    assert list(entries("abc")) == stage.host.delivered
    assert [("A", Held(0, 7, 4, 3))] == stage.said()


def test_what_was_nearly_stable_in_one_epoch_is_not_in_the_next() -> None:
    """B4, S1: entry 4 was to come, and the log of epoch 8 has another one there."""
    stage = Stage(carrier=MemoryCarrier)
    stage.server.on_order("A", Order(0, 7, 4, entries("d"), 0, nearly=4))
    stage.server.promise(8)
    stage.server.on_open("B", Open(0, 8, 7, 2, 2, 0))
    _go_round(stage)
    stage.server.on_order("B", Order(0, 8, 3, entries("xy"), 2))
    _go_round(stage)
    assert list(entries("ab")) == stage.host.delivered
