"""Handing stable entries up: in order, each once, whoever holds the log.

A server and a receiver have different rights to their logs, but what they may deliver they deliver in the same way:
entry after entry to the host, the state machine that the stream drives. After a checkpoint it goes on behind it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol
from zlib import crc32

from ..records import Record
from .carrier import Carrier
from .entries import Entry, decode_entries, decode_entry, decode_reference, is_reference
from .library import Library
from .log import Log


class Holders(NamedTuple):
    """The disks behind a stream, by name and state id."""

    state_id: str = ""  # ours
    voters: tuple[tuple[str, str], ...] = ()  # as of the end of our log, stable or not
    admitted: tuple[tuple[str, str], ...] = ()  # those of them that are known for certain: even a blank one may promise


class Host(Protocol):
    """What the stream is for: the state machine that its entries drive."""

    def deliver(self, first_seq: int, entries: list[Entry]) -> None:
        """These entries are stable and next in order; only the last may be one of the leader's own."""

    def restore(self, seq: int, state: bytes) -> None:
        """Continue from the state after entry ``seq``."""

    def snapshot(self) -> bytes | None:
        """The state after the entry delivered last; None if it is not here any more."""

    @property
    def can_snapshot(self) -> bool:
        """Whether the state is here: a group's application may not be running on this node."""

    @property
    def snapshots_cheaply(self) -> bool:
        """Whether a snapshot may be taken whenever it saves memory, and not only from time to time."""

    def holders(self) -> Holders:
        """Whose disks hold the stream, as our log has it; nothing where there are no disks."""

    def switching(self, epoch: int) -> tuple[Record, ...]:
        """The log is about to become that of ``epoch``; what else is to be written in the same transaction?"""


class Delivery:
    """How far the host has got."""

    def __init__(self, carrier: Carrier, host: Host, library: Library, upto: int = 0) -> None:
        self.turn = carrier.turn
        self.stream = carrier.stream
        self.host = host
        self._journals_entries = carrier.journals_entries
        self._delivers_batches = carrier.delivers_batches
        self.upto = upto
        self._library = library

    def advance(self, log: Log, stable: int) -> None:
        """Deliver what is stable and was not delivered yet."""
        while self.upto < stable:
            first = self.upto + 1
            raw = log.between(first, stable if self._delivers_batches else first)
            entries = self._decoded(raw)
            start = 0
            for end in _batch_ends(entries):
                self._hand_up(log.accepted, raw[start:end], entries[start:end])
                start = end

    def _decoded(self, raw: list[bytes]) -> list[Entry]:
        if self._library.has_references:
            return [self._whole(entry) if is_reference(entry) else decode_entry(entry) for entry in raw]
        return decode_entries(raw)

    def entries(self, log: Log, first: int, upto: int) -> list[Entry]:
        """Entries ``first … upto`` with their payloads."""
        raw = log.between(first, upto)
        return [self._whole(entry) if is_reference(entry) else decode_entry(entry) for entry in raw]

    def _whole(self, entry: bytes) -> Entry:
        reference = decode_reference(entry)
        payload = self._library.payloads[(reference.origin, reference.incarnation, reference.n)]
        return Entry(reference.origin, reference.incarnation, reference.n, payload)

    def _hand_up(self, epoch: int, raw: list[bytes], entries: list[Entry]) -> None:
        first = self.upto + 1
        self.upto += len(entries)
        if self._journals_entries:
            self._journal(first, epoch, raw, entries)
        else:
            self.turn.journal("delivered", group=self.stream, epoch=epoch, seq=self.upto, first=first)
        self.host.deliver(first, entries)

    def _journal(self, first: int, epoch: int, raw: list[bytes], entries: list[Entry]) -> None:
        for seq, (entry, parts) in enumerate(zip(raw, entries, strict=True), first):
            origin = f"{parts.origin}/{parts.incarnation}" if parts.origin else ""
            self.turn.journal("delivered", group=self.stream, epoch=epoch, seq=seq, crc=crc32(entry),
                              origin=origin, n=parts.n)  # fmt: skip

    def skip_to(self, seq: int, state: bytes, epoch: int) -> None:
        """Go on behind a checkpoint."""
        self.turn.journal("restored", group=self.stream, epoch=epoch, seq=seq)
        self.upto = seq
        self.host.restore(seq, state)


def _batch_ends(entries: list[Entry]) -> list[int]:
    """Where what is handed up at once ends: behind an entry of the leader's own, for it may change the host."""
    ends = [end for end, entry in enumerate(entries, 1) if not entry.origin]
    return ends if ends and ends[-1] == len(entries) else [*ends, len(entries)]
