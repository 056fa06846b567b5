"""What happened in a simulated world, in the one schema that real runs use too.

A run writes tens of thousands of lines and most of them are read only by checkers at its end, so a line is
kept as a plain tuple and becomes a ``HistoryEvent`` when somebody asks. Lines are numbered in the order in
which they were written; their harness time never decreases.

Beside what engines journal themselves, the drivers write what only they can see:

- ``boot``, ``crash``, ``halted``, ``restart``, ``pause``, ``resume``: a process began or ended, stood still or went on.
  ``restart`` follows the ``boot`` of every start but the first;
- ``persisted``: one record is on disk. ``args.kind`` is ``promise``, ``append``, ``open``, ``checkpoint`` or
  ``node``; ``epoch`` is the record's own, or the accepted one of the log for those that carry none; ``seq`` is
  the last entry on disk from then on. ``args.seen`` is false if the process died before it was told;
- ``spoke``: the first message of a kind that this incarnation sent for an epoch (``args.kind``);
- ``acknowledged``: an AliveAck, Answered or Tell left at this moment (``args.kind``, ``args.to``);
- ``submit``, ``join``, ``leave`` of programs inside the daemons: see ``checkers.group_streams``;
- lines of who ``sim``: faults, ``op`` being the name of the nemesis, ``args.phase`` "begin" or "end".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from groupsvc.wire.history import SCHEMA_VERSION, EventType, HistoryEvent, to_line

Row = tuple[
    float, float, str, str, int, str, EventType, str, int, int, int, str, int, int, dict[str, Any], dict[str, Any]
]

NOTHING: dict[str, Any] = {}


class History:
    """The lines of one run."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(
        self,
        t: float,
        op: str,
        *,
        local: float = 0.0,
        boot: str = "",
        node: str = "",
        inc: int = 0,
        who: str = "daemon",
        type: EventType = "event",
        group: int = 0,
        epoch: int = 0,
        seq: int = 0,
        origin: str = "",
        n: int = 0,
        crc: int = 0,
        args: dict[str, Any] = NOTHING,
        result: dict[str, Any] = NOTHING,
    ) -> None:
        """Write one line."""
        self.rows.append((t, local, boot, node, inc, who, type, op, group, epoch, seq, origin, n, crc, args, result))

    def __len__(self) -> int:
        return len(self.rows)

    def events(self) -> list[HistoryEvent]:
        """All lines as the checkers want them."""
        return [_event(i, row) for i, row in enumerate(self.rows)]

    def lines(self) -> Iterator[bytes]:
        """All lines as ndjson: the trace that must be the same for the same seed."""
        for i, row in enumerate(self.rows):
            yield to_line(_event(i, row))


def _event(i: int, row: Row) -> HistoryEvent:
    t, local, boot, node, inc, who, type_, op, group, epoch, seq, origin, n, crc, args, result = row
    return HistoryEvent(
        v=SCHEMA_VERSION,
        i=i,
        boot=boot,
        t=t,
        local=local,
        node=node,
        inc=inc,
        who=who,
        type=type_,
        op=op,
        group=group,
        epoch=epoch,
        seq=seq,
        origin=origin,
        n=n,
        crc=crc,
        args=args,
        result=result,
    )
