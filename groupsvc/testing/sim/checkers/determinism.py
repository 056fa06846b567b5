"""X3: the same seed gives the same trace, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from groupsvc.wire.history import HistoryEvent, to_line

from .verdict import Violation

SHOWN_BYTES_MAX = 400
"""How much of two differing lines is quoted."""


def compare(first: Iterable[HistoryEvent | bytes], second: Iterable[HistoryEvent | bytes]) -> list[Violation]:
    """The first place where two runs of one seed differ, as lines of ndjson; empty if there is none."""
    for position, (one, other) in enumerate(zip_longest(first, second)):
        a, b = _bytes(one), _bytes(other)
        if a != b:
            text = f"line {position}: {_shown(a)} in the first run, {_shown(b)} in the second"
            return [Violation("X3", text, position)]
    return []


def _bytes(line: HistoryEvent | bytes | None) -> bytes:
    if isinstance(line, HistoryEvent):
        return to_line(line)
    return line or b""


def _shown(line: bytes) -> str:
    return line[:SHOWN_BYTES_MAX].decode(errors="replace").rstrip() or "nothing"
