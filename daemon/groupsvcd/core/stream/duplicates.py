"""Duplicates and order per sender: which submitted numbers may be numbered now.

An origin (a node's incarnation) counts what it submits to a stream 1, 2, 3 … and repeats it until told that
it is stable. The leader numbers only the next one of each origin, so that a repetition is never numbered
twice and no sender overtakes itself. The table is a function of the entries: whoever has the log has it.

A forgotten origin must not come back as a new one. Its node's failure was ordered, or its last entry lies
``logical_lifetime`` numbers back; in both cases what still arrives is *too old* and is never numbered.
"""

from __future__ import annotations

import enum

from .entries import decode_entry

Origin = tuple[str, int]


class Verdict(enum.Enum):
    """What becomes of a submitted number."""

    NEXT = "next"
    DUPLICATE = "duplicate"
    GAP = "gap"
    TOO_OLD = "too old"
    NO_DISK = "no disk"  # the leader of a durable group cannot write; nothing is judged


class DuplicateFilter:
    """origin → (last number ordered, its seq), including what is ordered but not stable yet."""

    def __init__(self, table: dict[Origin, tuple[int, int]], logical_lifetime: int) -> None:
        self._table = dict(table)
        self._lifetime = logical_lifetime

    def note(self, seq: int, entry: bytes) -> None:
        """An entry of the log that the table does not know yet."""
        parts = decode_entry(entry)
        if parts.origin:
            self._table[(parts.origin, parts.incarnation)] = (parts.n, seq)

    def last_n(self, origin: Origin) -> int:
        """The number up to which this origin's submissions are in the log."""
        return self._table.get(origin, (0, 0))[0]

    def judge(self, origin: Origin, n: int, known_seq: int, next_seq: int) -> Verdict:
        """Whether ``n`` of ``origin`` may become entry ``next_seq``."""
        row = self._table.get(origin)
        if row is not None and n <= row[0]:
            return Verdict.DUPLICATE
        if next_seq - known_seq > self._lifetime or (row is None and n != 1):
            return Verdict.TOO_OLD
        return Verdict.NEXT if row is None or n == row[0] + 1 else Verdict.GAP

    def ordered(self, origin: Origin, n: int, seq: int) -> None:
        """``n`` of ``origin`` has become entry ``seq``."""
        self._table[origin] = (n, seq)

    def forget(self, origin: Origin) -> None:
        """The origin's failure was ordered: nothing of it is numbered any more."""
        self._table.pop(origin, None)

    def welcome(self, origin: Origin, last_n: int = 0) -> None:
        """The origin is known from here on, and its numbers follow ``last_n``, unless they are beyond it already."""
        n, seq = self._table.get(origin, (last_n, 0))
        self._table[origin] = (max(n, last_n), seq)

    def settle(self, origin: Origin, upto_n: int) -> None:
        """A known origin will not repeat anything up to ``upto_n``, though some of it is lost with a forced view."""
        row = self._table.get(origin)
        if row is not None and row[0] < upto_n:
            self._table[origin] = (upto_n, row[1])
