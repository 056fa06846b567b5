"""Handing stable entries up: in order, each once, whoever holds the log.

A server and a receiver have different rights to their logs, but what they may deliver they deliver in the same way:
entry after entry to the host, the state machine that the stream drives. After a checkpoint it goes on behind it.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol
from zlib import crc32

from ..records import Record
from .carrier import Carrier
from .digests import RunningDigest
from .entries import Entry, Piece, Run, decode_entry, decode_reference, is_reference, length_of, one_by_one
from .library import Library
from .log import Log


class Holders(NamedTuple):
    """The disks behind a stream, by name and state id."""

    state_id: str = ""  # ours
    voters: tuple[tuple[str, str], ...] = ()  # as of the end of our log, stable or not
    admitted: tuple[tuple[str, str], ...] = ()  # those of them that are known for certain: even a blank one may promise


class Host(Protocol):
    """What the stream is for: the state machine that its entries drive."""

    def deliver(self, first_seq: int, runs: list[Run]) -> None:
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
        self._digest = RunningDigest(upto) if carrier.journals_digests else None
        self._delivers_batches = carrier.delivers_batches
        self.upto = upto
        self._library = library

    def advance(self, log: Log, stable: int) -> None:
        """Deliver what is stable and was not delivered yet."""
        while self.upto < stable:
            first = self.upto + 1
            pieces = log.pieces(first, stable if self._delivers_batches else first)
            start = 0
            runs: list[Run] = []
            for end, piece in enumerate(pieces, 1):
                run = self._whole(piece)
                runs.append(run)
                if not run.origin or end == len(pieces):  # what the leader orders for itself may change the host
                    self._hand_up(log.accepted, pieces[start:end], runs)
                    start, runs = end, []

    def entries(self, log: Log, first: int, upto: int) -> list[Entry]:
        """Entries ``first … upto`` with their payloads."""
        return [entry for piece in log.pieces(first, upto) for entry in self._whole(piece).entries()]

    def _whole(self, piece: Piece) -> Run:
        if isinstance(piece, Run):
            return piece
        if not is_reference(piece):
            entry = decode_entry(piece)
            return Run(entry.origin, entry.incarnation, entry.n, (entry.body,))
        reference = decode_reference(piece)
        payload_id = (reference.origin, reference.incarnation, reference.n)
        return Run(*payload_id, (self._library.payloads[payload_id],))

    def _hand_up(self, epoch: int, pieces: list[Piece], runs: list[Run]) -> None:
        first = self.upto + 1
        self.upto += sum(map(length_of, pieces))
        self.turn.tally.delivered_entries += self.upto - first + 1
        if self._journals_entries:
            self._journal(first, epoch, pieces, runs)
        if self._digest is not None:
            self._journal_digest(self._digest, first, epoch, runs)
        elif not self._journals_entries:
            self.turn.audit("delivered", group=self.stream, epoch=epoch, seq=self.upto, first=first)
        self.host.deliver(first, runs)

    def _journal(self, first: int, epoch: int, pieces: list[Piece], runs: list[Run]) -> None:
        entries = [entry for run in runs for entry in run.entries()]
        for seq, (raw, entry) in enumerate(zip(one_by_one(pieces), entries, strict=True), first):
            origin = f"{entry.origin}/{entry.incarnation}" if entry.origin else ""
            self.turn.journal("delivered", group=self.stream, epoch=epoch, seq=seq, crc=crc32(raw),
                              origin=origin, n=entry.n)  # fmt: skip

    def _journal_digest(self, digest: RunningDigest, first: int, epoch: int, runs: list[Run]) -> None:
        digest.add(first, runs)
        self.turn.journal("digest" if self._journals_entries else "delivered", group=self.stream, epoch=epoch,
                          seq=self.upto, first=first, base=digest.base, digest=digest.text)  # fmt: skip
        if not runs[-1].origin:
            digest.begin(self.upto)

    def skip_to(self, seq: int, state: bytes, epoch: int) -> None:
        """Go on behind a checkpoint."""
        self.turn.journal("restored", group=self.stream, epoch=epoch, seq=seq)
        self.upto = seq
        if self._digest is not None:
            self._digest.begin(seq)
        self.host.restore(seq, state)
