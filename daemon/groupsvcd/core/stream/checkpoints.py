"""The checkpoints that a node keeps of one stream, and when it takes the next one.

A, B and C serve a group with ``checkpoint_every = 1000``. Each takes a checkpoint after the entries 1000, 2000, … and
after no others while there is traffic, so that all have states of the same entries, byte for byte the same: then a new
member can fetch one block of it here and the next one there. B and C report to A what they have; when enough servers
have one (``checkpoint_k``), A *advertises* it. Only behind an advertised checkpoint is anything dropped: whoever
comes then finds that many servers with a state to go on from (SAM-05, SAM-07).

Kept are the advertised one, until the next is advertised; the newest; those that were *offered*, which may be
advertised next, until others are; and any that somebody is fetching: as long as a block of it was asked for within a
lease, it stays, with the entries behind it. Offering is what makes servers agree under load, when each takes many
between two beats: A offers what it has with a beat, B takes what that beat makes stable and offers it in its answer.

In the domain's stream every voter is on its own: what it takes counts as advertised at once.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from .log import Log

NEWEST_KEPT = 2
"""Taken and not offered yet: other servers may be one ahead or behind."""

SMALL_KEPT = 16
"""The same for small states: they cost nothing, and small intervals need more of them."""

SMALL_BYTES = 64 * 1024
"""All of these together."""

FETCHED_MAX = 2
"""Kept for those who fetch, beside the others."""


class Described(NamedTuple):
    """A checkpoint without its bytes: the state after entry ``seq``, how long it is, and its CRC-32."""

    seq: int
    size: int
    crc: int


NONE = Described(0, 0, 0)


class Checkpoints:
    """What one node keeps."""

    __slots__ = ("_asked_at", "_every", "_kept", "_log", "_offered", "advertised", "due")  # a node has thousands

    def __init__(self, log: Log, every: int) -> None:
        self._log = log
        self._every = every
        self._kept: dict[int, tuple[Described, bytes]] = {}  # oldest first
        self._asked_at: dict[int, float] = {}
        self._offered: tuple[Described, ...] = ()
        self.advertised = NONE
        self.due = 0  # the entry after which the next one is to be taken
        if log.checkpoint_seq:
            self._keep(log.checkpoint_seq, log.checkpoint)
        self.reached(log.checkpoint_seq)

    def reached(self, seq: int) -> None:
        """Entry ``seq`` was delivered, or skipped."""
        self.due = (seq // self._every + 1) * self._every

    def took(self, seq: int, state: bytes) -> None:
        """The log has a new checkpoint, our own or one that was fetched."""
        self._keep(seq, state)
        self._trim()

    def _keep(self, seq: int, state: bytes) -> None:
        self._kept.pop(seq, None)
        self._kept[seq] = (Described(seq, len(state), crc32(state)), state)

    def offer(self, beyond: int) -> tuple[Described, ...]:
        """Those newer than entry ``beyond``, to be told to others; they are kept until this is asked for again."""
        self._offered = tuple(described for described, _ in self._kept.values() if described.seq > beyond)
        self._trim()
        return self._offered

    @property
    def newest(self) -> Described:
        """The one that was taken last."""
        return next(reversed(self._kept.values()))[0] if self._kept else NONE

    def advertise(self, described: Described) -> bool:
        """Enough servers have this one; whether that is news."""
        if described.seq <= self.advertised.seq:
            return False
        self.advertised = described
        self._trim()
        return True

    def forget_advertised(self, delivered: int) -> None:
        """A new epoch: what lies beyond what we have delivered may not be in its log."""
        if self.advertised.seq > delivered:
            self.advertised = NONE

    def give(self, wanted: int, now: float) -> tuple[Described, bytes]:
        """The one after entry ``wanted`` if it is kept, else the advertised one, else the newest; notes the use."""
        found = self._kept.get(wanted) or self._kept.get(self.advertised.seq)
        if found is None:
            found = self._kept.get(self._log.checkpoint_seq, (NONE, b""))
        self._asked_at[found[0].seq] = now
        return found

    def dropped(self) -> None:
        """Entries were dropped: a checkpoint without those behind it is worth nothing."""
        for seq in [seq for seq in self._kept if seq < self._log.base]:
            del self._kept[seq]
            self._asked_at.pop(seq, None)

    def fetched_from(self, since: float) -> int | None:
        """The oldest one that somebody asked for since then."""
        self._asked_at = {seq: at for seq, at in self._asked_at.items() if at >= since and seq in self._kept}
        return min(self._asked_at, default=None)

    def _trim(self) -> None:
        wanted = {self.advertised.seq, *sorted(self._asked_at)[-FETCHED_MAX:], *(one.seq for one in self._offered)}
        size = 0
        for count, (described, _) in enumerate(reversed(self._kept.values())):
            size += described.size
            if count >= SMALL_KEPT or (count >= NEWEST_KEPT and size > SMALL_BYTES):
                break
            wanted.add(described.seq)
        for seq in [seq for seq in self._kept if seq not in wanted]:
            del self._kept[seq]
            self._asked_at.pop(seq, None)
