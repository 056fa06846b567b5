"""A server's copy of a stream: a checkpoint and the entries after it.

    base            checkpoint_seq              last
     |  entries kept      |   entries needed      |
     |  for short lags    |   to rebuild          |

``accepted`` is the epoch in which this copy was last agreed upon. Two logs of equal ``accepted`` are
prefixes of one another; of two logs with different ``accepted`` only what is stable is the same. That is
why an entry needs no epoch of its own, and why nobody may append under an epoch he has not accepted.

The entries are kept in the pieces in which they came. A piece is cut only where the log itself is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from ..invariants import invariant
from ..records import StoredStream
from .entries import Piece, length_of, one_by_one, part_of, size_of


class Log:
    """Contiguous entries ``base + 1 … last``, and the state after entry ``checkpoint_seq``."""

    __slots__ = ("_firsts", "_pieces", "accepted", "base", "bytes", "checkpoint", "checkpoint_seq", "last")

    def __init__(self, stored: StoredStream | None = None) -> None:
        stored = stored or StoredStream()
        self.accepted = stored.accepted
        self.base = stored.base
        self.last = stored.base  # number of the newest entry held
        self.bytes = 0  # of the entries kept
        self._pieces: list[Piece] = []
        self._firsts: list[int] = []  # the numbers with which they begin
        self.append(stored.entries)
        self.checkpoint_seq = stored.checkpoint_seq
        self.checkpoint = stored.checkpoint

    @property
    def count(self) -> int:
        """How many entries are kept."""
        return self.last - self.base

    @property
    def entries(self) -> list[bytes]:
        """All that are kept."""
        return list(one_by_one(self._pieces))

    def entry(self, seq: int) -> bytes:
        """The entry with this number, which must be held."""
        return next(one_by_one(self.pieces(seq, seq)))

    def between(self, first: int, upto: int) -> list[bytes]:
        """Entries ``first … upto``, which must be held."""
        return list(one_by_one(self.pieces(first, upto)))

    def pieces(self, first: int, upto: int) -> list[Piece]:
        """The same, as they came."""
        if first > upto:
            return []
        if first == self._firsts[-1] and upto == self.last:  # what has just come, as nearly always
            return self._pieces[-1:]
        start, end = self._place(first), self._place(upto)
        found = self._pieces[start : end + 1]
        found[-1] = part_of(found[-1], 0, upto - self._firsts[end] + 1)
        found[0] = part_of(found[0], first - self._firsts[start], length_of(found[0]))
        return found

    def _place(self, seq: int) -> int:
        """The position of the piece that entry ``seq`` is in."""
        return bisect_right(self._firsts, seq) - 1

    def slice(self, first: int, upto: int, bytes_max: int) -> tuple[bytes, ...]:
        """Entries ``first … upto`` as far as held and as they fit, at least one if any is held."""
        found: list[bytes] = []
        size = 0
        for entry in one_by_one(self.pieces(max(first, self.base + 1), min(upto, self.last))):
            size += len(entry)
            if found and size > bytes_max:
                break
            found.append(entry)
        return tuple(found)

    def append(self, pieces: Sequence[Piece]) -> None:
        """Add entries at the end."""
        for piece in pieces:
            self._pieces.append(piece)
            self._firsts.append(self.last + 1)
            self.last += length_of(piece)
            self.bytes += size_of(piece)

    def switch(self, epoch: int, keep_upto: int, entries: Sequence[Piece]) -> None:
        """Become the log of ``epoch``: what is above ``keep_upto`` goes, ``entries`` come."""
        invariant(self.base <= keep_upto <= self.last, f"log {self.base}..{self.last} cannot keep up to {keep_upto}")
        if keep_upto < self.last:
            self._cut_behind(keep_upto)
        self.append(entries)
        self.accepted = epoch

    def _cut_behind(self, upto: int) -> None:
        place = self._place(upto + 1)
        gone, kept = self._pieces[place:], self.pieces(self._firsts[place], upto)
        del self._pieces[place:], self._firsts[place:]
        self.bytes -= sum(map(size_of, gone))
        self.last = upto - sum(map(length_of, kept))
        self.append(kept)

    def set_checkpoint(self, seq: int, state: bytes, drop_upto: int) -> None:
        """The state after ``seq`` is known; entries up to ``drop_upto`` are no longer kept."""
        invariant(drop_upto <= seq, f"checkpoint {seq} cannot drop up to {drop_upto}")
        if self.last < seq:
            self.base = self.last = seq
            self._pieces, self._firsts, self.bytes = [], [], 0
        elif drop_upto > self.base:
            self._cut_before(drop_upto + 1)
        self.checkpoint_seq, self.checkpoint = seq, state

    def _cut_before(self, first: int) -> None:
        """Drop the pieces before entry ``first``, and what the one it is in has before it."""
        place = self._place(first) if first <= self.last else len(self._pieces)
        self.bytes -= sum(map(size_of, self._pieces[:place]))
        del self._pieces[:place], self._firsts[:place]
        if self._firsts and self._firsts[0] < first:
            whole = self._pieces[0]
            self._pieces[0], self._firsts[0] = part_of(whole, first - self._firsts[0], length_of(whole)), first
            self.bytes += size_of(self._pieces[0]) - size_of(whole)
        self.base = first - 1

    def drop(self, upto: int) -> None:
        """Entries up to ``upto`` are no longer kept."""
        self.set_checkpoint(self.checkpoint_seq, self.checkpoint, upto)
