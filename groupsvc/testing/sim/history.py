"""What happened in a simulated world, in the one schema that real runs use too.

A line is made once, as the checkers want it: ``HistoryEvent`` is not tracked by the garbage collector, so the tens of
thousands of lines of a run cost nothing more until the checkers come. Lines are numbered in the order in which they
were written; their harness time never decreases.

Beside what engines journal themselves, the drivers write what only they can see:

- ``boot``, ``crash``, ``halted``, ``restart``, ``pause``, ``resume``: a process began or ended, stood still or went on.
  ``restart`` follows the ``boot`` of every start but the first;
- ``persisted``: one record is on disk. ``args.kind`` is ``promise``, ``append``, ``open``, ``checkpoint`` or
  ``node``; ``epoch`` is the record's own, or the accepted one of the log for those that carry none; ``seq`` is
  the last entry on disk from then on. ``args.seen`` is false if the process died before it was told;
- ``spoke``: the first message of a kind that this incarnation sent for an epoch (``args.kind``);
- ``acknowledged``: an AliveAck, Answered or Tell left at this moment (``args.kind``, ``args.to``);
- ``submit``, ``join``, ``leave`` of programs inside the daemons: see ``checkers.group_streams``;
- what applications call and are told: see ``application_lines``;
- lines of who ``sim``: faults, ``op`` being the name of the nemesis, ``args.phase`` "begin" or "end".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from groupsvc.wire.history import SCHEMA_VERSION, EventType, HistoryEvent, to_line

NOTHING: dict[str, Any] = {}


class History:
    """The lines of one run."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows: list[HistoryEvent] = []

    def add(
        self,
        t: float,
        op: str,
        *,
        local: float = 0.0,
        node: str = "",
        inc: int = 0,
        who: str = "daemon",
        type: EventType = "event",
        group: int = 0,
        n: int = 0,
        crc: int = 0,
        args: dict[str, Any] = NOTHING,
        result: dict[str, Any] = NOTHING,
    ) -> None:
        """Write one line of somebody outside the daemons."""
        rows = self.rows
        rows.append(
            HistoryEvent(
                v=SCHEMA_VERSION, i=len(rows), t=t, local=local, node=node, inc=inc, who=who, type=type, op=op,
                group=group, n=n, crc=crc, args=args, result=result,
            )
        )  # fmt: skip

    def add_of_daemon(
        self,
        t: float,
        local: float,
        boot: str,
        node: str,
        inc: int,
        op: str,
        group: int,
        epoch: int,
        seq: int,
        args: dict[str, Any],
        origin: str = "",
        n: int = 0,
        crc: int = 0,
    ) -> None:
        """Write one line of a daemon or its driver."""
        rows = self.rows
        # With more than fifteen keywords Python would make a dictionary of them first, and take three times as long.
        rows.append(
            HistoryEvent(
                v=SCHEMA_VERSION, i=len(rows), boot=boot, t=t, local=local, node=node, inc=inc, op=op, group=group,
                epoch=epoch, seq=seq, origin=origin, n=n, crc=crc, args=args,
            )
        )  # fmt: skip

    def add_of_application(
        self, t: float, local: float, node: str, who: str, group: int, seq: int, crc: int, args: dict[str, Any]
    ) -> None:
        """Write that an application was told something: the most frequent of its lines."""
        rows = self.rows
        rows.append(
            HistoryEvent(
                v=SCHEMA_VERSION, i=len(rows), t=t, local=local, node=node, who=who, op="told", group=group, seq=seq,
                crc=crc, args=args,
            )
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.rows)

    def events(self) -> list[HistoryEvent]:
        """All lines so far."""
        return list(self.rows)

    def lines(self) -> Iterator[bytes]:
        """All lines as ndjson: the trace that must be the same for the same seed."""
        return map(to_line, self.rows)
