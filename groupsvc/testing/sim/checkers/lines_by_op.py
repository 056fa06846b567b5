"""Lines by their op: two dozen checkers want some kinds of lines each, in the order of the history.

Looking through everything for each of them was a good part of judging. So the places of each kind are noted once, and
what a checker asks for is put together from them: by a sort, which takes sorted pieces as they are and merges them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from groupsvc.wire.history import HistoryEvent


class LinesByOp:
    """What daemons and drivers wrote (``event``), and the lines of calls, by name."""

    __slots__ = ("_calls", "_events", "_lines")

    def __init__(self, lines: Sequence[HistoryEvent]) -> None:
        self._lines = lines
        self._events: dict[str, list[int]] = {}
        self._calls: dict[str, list[int]] = {}
        for place, line in enumerate(lines):
            by_op = self._events if line.type == "event" else self._calls
            places = by_op.get(line.op)
            if places is None:
                by_op[line.op] = [place]
            else:
                places.append(place)

    def of(self, ops: Iterable[str], calls: Iterable[str] = ()) -> Iterator[HistoryEvent]:
        """The events with these names, and the lines of calls with those, in order."""
        found = [self._events.get(op, ()) for op in {*ops}]
        found += [self._calls.get(op, ()) for op in {*calls}]
        places = found[0] if len(found) == 1 else sorted(chain.from_iterable(found))
        return map(self._lines.__getitem__, places)
