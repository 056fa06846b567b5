"""A simulated state directory: what is synced stays, what is not may go.

Node A asks for two writes. The disk begins to sync the first; the second waits and shares the next sync with
whatever else has come by then, as the daemon's journal thread does. If A is killed during the sync, nobody
knows whether the transaction made it: a coin decides, all of it or nothing. What still waited is gone. The
same holds for a power loss, because nothing was acknowledged that was not synced.

Records can be damaged: a bit of an entry flips, or the newest entries are missing. A store finds that by its checksums
when it is read the next time; from then on the log of that stream counts for nothing.

A disk can be slow, hang, be full (writes wait until space returns) or answer EIO, after which the process must
stop: a second fsync would succeed while the data is gone. A lost disk comes back blank under a new state id; the
old one may lie in a drawer and be put back by mistake much later.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from groupsvcd.core.effects import Persist
from groupsvcd.core.peer_messages import DOMAIN_STREAM
from groupsvcd.core.records import (
    NO_DOMAIN,
    AboutRecord,
    AppendRecord,
    CheckpointRecord,
    DropPayloadsRecord,
    ForgetRecord,
    NodeRecord,
    OpenRecord,
    OptionsRecord,
    PayloadRecord,
    PromiseRecord,
    Record,
    Stored,
    StoredStream,
)

if TYPE_CHECKING:
    from .node import Node

OptionLines = tuple[tuple[str, str, int], ...]

SYNC_S_MIN = 0.0002
"""The quickest sync of a good solid-state disk."""

SYNC_S_SPREAD = 0.004
"""How much longer one may take now and then."""


class DiskCorrupted(Exception):
    """A record does not fit what is stored: the engine asked for something impossible."""


class Log:
    """One stream on disk, changed in place; ``StoredStream`` is its picture."""

    __slots__ = (
        "about", "accepted", "base", "checkpoint", "checkpoint_seq", "damage", "entries", "payloads", "promised",
    )  # fmt: skip

    def __init__(self) -> None:
        self.promised = 0
        self.accepted = 0
        self.base = 0
        self.entries: list[bytes] = []
        self.checkpoint_seq = 0
        self.checkpoint = b""
        self.about = b""
        self.payloads: dict[tuple[str, int, int], bytes] = {}
        self.damage = ""  # found by a checksum at the next start

    @property
    def last(self) -> int:
        """The number of the last entry."""
        return self.base + len(self.entries)

    def picture(self) -> StoredStream:
        """The value a starting engine gets."""
        if self.damage:
            return StoredStream(promised=self.promised, accepted=self.accepted, about=self.about, damage=self.damage)
        return StoredStream(
            promised=self.promised,
            accepted=self.accepted,
            base=self.base,
            entries=tuple(self.entries),
            checkpoint_seq=self.checkpoint_seq,
            checkpoint=self.checkpoint,
            about=self.about,
            payloads=dict(self.payloads),
        )

    def flip(self, position: int, rng: random.Random) -> None:
        """One bit of an entry is not what was written; its checksum is."""
        entry = bytearray(self.entries[position])
        entry[rng.randrange(len(entry))] ^= 1 << rng.randrange(8)
        self.entries[position] = bytes(entry)
        self.damage = f"entry {self.base + 1 + position} is not as it was written"

    def tear(self, count: int) -> None:
        """The newest entries are gone; the row that tells how many there were is not."""
        self.damage = f"entries up to {self.last}, {self.last - count} found"
        del self.entries[-count:]

    def promise(self, record: PromiseRecord) -> None:
        """A promise never falls."""
        if record.epoch < self.promised:
            raise DiskCorrupted(f"promise {record.epoch} after promise {self.promised}")
        self.promised = record.epoch

    def append(self, record: AppendRecord) -> None:
        """Entries follow without a gap."""
        if record.first_seq != self.last + 1:
            raise DiskCorrupted(f"entries from {record.first_seq} on do not follow entry {self.last}")
        self.entries.extend(record.entries)

    def open(self, record: OpenRecord) -> None:
        """One transaction changes the log over to a new epoch."""
        if record.epoch < self.promised:
            raise DiskCorrupted(f"epoch {record.epoch} opened after promise {self.promised}")
        if not self.base <= record.keep_upto <= self.last:
            raise DiskCorrupted(f"cannot keep up to {record.keep_upto}: stored are {self.base + 1} to {self.last}")
        self.promised = self.accepted = record.epoch
        del self.entries[record.keep_upto - self.base :]
        self.entries.extend(record.entries)

    def check_point(self, record: CheckpointRecord) -> None:
        """The state after an entry; older entries may go."""
        if record.drop_upto > record.seq:
            raise DiskCorrupted(f"checkpoint {record.seq} would drop entries up to {record.drop_upto}")
        if record.seq < self.checkpoint_seq:
            raise DiskCorrupted(f"checkpoint {record.seq} after checkpoint {self.checkpoint_seq}")
        self.checkpoint_seq, self.checkpoint = record.seq, record.state
        if self.last < record.seq:
            self.entries.clear()
            self.base = record.seq
        elif record.drop_upto > self.base:
            del self.entries[: record.drop_upto - self.base]
            self.base = record.drop_upto


Drawer = tuple[str, int, bytes, dict[int, Log], OptionLines]
"""A state directory that is not in use."""


class Disk:
    """The state directory of one node and the device it is on."""

    __slots__ = (
        "batch", "domain", "drawer", "error", "incarnation", "logs", "lost", "node", "on_submit", "options", "outdated",
        "rng", "slowness", "state_id", "stuck", "syncing", "ticket", "waiting",
    )  # fmt: skip

    def __init__(self, node: Node, rng: random.Random) -> None:
        self.node = node
        self.rng = rng
        self.on_submit: Callable[[Persist], None] | None = None  # a nemesis watches what is about to be written
        self.ticket = 0  # which sync is running; an old completion finds another number and does nothing
        self.slowness = 1.0
        self.stuck = 0  # hung or full, counted: two faults may overlap
        self.error = False
        self.lost = False  # blank since a loss and not yet made whole by the domain
        self.drawer: Drawer | None = None  # the state directory that is not in use
        self.outdated = False  # the one in use was replaced, and the newer one lies in the drawer
        self.waiting: list[Persist] = []
        self.batch: list[Persist] = []
        self.syncing = False
        self.make_blank()

    def make_blank(self) -> None:
        """A new, empty state directory."""
        self.state_id = f"{self.node.name}-{self.rng.getrandbits(48):012x}"
        self.incarnation = 0
        self.domain = NO_DOMAIN
        self.logs: dict[int, Log] = {}
        self.options: OptionLines = ()

    def replace_by_blank(self) -> None:
        """A new, empty state directory; the present one goes into the drawer."""
        self.drawer = (self.state_id, self.incarnation, self.domain, self.logs, self.options)
        self.make_blank()
        self.lost = True

    def swap(self) -> None:
        """Use the state directory in the drawer and put the present one there, or back again.

        Incarnations come from the clock; whoever handles disks sees to it that it is not behind.
        """
        assert self.drawer is not None
        drawer = self.drawer
        self.drawer = (self.state_id, self.incarnation, self.domain, self.logs, self.options)
        self.state_id, self.incarnation, self.domain, self.logs, self.options = drawer
        self.incarnation = max(self.incarnation, self.node.highest_incarnation)
        self.outdated = self.lost = not self.outdated

    @property
    def was_replaced(self) -> bool:
        """Whether the one in the drawer held the domain stream: one that never did is a new disk like any other."""
        log = self.drawer[3].get(DOMAIN_STREAM) if self.drawer is not None else None
        return log is not None and log.accepted > 0

    def stored(self) -> Stored:
        """What a starting daemon reads."""
        streams = {stream: log.picture() for stream, log in self.logs.items()}
        return Stored(
            state_id=self.state_id, incarnation=self.incarnation, domain=self.domain, streams=streams,
            options=self.options,
        )  # fmt: skip

    def submit(self, persist: Persist) -> None:
        """Write and sync this after all that was submitted before."""
        self.waiting.append(persist)
        if not self.syncing:
            self._begin()
        if self.on_submit is not None:
            self.on_submit(persist)

    def _begin(self) -> None:
        self.syncing = True
        self.ticket += 1
        self.batch, self.waiting = self.waiting, []
        r = self.rng.random()
        world = self.node.world
        takes = (SYNC_S_MIN + world.sync_spread_s * r * r * r) * self.slowness
        world.push(world.t + takes, self._end, self.ticket, None)

    def _end(self, ticket: int, _: object) -> None:
        if ticket != self.ticket or not self.syncing:
            return
        if self.stuck:
            return  # ``unstick`` ends it
        if self.error:
            self.node.line("fsync_failed", {})
            self.node.disk_failed()
            return
        batch, self.batch = self.batch, []
        self.syncing = False
        for persist in batch:
            for record in persist.records:
                self.apply(record, seen=True)
        if self.waiting:
            self._begin()
        self.node.persisted(batch)

    def stick(self) -> None:
        """From now on nothing completes: the device hangs or the file system is full."""
        self.stuck += 1

    def unstick(self) -> None:
        """Undo one ``stick``."""
        self.stuck = max(0, self.stuck - 1)
        if not self.stuck and self.syncing:
            world = self.node.world
            world.push(world.t + SYNC_S_MIN, self._end, self.ticket, None)

    def process_died(self) -> None:
        """Nobody waits for the sync any more; whether it made it is anybody's guess."""
        if self.syncing and not self.stuck and not self.error and self.rng.random() < 0.5:
            for persist in self.batch:
                for record in persist.records:
                    self.apply(record, seen=False)
        self.batch = []
        self.waiting = []
        self.syncing = False
        self.ticket += 1

    def apply(self, record: Record, *, seen: bool) -> None:
        """Make one record part of what a restart finds."""
        if isinstance(record, NodeRecord):
            if record.incarnation < self.incarnation:
                raise DiskCorrupted(f"incarnation {record.incarnation} written after {self.incarnation}")
            self.incarnation, self.domain = record.incarnation, record.domain
            self.node.note_persisted("node", 0, 0, 0, seen=seen)
            return
        if isinstance(record, OptionsRecord):
            self.options = record.options
            self.node.note_persisted("options", 0, 0, 0, seen=seen)
            return
        if isinstance(record, ForgetRecord):
            self.logs.pop(record.stream, None)
            self.node.note_persisted("forget", record.stream, 0, 0, seen=seen)
            return
        log = self.logs.get(record.stream)
        if log is None:
            log = self.logs[record.stream] = Log()
        epoch = log.accepted
        if isinstance(record, AppendRecord):
            kind = "append"
            log.append(record)
        elif isinstance(record, PromiseRecord):
            kind, epoch = "promise", record.epoch
            log.promise(record)
        elif isinstance(record, OpenRecord):
            kind, epoch = "open", record.epoch
            log.open(record)
        elif isinstance(record, CheckpointRecord):
            kind = "checkpoint"
            log.check_point(record)
            self.node.note_persisted(kind, record.stream, epoch, log.last, seen=seen, base=log.base)
            return
        elif isinstance(record, AboutRecord):
            kind = "about"
            log.about = record.about
        elif isinstance(record, PayloadRecord):
            kind = "payload"
            log.payloads[record.payload_id] = record.payload
        elif isinstance(record, DropPayloadsRecord):
            kind = "payload"
            for payload_id in record.payload_ids:
                log.payloads.pop(payload_id, None)
        self.node.note_persisted(kind, record.stream, epoch, log.last, seen=seen)
