"""A server's copy of a stream: a checkpoint and the entries after it.

    base            checkpoint_seq              last
     |  entries kept      |   entries needed      |
     |  for short lags    |   to rebuild          |

``accepted`` is the epoch in which this copy was last agreed upon. Two logs of equal ``accepted`` are
prefixes of one another; of two logs with different ``accepted`` only what is stable is the same. That is
why an entry needs no epoch of its own, and why nobody may append under an epoch he has not accepted.
"""

from __future__ import annotations

from ..invariants import invariant
from ..records import StoredStream


class Log:
    """Contiguous entries ``base + 1 … last``, and the state after entry ``checkpoint_seq``."""

    __slots__ = ("accepted", "base", "bytes", "checkpoint", "checkpoint_seq", "entries", "last")

    def __init__(self, stored: StoredStream | None = None) -> None:
        stored = stored or StoredStream()
        self.accepted = stored.accepted
        self.base = stored.base
        self.entries = list(stored.entries)
        self.last = self.base + len(self.entries)  # number of the newest entry held
        self.bytes = sum(map(len, self.entries))  # of the entries kept
        self.checkpoint_seq = stored.checkpoint_seq
        self.checkpoint = stored.checkpoint

    def entry(self, seq: int) -> bytes:
        """The entry with this number, which must be held."""
        return self.entries[seq - self.base - 1]

    def between(self, first: int, upto: int) -> list[bytes]:
        """Entries ``first … upto``, which must be held."""
        return self.entries[first - self.base - 1 : upto - self.base]

    def slice(self, first: int, upto: int, bytes_max: int) -> tuple[bytes, ...]:
        """Entries ``first … upto`` as far as held and as they fit, at least one if any is held."""
        found: list[bytes] = []
        size = 0
        for entry in self.entries[max(0, first - self.base - 1) : max(0, upto - self.base)]:
            size += len(entry)
            if found and size > bytes_max:
                break
            found.append(entry)
        return tuple(found)

    def append(self, entries: tuple[bytes, ...]) -> None:
        """Add entries at the end."""
        self.entries.extend(entries)
        self.last += len(entries)
        self.bytes += sum(map(len, entries))

    def switch(self, epoch: int, keep_upto: int, entries: tuple[bytes, ...]) -> None:
        """Become the log of ``epoch``: what is above ``keep_upto`` goes, ``entries`` come."""
        invariant(self.base <= keep_upto <= self.last, f"log {self.base}..{self.last} cannot keep up to {keep_upto}")
        self.bytes -= sum(map(len, self.entries[keep_upto - self.base :]))
        del self.entries[keep_upto - self.base :]
        self.last = keep_upto
        self.append(entries)
        self.accepted = epoch

    def set_checkpoint(self, seq: int, state: bytes, drop_upto: int) -> None:
        """The state after ``seq`` is known; entries up to ``drop_upto`` are no longer kept."""
        invariant(drop_upto <= seq, f"checkpoint {seq} cannot drop up to {drop_upto}")
        if self.last < seq:
            self.base, self.last, self.entries, self.bytes = seq, seq, [], 0
        elif drop_upto > self.base:
            self.bytes -= sum(map(len, self.entries[: drop_upto - self.base]))
            del self.entries[: drop_upto - self.base]
            self.base = drop_upto
        self.checkpoint_seq, self.checkpoint = seq, state

    def drop(self, upto: int) -> None:
        """Entries up to ``upto`` are no longer kept."""
        self.set_checkpoint(self.checkpoint_seq, self.checkpoint, upto)
