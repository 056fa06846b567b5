"""A server: one of the nodes that hold a stream.

A, B and C hold the stream of epoch 7, led by A. Three words bind a server:

- It *holds* an entry once it is in its log and (durable streams) on its disk; then it says ``Held``. It
  holds only under the epoch it has accepted.
- It *promises* epoch 8 to a claimant: from then on it refuses everything below 8 and freezes its log, so
  that what it reported stays true until the new leader opens 8.
- It *accepts* 8 when it has the complete log of 8, in one step; until then it still has, reports and repairs
  from the old log.

Everything a server says about its log is said after the write behind it is safe. What it delivers is
``stable``: held by a quorum, so that no recovery can lose it. ``stable`` said in an epoch covers only the log
of that epoch, and a server learns it only from the leader of the epoch it has accepted.
"""

from __future__ import annotations

import math

import msgspec

from ..effects import Journal, SendToPeer
from ..invariants import invariant
from ..peer_messages import (
    Beat,
    Block,
    CheckpointHeld,
    Data,
    DataHeld,
    Held,
    Open,
    Opened,
    Order,
    Promised,
    Refused,
    Repair,
)
from ..records import AppendRecord, CheckpointRecord, OpenRecord, PayloadRecord, PromiseRecord, Record
from .builder import Builder
from .checkpoints import Described
from .delivery import Holders
from .entries import Piece, Run, decode_entry, is_reference, one_by_one
from .payloads import PayloadId
from .replica import Replica, shared_upto, usable_entries

HELD_PATIENCE_S = 0.01
"""How long a server may keep its Held to itself when another one's is on its way."""

HELD_PATIENCE_ORDERS = 8
"""And for how many Orders."""


