"""This node's copy of one stream: the log, what is stable of it, and how far it was handed up.

Whether the node is a server or a receiver, it has one of these, and keeps it when it changes from one to the other:
entries come in without gaps (``Intake``), what is stable goes up in order (``Delivery``), what others miss is given
to them, and what nobody needs any more is dropped behind a checkpoint. What a node may *say* about its copy is the
business of its role.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from random import Random

import attrs

from ..effects import Journal, SendToPeer
from ..invariants import invariant
from ..parameters import Timers
from ..peer_messages import Block, BlockAsk, Repair, RepairAsk
from ..records import (
    CheckpointRecord,
    DropPayloadsRecord,
    OpenRecord,
    PayloadRecord,
    Record,
    StoredStream,
)
from ..tally import add
from ..views import NodeId, Views
from .asking import first_wait, in_turn, place_in, whom_to_ask
from .carrier import Carrier
from .checkpoints import Checkpoints, Described
from .delivery import Delivery, Host
from .entries import Entry, Piece
from .fetch import Fetch
from .heritage import Heritage, Own, none_of_ours
from .intake import Intake
from .library import Library
from .log import Log

REPAIR_BYTES_MAX = 1024 * 1024
"""Entries in one repair answer: large enough to be quick, small enough not to delay liveness frames."""


@attrs.frozen(kw_only=True)
class Retention:
    """How much of a stream is kept."""

    checkpoint_every: int  # entries between two checkpoints
    margin: int  # entries kept before a checkpoint so that a short lag needs none
    block_bytes: int  # of a checkpoint, in one frame: does not delay liveness
    until_discarded: bool = True  # whether an entry is kept until the leader says that all have delivered it
    fetched_entries_max: int = 100_000  # entries behind a checkpoint that are kept while somebody fetches it


class Replica:
    """The copy, and what is done with it in every role."""

    def __init__(
        self, carrier: Carrier, stored: StoredStream, servers: tuple[str, ...], retention: Retention, timers: Timers,
        rng: Random, host: Host,
    ) -> None:  # fmt: skip
        self.carrier = carrier
        self.turn = carrier.turn
        self.stream = carrier.stream
        self.servers = servers
        self.leader = ""
        self.host = host
        self.log = Log(stored)
        self.stable_said = stored.checkpoint_seq
        self.discard_said = self.log.base  # what the leader says that nobody needs any more
        self.seen_said = 0  # up to where it says that everybody has delivered
        self.tail_may_be_lost = False  # by the forced view in which this log was opened; until an entry says so
        self.began = 0  # number of the first entry of the view of this log, if it is known
        self.views: Callable[[], Views] = tuple  # of what was delivered; only groups need to know
        self.heritage: Callable[[], Heritage] = lambda: Heritage((), ())  # of the whole log
        self.own: Own = none_of_ours  # what a checkpoint confirms
        self._apart: Sequence[bytes] = ()  # what followed on this log in an earlier view, and may do so in this one
        self.timers = timers
        self.members: Callable[[], Iterable[NodeId]] = tuple  # who follows the stream, in an order that all know
        self.intake = Intake(self.log, timers, rng)
        self.library = Library(carrier, self.log, timers, rng)
        self.intake.first_wait = self.library.first_wait = self._first_wait
        self.library.payloads.load(stored.payloads)
        self.library.payloads.dropped = [] if carrier.is_stored else None
        self.library.appended(self.log.base + 1, stored.entries)
        self.fetch: Fetch | None = None  # of a checkpoint that we need
        self._asked_on = 0  # how many more servers, because the one whose turn it was has not got it
        self._helper = ""  # the server whose answer had something for us last
        self._suspects: tuple[str, ...] = ()  # whose bytes are not what they are said to be
        self.retention = retention
        self.checkpoints = Checkpoints(self.log, retention.checkpoint_every)
        self._delivery = Delivery(carrier, host, self.library, stored.checkpoint_seq)

    @property
    def stable(self) -> int:
        """Up to where this copy is known to be stable."""
        said, upto = self.stable_said, self.library.complete_upto if self.library.lacking else self.log.last
        return said if said < upto else upto

    @property
    def is_whole(self) -> bool:
        """Whether no payload is missing of what is in the log."""
        return self.library.complete_upto >= self.log.last

    @property
    def settled(self) -> int:
        """Up to where the log of any later epoch has what this copy has."""
        return self.stable

    @property
    def delivered(self) -> int:
        """Up to where the host has got."""
        return self._delivery.upto

    @property
    def disk_hangs(self) -> bool:
        """Whether the disk that is to hold this copy, now or later, takes no writes: it is full or hangs."""
        return self.carrier.durable and self.turn.oldest_write_age > self.timers.leader_silent

    # --- Writing ---

    def write(
        self, *records: Record, then: tuple[SendToPeer | Journal, ...] = (), done: Callable[[], None] | None = None
    ) -> None:
        """The log has changed like this. While memory alone has it, that is safe at once."""
        if not self.carrier.is_stored:
            self.turn.remember(then, done)
            return
        payloads = self.library.payloads
        if payloads.dropped:
            records = (DropPayloadsRecord(self.stream, tuple(payloads.dropped)), *records)
            payloads.dropped.clear()
        self.carrier.persist(*records, then=then, done=done)

    def begin_to_store(self) -> list[Record]:
        """Memory alone had the log so far; returns it whole, as records. From now on the disk has it, too."""
        log, seq = self.log, self.log.checkpoint_seq
        self.carrier.is_stored = True
        self.library.payloads.dropped = []
        records: list[Record] = []
        if seq:
            records.append(CheckpointRecord(self.stream, seq, log.checkpoint, seq))
        records.extend(PayloadRecord(self.stream, *one) for one in self.library.payloads.all())
        records.append(OpenRecord(self.stream, log.accepted, seq, tuple(log.between(seq + 1, log.last))))
        return records

    def cease_to_store(self, promised: int) -> None:
        """No view counts on our copy any more: memory is enough for it. What was promised is not forgotten."""
        self.library.payloads.dropped = None
        self.carrier.forget(promised)

    # --- Delivering ---

    def learn_stable(self, stable: int) -> None:
        """``stable`` was said in the epoch of this log."""
        if stable > self.stable_said:
            self.stable_said = stable
        self.deliver()

    @property
    def _deliverable(self) -> int:
        """Up to where entries may be handed up."""
        return self.stable

    def deliver(self) -> None:
        """Hand up what may be; where a checkpoint is due, up to there first.

        Nothing without a lease, whatever comes from the disk then: the next beat repeats it.
        """
        if self._deliverable <= self._delivery.upto or self.turn.now >= self.carrier.valid_until:
            return
        while self.checkpoints.due <= self._deliverable:
            self._deliver_to_checkpoint()
            if self.carrier.is_over:
                return  # the host has seen in it that it is no member any more
        self._delivery.advance(self.log, self._deliverable)

    def learn_discard(self, discard: int) -> None:
        """Everybody who is waited for has delivered what is up to ``discard``."""
        if discard > self.discard_said:
            self.discard_said = discard
        idle = self.discard_said >= self.log.last == self.delivered > self.log.checkpoint_seq
        if idle and self.retention.until_discarded and self.host.snapshots_cheaply:
            self._take_checkpoint()  # nobody lags: an idle group needs no history

    def learn_advertised(self, described: Described) -> None:
        """Enough servers have this checkpoint; and a moment to look for payloads that nothing refers to."""
        if self.retention.until_discarded:
            self.library.drop_numbered()
            self.checkpoints.advertise(described)
            self._drop()

    def _deliver_to_checkpoint(self) -> None:
        self._delivery.advance(self.log, self.checkpoints.due)
        self.checkpoints.reached(self.delivered)
        if self.host.can_snapshot:
            self._take_checkpoint()

    def _take_checkpoint(self) -> None:
        state = self.host.snapshot()
        if state is not None:
            self._set_checkpoint(self.delivered, state)

    def _set_checkpoint(self, seq: int, state: bytes) -> None:
        self.log.set_checkpoint(seq, state, self.log.base)
        self.checkpoints.took(seq, state)
        if not self.retention.until_discarded:
            self.checkpoints.advertise(self.checkpoints.newest)
        self._drop_upto(self._droppable)
        self.write(CheckpointRecord(self.stream, seq, state, self.log.base))
        self.turn.mark("checkpoint-taken")

    @property
    def _droppable(self) -> int:
        """Up to where nobody needs the entries: behind an advertised checkpoint, by a margin unless nothing comes.

        They were delivered everywhere, as far as that is waited for, and nobody fetches an older checkpoint. And our
        own copy must be whole without them.
        """
        log, retention, upto = self.log, self.retention, self.checkpoints.advertised.seq
        if not (retention.until_discarded and self.discard_said >= log.last == upto):
            upto -= retention.margin
        if retention.until_discarded:
            upto = min(upto, self.discard_said)
            fetched = self.checkpoints.fetched_from(self.turn.now - self.timers.lease)
            if fetched is not None and log.last - fetched <= retention.fetched_entries_max:
                upto = min(upto, fetched)
        return min(upto, log.checkpoint_seq)

    def _drop_upto(self, upto: int) -> None:
        if upto > self.log.base:
            self.log.drop(upto)
            self.library.dropped(upto)
            self.checkpoints.dropped()

    def _drop(self) -> None:
        """Drop what nobody needs. A disk follows with the next checkpoint, or now if writing one again is cheap."""
        if self._droppable <= self.log.base or (self.carrier.is_stored and not self.host.snapshots_cheaply):
            return
        self._drop_upto(self._droppable)
        self.write(CheckpointRecord(self.stream, self.log.checkpoint_seq, self.log.checkpoint, self.log.base))

    def skip_to(self, seq: int, state: bytes, epoch: int) -> None:
        """Go on behind a checkpoint: what we miss is no longer kept anywhere, or we begin here."""
        invariant(seq > self.delivered, f"checkpoint {seq} is older than what was delivered, {self.delivered}")
        self._apart = ()
        self.log.set_checkpoint(seq, state, seq)
        self.library.dropped(self.log.base)
        self.checkpoints.took(seq, state)
        self.checkpoints.dropped()
        self.checkpoints.reached(seq)
        self.intake.hurry(self.turn.now)
        self.stable_said = max(self.stable_said, seq)
        self._delivery.skip_to(seq, state, epoch)

    def delivered_since(self, seq: int) -> list[Entry]:
        """What was delivered after entry ``seq``, which must be held."""
        return self._delivery.entries(self.log, seq + 1, self.delivered)

    def entries_between(self, first: int, upto: int) -> list[Entry]:
        """Entries ``first … upto``, which must be held, with their payloads."""
        return self._delivery.entries(self.log, first, upto)

    # --- Changing the log ---

    def append(self, entries: tuple[Piece, ...]) -> None:
        """The leader's own entries."""
        first = self.log.last + 1
        self.log.append(entries)
        self.library.appended(first, entries)

    def offer(self, first_seq: int, entries: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Entries of the epoch of this log; returns those that now continue it."""
        first = self.log.last + 1
        fresh = self.intake.offer(first_seq, entries, self.turn.now)
        if fresh:
            self._apart = ()
        self.library.appended(first, fresh)
        return fresh

    def switch(self, epoch: int, keep_upto: int, entries: tuple[Piece, ...]) -> None:
        """Become the log of ``epoch``. What was said of entries beyond it was said of another log."""
        is_other, self._apart = epoch != self.log.accepted, ()
        self.log.switch(epoch, keep_upto, entries)
        if is_other:
            self.began = 0
            self.checkpoints.forget_advertised(self.delivered)
            self.discard_said = min(self.discard_said, self.log.last)
        self.library.switched(keep_upto, entries)
        self.intake.reset()

    def change_over(self, epoch: int) -> None:
        """Follow the log of ``epoch``: what is not settled may not be in it, and is kept apart until that is known."""
        settled, stable = self.settled, self.stable
        apart = self.log.between(settled + 1, self.log.last) or self._apart
        self.switch(epoch, settled, ())
        self.stable_said, self._apart = stable, apart

    def had_after(self, seq: int) -> list[bytes]:
        """The entries after ``seq`` that are in the log, and then those that were kept apart."""
        return [*self.log.between(seq + 1, self.log.last), *self._apart]

    # --- Repair ---

    def on_repair_ask(self, sender: str, ask: RepairAsk) -> None:
        """Somebody misses entries; answered from the log as it is, whatever was promised."""
        answer = self.answer_to(ask)
        if answer is not None:
            self.carrier.send(sender, answer)
            self.turn.mark("repair-answered")
            add(self.turn.tally.retransmits, "repair")

    def answer_to(self, ask: RepairAsk) -> Repair | None:
        """What we have of what is asked for."""
        log = self.log
        if ask.first <= log.base:
            return self._checkpoint_block(ask)
        entries = log.slice(ask.first, ask.upto, REPAIR_BYTES_MAX)
        if not entries:
            return None
        return Repair(
            self.stream, log.accepted, self.stable, ask.first, entries, began=self.began, views=self.known_views
        )

    @property
    def known_views(self) -> Views:
        """The views of this log, for who has never heard of its newest; () if they are not all known."""
        return self.views() if self.delivered >= self.began >= 1 else ()

    def _checkpoint_block(self, ask: RepairAsk) -> Repair:
        log = self.log
        described, state = self.checkpoints.give(ask.checkpoint_seq, self.turn.now)
        seq = described.seq
        offset = ask.checkpoint_offset if ask.checkpoint_seq == seq else 0
        end = offset + self.retention.block_bytes
        entries = log.slice(seq + 1, ask.upto, REPAIR_BYTES_MAX) if end >= len(state) else ()
        return Repair(
            self.stream, log.accepted, self.stable, seq + 1, entries,
            seq, offset, len(state), state[offset:end], self.began, self.known_views, described.crc, log.base + 1,
        )  # fmt: skip

    def on_block_ask(self, sender: str, ask: BlockAsk) -> None:
        """Somebody fetches a checkpoint, perhaps from others as well; answered also if it is not here."""
        log = self.log
        described, state = self.checkpoints.give(ask.seq, self.turn.now)
        if described.seq != ask.seq:
            described, state = Described(ask.seq, 0, 0), b""
        end = ask.offset + min(ask.size, self.retention.block_bytes)
        block = Block(self.stream, log.accepted, self.stable, *described, ask.offset, state[ask.offset : end])
        self.carrier.send(sender, block)

    def needs_checkpoint(self, repair: Repair, upto: float) -> bool:
        """Whether an answer has to tell of a checkpoint because what we lack *now* is no longer kept.

        The ask may be long ago; what it was about came another way, and of the rest the sender still has everything. Or
        the sender began later than what we lack, and others have it. A copy that is to begin with a checkpoint does so.
        """
        complete = self.library.complete_upto
        if not upto >= repair.checkpoint_seq > complete:
            return False
        if self.intake.begins_with_checkpoint and not complete:
            return True
        if 0 < repair.kept_from <= complete + 1:
            return False
        if self._may_be_kept(complete + 1):
            self.intake.expect(repair.checkpoint_seq, self.turn.now)
            return False
        return True

    def _may_be_kept(self, seq: int) -> bool:
        """Whether a group keeps this entry for us, as far as we were told, and not everybody was asked for it twice."""
        asked, everybody = max(self.intake.asked, self.library.asked), max(len(self.servers), 1)  # if we know them yet
        return self.retention.until_discarded and seq > self.discard_said and asked < 2 * everybody

    def take_checkpoint_block(self, sender: str, repair: Repair) -> bytes | None:
        """What we miss is no longer kept: this is the first block of a checkpoint. Returns it once it is whole."""
        if sender in self._suspects:
            return None  # ask the next one
        described = Described(repair.checkpoint_seq, repair.checkpoint_bytes, repair.checkpoint_crc)
        if self.fetch is None:
            if repair.checkpoint_offset:
                return None  # an answer of long ago
            others = [name for name in self._in_turn() if name not in self._suspects]
            sources = [sender, *others] if self.retention.until_discarded else [sender]  # voters do not advertise
            block_bytes = max(len(repair.checkpoint), 1)
            self.fetch = Fetch(described, sources, block_bytes=block_bytes, patience=self.timers.repeat_max)
        return self.take_block(sender, described, repair.checkpoint_offset, repair.checkpoint)

    def take_block(self, sender: str, described: Described, offset: int, block: bytes) -> bytes | None:
        """A block of the checkpoint that we fetch; returns the whole once it is there, and still needed."""
        fetch = self.fetch
        if fetch is None or described.seq != fetch.described.seq:
            return None
        fetch.take(sender, described, offset, block)
        if not fetch.is_whole or described.seq <= self.library.complete_upto:
            self._fetch_on()
            return None
        state = fetch.state
        if state is None:
            self.turn.mark("checkpoint-does-not-add-up")
            text = (
                f"blocks of the checkpoint after {described.seq} from {', '.join(sorted(fetch.served))} do not add up"
            )
            self.turn.journal("trouble", group=self.stream, text=text)
            anew = fetch.from_one()
            if anew is None:
                self._suspects += tuple(sorted(fetch.served))
            self._fetch_anew(anew)
            return None
        if len(fetch.served) > 1:
            self.turn.mark("checkpoint-from-many")
        self.fetch = None
        return state

    def _fetch_on(self) -> None:
        """Ask for the next blocks; give up if nobody has them, or they are not needed any more."""
        fetch = self.fetch
        if fetch is None:
            return
        is_needed = fetch.described.seq > self.library.complete_upto
        for server, offset, size in fetch.next_asks(self.turn.now) if is_needed else ():
            self.carrier.send(server, BlockAsk(self.stream, fetch.described.seq, offset, size))
        if fetch.is_hopeless or not is_needed:
            self.turn.mark("checkpoint-fetch-given-up")
            self._fetch_anew(None)

    def _fetch_anew(self, fetch: Fetch | None) -> None:
        self.fetch = fetch
        if fetch is None:
            self.intake.hurry(self.turn.now)  # somebody else may have something else
        else:
            self._fetch_on()

    @property
    def _place(self) -> int:
        receivers = (name for name, _ in self.members() if name not in self.servers)
        return place_in((*self.servers, *receivers), self.turn.node)

    @property
    def _begins_with(self) -> int:
        """Our place; or that of the server that could help us last: who has much to catch up with asks it on."""
        others = in_turn(self.servers, self.turn.node, self.leader, 0)
        return others.index(self._helper) if self._helper in others else self._place

    def _in_turn(self) -> list[str]:
        return in_turn(self.servers, self.turn.node, self.leader, self._begins_with)

    def _first_wait(self) -> float:
        return first_wait(self.timers.repair_delay, self._place)

    def whom_to_ask(self, attempt: int, *more: str) -> str:
        """The servers in turn, from the one that is ours to begin with; the leader, and who else may have it, last."""
        return whom_to_ask(self.servers, self.turn.node, self.leader, attempt, *more, place=self._begins_with)

    def look_at_answer(self, sender: str, repair: Repair) -> None:
        """Who has nothing where we have a gap says so: then the other servers are asked without waiting.

        The leader is not, its turn comes as if they had been silent. It may be that it alone has the entry; then the
        others ask for it, too, and have it soon.
        """
        if repair.entries:
            self._helper = sender
        gap = self.intake.gap
        has_nothing = repair.first == self.log.last + 1 and not repair.entries and not repair.checkpoint_seq
        if not has_nothing or gap is None or self.fetch is not None:
            return
        others = self._in_turn()
        if not 1 <= self.intake.asked <= len(others):
            return
        self._asked_on += 1
        if self._asked_on < len(others):
            self.turn.mark("gap-asked-on")
            whom = others[(self.intake.asked - 1 + self._asked_on) % len(others)]
            self.carrier.send(whom, RepairAsk(self.stream, *gap))

    @property
    def ask_at(self) -> float:
        """When to ask for what is missing."""
        if self.fetch is not None:
            return self.fetch.deadline
        return min(self.intake.ask_at, self.library.ask_at)

    def ask_for_missing(self) -> None:
        """Ask for the next gap and for payloads, if it is time to; what comes before a checkpoint is not waited for."""
        if self.fetch is not None:
            self._fetch_on()
            return
        lacking = self.library.next_ask()
        if lacking is not None:
            payload_ids, attempt = lacking
            origin = payload_ids[0][0]  # it has the payload until it knows that the entry is stable
            target = self.whom_to_ask(attempt, origin)
            if target:
                self.turn.mark("payload-asked")
                self.library.ask(target, payload_ids)
                if attempt > len(self.servers) and self.intake.ask_at == math.inf:
                    # Perhaps it is kept nowhere any more, and no checkpoint is on its way yet.
                    lacking_seq = self.library.complete_upto + 1
                    self.carrier.send(target, RepairAsk(self.stream, lacking_seq, lacking_seq))
        ask = self.intake.next_ask(self.turn.now)
        if ask is None:
            return
        first, upto, attempt = ask
        self._asked_on = 0
        target = self.whom_to_ask(attempt)
        if target:
            self.carrier.send(target, RepairAsk(self.stream, first, upto))


def shared_upto(repair: Repair | Block, epoch: int, began: int) -> float:
    """Up to where an answer tells of the log of ``epoch``, whose view began with entry ``began``.

    Of the same epoch that is all, of an older one what was stable before that view. A forced view may lack what
    was stable when it began, and a late answer may still have it.
    """
    return math.inf if repair.accepted == epoch else min(repair.stable, began - 1)


def usable_entries(repair: Repair, upto: float) -> tuple[bytes, ...]:
    """The entries of an answer as far as they are shared."""
    return repair.entries if upto == math.inf else repair.entries[: max(0, int(upto) - repair.first + 1)]
