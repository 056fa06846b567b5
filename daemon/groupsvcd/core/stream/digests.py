"""A running digest of what is delivered: two journals that have the same at the same number have seen the same.

A and B deliver the same stream, A in batches of ten entries and B in batches of seven; each writes one line of history
per batch. At every number at which a batch of both has ended, 70 for instance, their digests must be equal, and if they
are, so is everything before: whose entries, numbered how by their origin, in which order. It hangs on entries alone and
not on how they came together.

It begins anew after every entry of the leader's own: a view, a member that comes or goes, a ruling. All see these at
the same number, so whoever begins somewhere in the middle, a new member or one that goes on from a checkpoint, has the
same digest as the others from the next such entry on. ``base`` is the number after which it began.

Half of it is for the places: the sum of ``(crc32("origin/incarnation") | 1) * seq * (n + 1)`` of all entries, modulo
2**32, which can be had of a whole run at once. The other half is for the bytes: the CRC-32, one after the other, of the
bodies of the leader's own entries and of every 64th entry. All bodies were tried: that alone cost 3 % of the
throughput at 100 bytes and 20 % at 10 kB, and every frame has a checksum anyway. Who wants to compare every byte has
the level ``full``. A cryptographic digest was rejected: who could make journals lie could as well write them himself.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from zlib import crc32

from .entries import Run

ORIGINS_KEPT = 4_096
"""Factors of origins that are remembered: more than a group has members, mostly."""

SAMPLED_EVERY = 64
"""The bodies of entries whose number is a multiple of this are looked at; a power of two."""

_HALF = 0xFFFF_FFFF


class RunningDigest:
    """Of the entries after ``base``."""

    __slots__ = ("_bodies", "_places", "base")

    def __init__(self, base: int) -> None:
        self.begin(base)

    def begin(self, base: int) -> None:
        """Entry ``base`` is the last that does not count."""
        self.base, self._bodies, self._places = base, 0, 0

    def add(self, seq: int, runs: Iterable[Run]) -> None:
        """The next entries, from ``seq`` on."""
        checksum, places = self._bodies, self._places
        for run in runs:
            count = len(run.bodies)
            first = -seq % SAMPLED_EVERY if run.origin else 0
            if first < count:
                checksum = crc32(b"".join(run.bodies[first::SAMPLED_EVERY]), checksum)
            places += _factor(run.origin, run.incarnation) * _products(seq, run.n + 1, count)
            seq += count
        self._bodies, self._places = checksum, places & _HALF

    @property
    def text(self) -> str:
        """Sixteen hexadecimal digits."""
        return f"{self._bodies:08x}{self._places:08x}"


@lru_cache(maxsize=ORIGINS_KEPT)
def _factor(origin: str, incarnation: int) -> int:
    return crc32(f"{origin}/{incarnation}".encode()) | 1


def _products(seq: int, n: int, count: int) -> int:
    """``seq * n + (seq + 1) * (n + 1) + …``, so many of them."""
    if count == 1:
        return seq * n
    pairs = count * (count - 1) // 2
    return count * seq * n + pairs * (seq + n) + pairs * (2 * count - 1) // 3