class Server:
    """What this node says about its copy of one stream, as one of those that hold it.

    ``complete`` is false for a receiver that is to become a server: its copy may end before what the log of its epoch
    had at its opening, so nobody may take over from it.
    """

    def __init__(self, replica: Replica, promised: int, k: int, *, complete: bool = True) -> None:
        self.replica = replica
        self.log = replica.log  # what we hold
        self.turn = replica.turn
        self.carrier = replica.carrier
        self.stream = replica.stream
        self.promised = promised
        self.k = k
        self.complete = complete
        self.persisted_upto = replica.log.last
        self.accepted_persisted = replica.log.accepted if complete else 0
        self.heard_at = self.turn.now  # when the leader of the accepted epoch was last heard
        self._has_news = False  # whether Held is to be said at the end of this step
        self._say_held_at = math.inf  # if it can wait until then
        self._unsaid = 0  # Orders that it has not been said of
        self._is_to_deliver = False  # when what was announced in this step has left
        self._nearly = 0  # up to where the leader needs one more server, as it said in the accepted epoch
        self.builder: Builder | None = None
        self._building: Open | None = None
        self._being_written: set[PayloadId] = set()
        self._timers = replica.timers

    @property
    def servers(self) -> tuple[str, ...]:
        """The nodes that hold the stream."""
        return self.replica.servers

    @property
    def leader(self) -> str:
        """Who leads the accepted epoch, or the one we are about to accept."""
        return self.replica.leader

    @property
    def stable(self) -> int:
        """Up to where this log is known to be stable."""
        return self.replica.stable

    @property
    def is_whole(self) -> bool:
        """Whether what we report is all that is in the log."""
        return self.complete and self.replica.is_whole

    @property
    def delivered(self) -> int:
        """Up to where the host has got."""
        return self.replica.delivered

    def _hears(self, leader: str) -> None:
        self.replica.leader = leader
        self.heard_at = self.turn.now

    # --- Promising ---

    def promise(self, epoch: int) -> None:
        """Bind this server to refuse everything below ``epoch``; the caller persists before saying so."""
        invariant(epoch > self.promised, f"promise {epoch} after {self.promised}")
        self.promised = epoch
        self.builder, self._building = None, None
        self.replica.intake.reset()
        self.turn.journal("promise", group=self.stream, epoch=epoch)

    def promise_record(self) -> PromiseRecord:
        """What makes the present promise last."""
        return PromiseRecord(self.stream, self.promised)

    def report(self, *, whatever_there_is: bool = False) -> Promised:
        """The present promise and what the log is."""
        if not (self.complete or whatever_there_is):
            return Promised(self.stream, self.promised, 0, 0, 0, 0)
        log = self.log
        holders = self.holders()
        return Promised(
            self.stream, self.promised, log.accepted, self.replica.library.complete_upto, self.stable,
            log.checkpoint_seq,
            holders.state_id, holders.voters, views=self.replica.heritage().views,
            tail_may_be_lost=self.replica.tail_may_be_lost,
        )  # fmt: skip

    def holders(self) -> Holders:
        """Whose disks hold this stream, as our log has it."""
        return self.replica.host.holders()

    def refuse(self, sender: str) -> None:
        """Tell the sender that a higher epoch was promised."""
        self.carrier.send(sender, Refused(self.stream, self.promised))

    # --- Holding ---

    def on_order(self, sender: str, order: Order) -> None:
        """The leader orders entries."""
        if order.epoch < self.promised:
            self.refuse(sender)
        elif order.epoch == self.log.accepted and not self.disk_hangs:
            self._hears(sender)
            if self.builder is not None:
                return  # we followed this epoch and are to open it: what comes now is repaired when the log is there
            self._nearly = max(self._nearly, order.nearly)
            fresh = self.replica.offer(order.first_seq, order.entries)
            if fresh:
                self._hold(fresh)
            self.replica.began = order.began
            self.replica.learn_discard(order.discard)
            self.learn_stable(order.stable)

    def on_beat(self, sender: str, beat: Beat) -> None:
        """The leader says where the stream stands; a server always answers where it stands."""
        if beat.epoch < self.promised:
            self.refuse(sender)
        elif beat.epoch == self.log.accepted:
            self._hears(sender)
            if self.builder is not None:
                return
            self._nearly = max(self._nearly, beat.nearly)
            self.replica.intake.expect(beat.last, self.turn.now)
            self.replica.began = beat.began
            self.replica.learn_discard(beat.discard)
            self.replica.seen_said = max(self.replica.seen_said, beat.seen)
            self.learn_stable(beat.stable)
            self.replica.learn_advertised(Described(beat.checkpoint, beat.checkpoint_size, beat.checkpoint_crc))
            self.say_held(beat.round)
            self.report_payloads()
            self._report_checkpoints(beat.checkpoint)

    def append_own(self, entries: tuple[Piece, ...]) -> None:
        """The leader's own copy of what it orders; without a disk it holds it at once, and sees that for itself."""
        self.replica.append(entries)
        if self.carrier.durable:
            self._hold(entries)
            return
        self.persisted_upto = self.log.last
        self.turn.audit("held", group=self.stream, epoch=self.log.accepted, seq=self.held_upto)

    @property
    def disk_hangs(self) -> bool:
        """Whether more writes would only pile up; what is not taken now is repaired later."""
        return self.replica.disk_hangs

    def _hold(self, fresh: tuple[Piece, ...]) -> None:
        """Write entries that are in the log now; Held leaves when they are safe.

        A higher epoch may be promised before that. Held is true all the same: the report that goes with the promise
        has these entries, and leaves later.
        """
        epoch, upto = self.log.accepted, self.log.last
        if not self.carrier.durable:  # memory is all there is: one word for all that this step brings
            self.persisted_upto = upto
            if self._can_wait(fresh[-1], upto):
                return
            if not self._has_news:
                self._has_news = True
                self.turn.round_trip.append(self._say_news)
            return

        def safe() -> None:
            if self.log.accepted == epoch:
                self.persisted_upto = max(self.persisted_upto, upto)
                if self.leader == self.turn.node and self.turn.now < self.carrier.valid_until:
                    self.say_held()

        entries = tuple(one_by_one(fresh))
        record = AppendRecord(self.stream, upto - len(entries) + 1, entries)
        self.replica.write(record, then=self._held(upto), done=safe)

    def _can_wait(self, newest: Piece, upto: int) -> bool:
        """Whether our Held is not the one that is needed: one more server is enough, and who submitted this is one.

        It says Held with what it submits next. Ours would only wake the leader; it is said after a few Orders, or a
        moment later, in case that other one has died. What is stable by our holding it we deliver at once all the same.
        """
        if upto > self._nearly or not self.carrier.delivers_batches:
            return False
        if isinstance(newest, bytes) and is_reference(newest):
            return False
        origin = newest.origin if isinstance(newest, Run) else decode_entry(newest).origin
        if origin in ("", self.turn.node, self.leader) or origin not in self.servers:
            return False
        self._unsaid += 1
        if self._unsaid >= HELD_PATIENCE_ORDERS:
            return False
        self._say_held_at = self.turn.now + HELD_PATIENCE_S
        if self.accepted_persisted == self.log.accepted == self.promised and self.turn.now < self.carrier.valid_until:
            self.turn.audit("held", group=self.stream, epoch=self.log.accepted, seq=self.held_upto)
            self.learn_stable(min(self.held_upto, self._nearly))
        return True

    def _say_news(self) -> None:
        self._has_news = False
        self.say_held()

    def _held(self, upto: int) -> tuple[SendToPeer | Journal, ...]:
        if self.leader in ("", self.turn.node) or not self.complete:
            return ()  # to ourselves we say it when it is so
        epoch, upto = self.log.accepted, min(upto, self.replica.library.complete_upto)
        held = Held(self.stream, epoch, upto, self.delivered)
        told = Journal("held", self.stream, epoch, upto, valid_until=self.carrier.valid_until)
        return (told, self.carrier.vouching(self.leader, held))

    @property
    def held_upto(self) -> int:
        """Up to where this server has everything, safe and with its payloads."""
        return min(self.persisted_upto, self.replica.library.complete_upto)

    def on_data(self, data: Data) -> None:
        """A payload: with it we may hold more, or be able to open; or it waits for its number.

        If the log is on disk, it counts as here once it is there, too.
        """
        payload_id = (data.origin, data.incarnation, data.n)
        if not self.carrier.is_stored:
            self._take(data)
        elif self.disk_hangs:
            return  # it is sent or asked for again
        elif payload_id not in self.replica.library.payloads and payload_id not in self._being_written:
            self._being_written.add(payload_id)
            record = PayloadRecord(self.stream, payload_id, data.payload)
            self.replica.write(record, done=lambda: self._take_written(data))

    def _take_written(self, data: Data) -> None:
        payload_id, payloads = (data.origin, data.incarnation, data.n), self.replica.library.payloads
        self._being_written.discard(payload_id)
        if not self._take(data) and payload_id not in payloads and payloads.dropped is not None:
            payloads.dropped.append(payload_id)  # it is not wanted after all

    def _take(self, data: Data) -> bool:
        if not self.replica.library.take(data):
            return False
        if self.builder is not None:
            self._build_on()
            return True
        payload_id = (data.origin, data.incarnation, data.n)
        if payload_id in self.replica.library.payloads.unordered:
            if self.leader and self.complete:
                self.carrier.vouch(self.leader, DataHeld(self.stream, (payload_id,)))
        elif self.log.accepted == self.promised:
            self.say_held()
            self.learn_stable(0)
        return True

    def report_payloads(self) -> None:
        """Tell the leader which payloads wait here for their numbers: it may be new, or not have heard of them."""
        unordered = self.replica.library.payloads.unordered
        if unordered and self.leader and self.complete:
            self.carrier.vouch(self.leader, DataHeld(self.stream, unordered))

    def _report_checkpoints(self, advertised: int) -> None:
        """Tell the leader of a group which checkpoints we have that it does not advertise yet."""
        if self.replica.retention.until_discarded and self.complete and self.leader:
            offered = self.replica.checkpoints.offer(advertised)
            if offered:
                self.carrier.vouch(self.leader, CheckpointHeld(self.stream, self.log.accepted, offered))

    def say_held(self, round: int = 0) -> None:
        """Tell the leader what is safe here, unless a higher epoch was promised or nothing is accepted yet.

        Not without a lease: the next beat asks again. If we are the one server that was missing, we know before anybody
        else that it is stable, and need not be told.
        """
        epoch = self.log.accepted
        self._say_held_at, self._unsaid = math.inf, 0
        if not self.leader or self.turn.now >= self.carrier.valid_until:
            return
        if epoch == self.promised == self.accepted_persisted:
            upto = self.held_upto
            self.turn.audit("held", group=self.stream, epoch=epoch, seq=upto)
            self.learn_stable(min(upto, self._nearly))
            self.carrier.vouch(self.leader, Held(self.stream, epoch, upto, self.delivered, round))

    def learn_stable(self, stable: int) -> None:
        """``stable`` was said in the accepted epoch."""
        self.replica.learn_stable(stable)

    def announce_stable(self, stable: int) -> None:
        """We lead and know first: others are told before we hand up what they wait for, too."""
        self.replica.stable_said = max(self.replica.stable_said, stable)
        if not self.carrier.delivers_batches:
            self.learn_stable(stable)
        elif not self._is_to_deliver:
            self._is_to_deliver = True
            self.turn.afterwards(self._deliver)

    def _deliver(self) -> None:
        self._is_to_deliver = False
        if self.turn.now < self.carrier.valid_until:
            self.learn_stable(0)

    # --- Changing over to a new epoch ---

    def on_open(self, sender: str, message: Open) -> None:
        """The leader of a new epoch says what its log is."""
        if message.epoch < self.promised:
            self.refuse(sender)
        elif message.epoch == self.log.accepted and self.complete:
            self._hears(sender)
            if self.accepted_persisted == message.epoch:
                upto = min(message.last, self.persisted_upto)
                self.carrier.vouch(sender, Opened(self.stream, message.epoch, upto))
        elif self._building is None or self._building.epoch != message.epoch:
            if message.epoch > self.promised:
                self.promise(message.epoch)
            self._hears(sender)
            if message.epoch == self.log.accepted and self.log.last >= message.last:
                message = msgspec.structs.replace(message, accepted=message.epoch, last=self.log.last)
            keep = self.common_upto(message.accepted, message.last)
            self.builder = self.new_builder(sender, message.epoch, keep, message.last)
            self._building = message
            self._build_on()

    def new_builder(self, source: str, accepted: int, keep: int, last: int) -> Builder:
        """To fetch the log that ``source`` has accepted in that epoch, up to ``last``; ``keep`` of it is here."""
        return Builder(self.stream, source, accepted, keep, last, self._timers, self.replica.own)

    def common_upto(self, accepted: int, last: int) -> int:
        """How much of our log is also in the log of epoch ``accepted`` that ends at ``last``.

        Logs of one epoch are prefixes of one another; of another epoch only what is settled is shared.
        """
        if self.log.accepted == accepted:
            return min(self.log.last, last)
        settled = self.replica.settled
        invariant(settled <= last, f"settled up to {settled} here, but the log to open ends at {last}")
        return settled

    def _build_on(self) -> None:
        builder, message = self.builder, self._building
        if builder is None or message is None:
            return
        if self.is_complete(builder):
            self.builder, self._building = None, None
            if message.view is not None:
                self.replica.servers, self.k = message.view.names, message.view.k
            self.replica.tail_may_be_lost = message.tail_may_be_lost
            self.install(message.epoch, builder, message.stable)
            return
        ask = builder.next_ask(self.turn.now)
        if ask is not None:
            self.carrier.send(builder.source, ask)

    def is_complete(self, builder: Builder) -> bool:
        """Whether the new log is there, and may be switched to.

        What it begins with goes to the host, and without a lease nothing does, whatever comes from the disk then.
        """
        if builder.missing or self.lacks_payloads(builder):
            return False
        if builder.checkpoint_seq and self.turn.now >= self.carrier.valid_until:
            builder.asked(self.turn.now)
            return False
        return True

    def lacks_payloads(self, builder: Builder) -> bool:
        """Whether payloads of the new log are still to come; asks its source for them."""
        library = self.replica.library
        lacking = library.lacking_in(builder.checkpoint_seq, builder.keep, builder.entries)
        if lacking and self.turn.now >= builder.ask_at:
            if builder.has_asked_in_vain(len(lacking)):
                self.turn.mark("payload-kept-no-longer")
                builder.cut(next(iter(lacking.values())))
            else:
                builder.asked(self.turn.now)
                library.ask(builder.source, list(lacking))
        return bool(lacking)

    def install(self, epoch: int, builder: Builder, stable: int) -> None:
        """Switch to the log of ``epoch`` in one step; says Opened when it is on disk."""
        replica, log = self.replica, self.log
        records: list[Record] = []
        known_stable = self.stable
        if builder.checkpoint_seq:
            seq, state = builder.checkpoint_seq, builder.checkpoint
            replica.skip_to(seq, state, epoch)
            records.append(CheckpointRecord(self.stream, seq, state, seq))
            self.turn.mark("checkpoint-fetched")
            known_stable = seq
        keep = max(builder.keep, builder.checkpoint_seq)
        entries = tuple(builder.entries)
        replica.switch(epoch, keep, entries)
        self._nearly = 0
        last = log.last
        invariant(known_stable <= last, f"stable entry {known_stable} is not in the log of epoch {epoch} to {last}")
        replica.stable_said = max(known_stable, stable)
        self.persisted_upto = min(self.persisted_upto, keep)
        self.complete = True
        if self.carrier.durable and not self.carrier.is_stored:
            records = replica.begin_to_store()
            self.persisted_upto = 0
        else:
            records.extend(replica.host.switching(epoch))
            records.append(OpenRecord(self.stream, epoch, keep, entries))
        self._journal_view()
        opened = self.carrier.vouching(self.leader, Opened(self.stream, epoch, last))
        replica.write(*records, then=(opened,), done=lambda: self._accepted_safely(epoch, last))
        self.learn_stable(0)

    def _accepted_safely(self, epoch: int, last: int) -> None:
        if self.log.accepted == epoch:
            self.accepted_persisted = epoch
            self.persisted_upto = max(self.persisted_upto, last)

    def _journal_view(self) -> None:
        self.turn.journal("view_installed", group=self.stream, epoch=self.log.accepted, seq=self.log.last,
                          leader=self.leader, members=list(self.servers), k=self.k)  # fmt: skip

    # --- Repair ---

    def on_repair(self, sender: str, repair: Repair) -> None:
        """Entries that were asked for."""
        replica = self.replica
        if self.builder is not None:
            if self.builder.take(sender, repair):
                self._build_on()
            return
        if self.log.accepted != self.promised or self.disk_hangs:
            return  # frozen: what was reported must stay true
        if repair.accepted > self.log.accepted:
            return  # a server enters a higher epoch by Open alone
        upto = shared_upto(repair, self.log.accepted, replica.began)
        if replica.needs_checkpoint(repair, upto):
            state = replica.take_checkpoint_block(sender, repair)
            if state is None:
                return
            self._skip_to(repair.checkpoint_seq, state)
        usable = usable_entries(repair, upto)
        if usable and repair.first <= self.log.last + 1:
            fresh = replica.offer(repair.first, usable)
            if fresh:
                self._hold(fresh)
                self.learn_stable(0)
                self.turn.mark("gap-repaired")
        replica.look_at_answer(sender, repair)

    def on_block(self, sender: str, block: Block) -> None:
        """Part of a checkpoint that we fetch."""
        if self.builder is not None or self.log.accepted != self.promised or self.disk_hangs:
            return  # frozen: what was reported must stay true
        described = Described(block.seq, block.size, block.crc)
        if shared_upto(block, self.log.accepted, self.replica.began) >= block.seq:
            state = self.replica.take_block(sender, described, block.offset, block.block)
            if state is not None:
                self._skip_to(block.seq, state)

    def _skip_to(self, seq: int, state: bytes) -> None:
        """What we miss is no longer kept anywhere; a checkpoint is stable, whatever the epoch."""
        epoch = self.log.accepted
        self.turn.mark("checkpoint-fetched-in-epoch")
        self.replica.skip_to(seq, state, epoch)

        def safe() -> None:
            if self.log.accepted == epoch:
                self.persisted_upto = max(self.persisted_upto, seq)

        self.replica.write(CheckpointRecord(self.stream, seq, state, seq), then=self._held(seq), done=safe)

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When the next repetition is due."""
        if self.builder is not None:
            return self.builder.ask_at
        return min(self.replica.ask_at, self._say_held_at) if self.log.accepted == self.promised else math.inf

    def tick(self) -> None:
        """Ask again for what is still missing."""
        if self.builder is not None:
            self._build_on()
        elif self.log.accepted == self.promised:
            if self.turn.now >= self.replica.ask_at:
                self.replica.ask_for_missing()
            if self.turn.now >= self._say_held_at:
                self._say_held_at = math.inf
                if self.turn.now < self.carrier.valid_until:  # else the next beat asks
                    self.say_held()
