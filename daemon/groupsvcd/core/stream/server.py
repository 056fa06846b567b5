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
from random import Random

from ..effects import Journal, SendToPeer
from ..invariants import invariant
from ..parameters import Parameters
from ..peer_messages import Beat, Held, Open, Opened, Order, Promised, Refused, Repair, RepairAsk
from ..records import AppendRecord, CheckpointRecord, OpenRecord, PromiseRecord, Record, StoredStream
from ..turn import Turn
from .assembly import Assembly
from .builder import Builder
from .delivery import Delivery, Holders, Host
from .intake import Intake
from .log import Log

REPAIR_BYTES_MAX = 1024 * 1024
"""Entries in one repair answer: large enough to be quick, small enough not to delay liveness frames."""


class Server:
    """This node's copy of one stream and its words about it."""

    def __init__(
        self, turn: Turn, stream: int, stored: StoredStream, servers: tuple[str, ...], parameters: Parameters,
        rng: Random, host: Host,
    ) -> None:  # fmt: skip
        self.turn = turn
        self.stream = stream
        self.servers = servers
        self.promised = stored.promised
        self.log = Log(stored)
        self.persisted_upto = self.log.last
        self.accepted_persisted = stored.accepted
        self.stable_said = stored.checkpoint_seq
        self._delivery = Delivery(turn, stream, host, stored.checkpoint_seq)
        self.leader = ""
        self.builder: Builder | None = None
        self._building: Open | None = None
        self._host = host
        self._parameters = parameters
        self._timers = parameters.timers
        self._rng = rng
        self.intake = Intake(self.log, self._timers, rng)
        self._assembly = Assembly()

    @property
    def stable(self) -> int:
        """Up to where this log is known to be stable."""
        return min(self.stable_said, self.log.last)

    @property
    def delivered(self) -> int:
        """Up to where the host has got."""
        return self._delivery.upto

    # --- Promising ---

    def promise(self, epoch: int) -> None:
        """Bind this server to refuse everything below ``epoch``; the caller persists before saying so."""
        invariant(epoch > self.promised, f"promise {epoch} after {self.promised}")
        self.promised = epoch
        self.builder, self._building = None, None
        self.intake.reset()
        self.turn.journal("promise", group=self.stream, epoch=epoch)

    def promise_record(self) -> PromiseRecord:
        """What makes the present promise last."""
        return PromiseRecord(self.stream, self.promised)

    def report(self) -> Promised:
        """The present promise and what the log is."""
        log = self.log
        holders = self.holders()
        return Promised(
            self.stream, self.promised, log.accepted, log.last, self.stable, log.checkpoint_seq,
            holders.state_id, holders.voters,
        )  # fmt: skip

    def holders(self) -> Holders:
        """Whose disks hold this stream, as our log has it."""
        return self._host.holders()

    def _refuse(self, sender: str) -> None:
        self.turn.send(sender, Refused(self.stream, self.promised))

    # --- Holding ---

    def on_order(self, sender: str, order: Order) -> None:
        """The leader orders entries."""
        if order.epoch < self.promised:
            self._refuse(sender)
        elif order.epoch == self.log.accepted and not self._disk_hangs:
            self.leader = sender
            fresh = self.intake.offer(order.first_seq, order.entries, self.turn.now)
            if fresh:
                self._hold(fresh)
            self.learn_stable(order.stable)

    def on_beat(self, sender: str, beat: Beat) -> None:
        """The leader says where the stream stands; a server always answers where it stands."""
        if beat.epoch < self.promised:
            self._refuse(sender)
        elif beat.epoch == self.log.accepted:
            self.leader = sender
            self.intake.expect(beat.last, self.turn.now)
            self.learn_stable(beat.stable)
            self.say_held()

    def append_own(self, entries: tuple[bytes, ...]) -> None:
        """The leader's own copy of what it orders."""
        self.log.append(entries)
        self._hold(entries)

    @property
    def _disk_hangs(self) -> bool:
        """Whether more writes would only pile up; what is not taken now is repaired later."""
        return self.turn.oldest_write_age > self._timers.leader_silent

    def _hold(self, fresh: tuple[bytes, ...]) -> None:
        """Write entries that are in the log now; Held leaves when they are safe.

        A higher epoch may be promised before that. Held is true all the same: the report that goes with the promise
        has these entries, and leaves later.
        """
        epoch, upto = self.log.accepted, self.log.last

        def safe() -> None:
            if self.log.accepted == epoch:
                self.persisted_upto = max(self.persisted_upto, upto)

        record = AppendRecord(self.stream, upto - len(fresh) + 1, fresh)
        self.turn.persist(record, then=self._held(upto), done=safe)

    def _held(self, upto: int) -> tuple[SendToPeer | Journal, ...]:
        if not self.leader:
            return ()
        epoch = self.log.accepted
        held = Held(self.stream, epoch, upto, self.delivered)
        return (SendToPeer(self.leader, held), Journal("held", self.stream, epoch, upto))

    def say_held(self) -> None:
        """Tell the leader what is safe here, unless a higher epoch was promised or nothing is accepted yet."""
        epoch = self.log.accepted
        if epoch == self.promised == self.accepted_persisted and self.leader:
            held = Held(self.stream, epoch, min(self.persisted_upto, self.log.last), self.delivered)
            self.turn.send(self.leader, held)
            self.turn.journal("held", group=self.stream, epoch=epoch, seq=held.upto)

    # --- Delivering ---

    def learn_stable(self, stable: int) -> None:
        """``stable`` was said in the accepted epoch."""
        if stable > self.stable_said:
            self.stable_said = stable
        self._delivery.advance(self.log, self.stable)
        if self.delivered >= self.log.checkpoint_seq + self._parameters.checkpoint_every:
            self._take_checkpoint()

    def _take_checkpoint(self) -> None:
        seq, state = self.delivered, self._host.snapshot()
        drop_upto = max(self.log.base, seq - self._parameters.retention_margin)
        self.log.set_checkpoint(seq, state, drop_upto)
        self.turn.persist(CheckpointRecord(self.stream, seq, state, drop_upto))
        self.turn.mark("checkpoint-taken")

    # --- Changing over to a new epoch ---

    def on_open(self, sender: str, message: Open) -> None:
        """The leader of a new epoch says what its log is."""
        if message.epoch < self.promised:
            self._refuse(sender)
        elif message.epoch == self.log.accepted:
            self.leader = sender
            if self.accepted_persisted == message.epoch:
                upto = min(message.last, self.persisted_upto)
                self.turn.send(sender, Opened(self.stream, message.epoch, upto))
        elif self._building is None or self._building.epoch != message.epoch:
            if message.epoch > self.promised:
                self.promise(message.epoch)
            self.leader = sender
            keep = self.common_upto(message.accepted, message.last)
            self.builder = Builder(self.stream, sender, message.epoch, keep, message.last, self._timers)
            self._building = message
            self._build_on()

    def common_upto(self, accepted: int, last: int) -> int:
        """How much of our log is also in the log of epoch ``accepted`` that ends at ``last``.

        Logs of one epoch are prefixes of one another; of another epoch only what is stable is shared.
        """
        if self.log.accepted == accepted:
            return min(self.log.last, last)
        invariant(self.stable <= last, f"stable up to {self.stable} here, but the log to open ends at {last}")
        return self.stable

    def _build_on(self) -> None:
        builder, message = self.builder, self._building
        if builder is None or message is None:
            return
        if not builder.missing:
            self.builder, self._building = None, None
            self.install(message.epoch, builder, message.stable)
            return
        ask = builder.next_ask(self.turn.now)
        if ask is not None:
            self.turn.send(builder.source, ask)

    def install(self, epoch: int, builder: Builder, stable: int) -> None:
        """Switch to the log of ``epoch`` in one step; says Opened when it is on disk."""
        records: list[Record] = []
        known_stable = self.stable
        if builder.checkpoint_seq:
            seq, state = builder.checkpoint_seq, builder.checkpoint
            invariant(seq > self.delivered, f"checkpoint {seq} is older than what was delivered, {self.delivered}")
            self.log.set_checkpoint(seq, state, seq)
            records.append(CheckpointRecord(self.stream, seq, state, seq))
            self.turn.mark("checkpoint-fetched")
            known_stable = seq
            self._delivery.skip_to(seq, state, epoch)
        keep = max(builder.keep, builder.checkpoint_seq)
        entries = tuple(builder.entries)
        self.log.switch(epoch, keep, entries)
        last = self.log.last
        invariant(known_stable <= last, f"stable entry {known_stable} is not in the log of epoch {epoch} to {last}")
        self.stable_said = max(known_stable, stable)
        self.persisted_upto = min(self.persisted_upto, keep)
        self.intake.reset()
        records.extend(self._host.switching(epoch))
        records.append(OpenRecord(self.stream, epoch, keep, entries))
        self._journal_view()
        opened = SendToPeer(self.leader, Opened(self.stream, epoch, last))
        self.turn.persist(*records, then=(opened,), done=lambda: self._accepted_safely(epoch, last))
        self.learn_stable(0)

    def _accepted_safely(self, epoch: int, last: int) -> None:
        if self.log.accepted == epoch:
            self.accepted_persisted = epoch
            self.persisted_upto = max(self.persisted_upto, last)

    def _journal_view(self) -> None:
        members = list(self.servers)
        self.turn.journal("view_installed", group=self.stream, epoch=self.log.accepted, seq=self.log.last,
                          leader=self.leader, members=members, k=len(members) // 2 + 1)  # fmt: skip

    # --- Repair ---

    def on_repair_ask(self, sender: str, ask: RepairAsk) -> None:
        """Another server or a receiver misses entries; answered from the log as it is, whatever was promised."""
        log = self.log
        if ask.first > log.base:
            entries = log.slice(ask.first, ask.upto, REPAIR_BYTES_MAX)
            if not entries:
                return
            answer = Repair(self.stream, log.accepted, self.stable, ask.first, entries)
        else:
            answer = self._checkpoint_block(ask)
        self.turn.send(sender, answer)
        self.turn.mark("repair-answered")

    def _checkpoint_block(self, ask: RepairAsk) -> Repair:
        log, seq = self.log, self.log.checkpoint_seq
        offset = ask.checkpoint_offset if ask.checkpoint_seq == seq else 0
        end = offset + self._parameters.checkpoint_block_bytes
        entries = log.slice(seq + 1, ask.upto, REPAIR_BYTES_MAX) if end >= len(log.checkpoint) else ()
        return Repair(
            self.stream, log.accepted, self.stable, seq + 1, entries,
            seq, offset, len(log.checkpoint), log.checkpoint[offset:end],
        )  # fmt: skip

    def on_repair(self, sender: str, repair: Repair) -> None:
        """Entries that were asked for."""
        if self.builder is not None:
            if self.builder.take(sender, repair):
                self._build_on()
            return
        if self.log.accepted != self.promised or self._disk_hangs:
            return  # frozen: what was reported must stay true
        if repair.accepted > self.log.accepted:
            return  # a server enters a higher epoch by Open alone
        if repair.checkpoint_seq > self.log.last:
            state = self._assembly.take(sender, repair)
            if state is None:
                if self._assembly.grew:
                    self.intake.progressed(self.turn.now)
                    self.turn.send(sender, self._assembly.ask(sender, self.stream, self.log.last + 1, repair.first))
                return
            self._skip_to(repair.checkpoint_seq, state)
        usable = usable_entries(repair, self.log.accepted)
        if usable and repair.first <= self.log.last + 1:
            fresh = self.intake.offer(repair.first, usable, self.turn.now)
            if fresh:
                self._hold(fresh)
                self.learn_stable(0)
                self.turn.mark("gap-repaired")

    def _skip_to(self, seq: int, state: bytes) -> None:
        """What we miss is no longer kept anywhere; a checkpoint is stable, whatever the epoch."""
        epoch = self.log.accepted
        self.log.set_checkpoint(seq, state, seq)
        self.stable_said = max(self.stable_said, seq)
        self.turn.mark("checkpoint-fetched-in-epoch")
        self._delivery.skip_to(seq, state, epoch)

        def safe() -> None:
            if self.log.accepted == epoch:
                self.persisted_upto = max(self.persisted_upto, seq)

        self.turn.persist(CheckpointRecord(self.stream, seq, state, seq), then=self._held(seq), done=safe)

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When the next repetition is due."""
        if self.builder is not None:
            return self.builder.ask_at
        return self.intake.ask_at if self.log.accepted == self.promised else math.inf

    def tick(self) -> None:
        """Ask again for what is still missing."""
        if self.builder is not None:
            self._build_on()
        elif self.log.accepted == self.promised and self.turn.now >= self.intake.ask_at:
            ask = self.intake.next_ask(self.turn.now)
            if ask is not None:
                first, upto, attempt = ask
                self._assembly.give_up()
                target = whom_to_ask(self.servers, self.turn.node, self.leader, attempt)
                self.turn.send(target, self._assembly.ask(target, self.stream, first, upto))


def whom_to_ask(servers: tuple[str, ...], me: str, leader: str, attempt: int) -> str:
    """The other servers in turn, the leader after all of them (SAM-06)."""
    others = [name for name in servers if name not in (me, leader)] + [leader]
    return others[attempt % len(others)]


def usable_entries(repair: Repair, epoch: int) -> tuple[bytes, ...]:
    """What a log of ``epoch`` may take from an answer: all of it from a log of the same epoch, else what is stable."""
    if repair.accepted == epoch:
        return repair.entries
    return repair.entries[: max(0, repair.stable - repair.first + 1)]
