"""One history of a real run, put together from what everybody has written.

Daemons write journals, clients files of their own, the harness what only it knows: which process it started, stopped,
killed, and which fault it made when. All of them read one clock, CLOCK_BOOTTIME of this machine, each right before it
writes; what one has sent when another receives it was written before it left. So the lines in the order of their times
are in an order that could have been seen, and that of each writer is kept.

What is added, and where it comes from:

- ``crash`` is noted by the harness, and moved behind the last line of the process it ended, and of one that has ended
  by itself right behind that;
- what a client that was killed had begun ends with its process, as ``info``; and so do its memberships;
- ``vote_taken`` is the ``voted`` of a daemon's journal;
- the first line, ``run``, says what the run was, and how it has ended: all that a checker must be told.

A history that was kept is checked again from the file alone: ``python -m tests.faults check FILE``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from groupsvc.journals.segments import segments_of
from groupsvc.views import text_of
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, from_line, to_line

NOT_NEEDED = frozenset({"digest", "mark", "journal"})
"""Lines of journals that no checker of histories reads."""

_AFTER_S = 1e-7

_replace = msgspec.structs.replace


def lines_of(path: Path) -> list[HistoryEvent]:
    """The whole lines of a file; one that was torn by the end of its writer is left out."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [from_line(line) for line in whole.splitlines()]


class Recording:
    """The lines of a run, not yet in one order."""

    def __init__(self) -> None:
        self._lives: dict[str, list[list[HistoryEvent]]] = {}  # by node, those of each process
        self._others: list[list[HistoryEvent]] = []  # each in the order of its writer

    def take_journals(self, directory: Path) -> None:
        """Of all daemons; files of one life follow one another."""
        lives: dict[tuple[str, int], list[HistoryEvent]] = {}
        for name, path in segments_of(directory):
            lives.setdefault((name.node, name.boot), []).extend(lines_of(path))
        for (node, _), lines in sorted(lives.items()):
            if lines:
                self._lives.setdefault(node, []).append(list(_forward(lines)))

    def take_clients(self, directory: Path, lines: Sequence[HistoryEvent]) -> None:
        """What clients wrote, and what befell them."""
        ended = {line.who: line for line in lines if line.op == "process_ended"}
        for path in sorted(directory.glob("*.ndjson")):
            own = list(_forward(lines_of(path)))
            end = ended.get(path.stem)
            if end is not None:
                end = _replace(end, t=max(end.t, own[-1].t + _AFTER_S) if own else end.t)
                own += [*_left_open(own, end), end]
            self._others.append(own)
        self._others.append([line for line in lines if line.op != "process_ended"])

    def take(self, lines: Iterable[HistoryEvent]) -> None:
        """What the harness wrote of daemons, and of faults."""
        rest = []
        for line in lines:
            life = self._life_at(line.node, line.t) if line.op == "crash" else None
            if life is None:
                rest.append(line)
            else:
                last = life[-1]
                t = last.t + _AFTER_S
                if not line.args.get("by_itself"):  # else we have found it later
                    t = max(line.t, t)
                life.append(_replace(line, t=t, local=t, inc=last.inc, boot=last.boot))
        self._others.append(rest)

    def _life_at(self, node: str, t: float) -> list[HistoryEvent] | None:
        """The lines of the process that ran there then, or had just been started."""
        begun = [life for life in self._lives.get(node, ()) if life[0].t <= t]
        return begun[-1] if begun and begun[-1][-1].op != "crash" else None

    def history(self, about: dict[str, Any], until: float) -> list[HistoryEvent]:
        """All in one order, up to a moment; ``about``: what the first line says."""
        found: list[HistoryEvent] = []
        for life in (life for lives in self._lives.values() for life in lives):
            for line in life:
                if line.op not in NOT_NEEDED:
                    found.append(_replace(line, local=line.t))
                if line.op == "voted":
                    found.append(_taken(line))
        for lines in self._others:
            found += lines
        found = [line for line in found if line.t <= until]
        found.sort(key=lambda line: line.t)  # which leaves lines of one writer and moment as they are
        first = HistoryEvent(v=SCHEMA_VERSION, i=0, t=found[0].t if found else 0.0, who="sim", op="run", args=about)
        return [first, *(_replace(line, i=i) for i, line in enumerate(found, start=1))]


def _forward(lines: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
    """The order of a writer is that of its lines; its clock does not run backwards, but two threads may read it."""
    t = 0.0
    for line in lines:
        if line.t < t:
            line = _replace(line, t=t)
        t = line.t
        yield line


def _left_open(lines: Iterable[HistoryEvent], end: HistoryEvent) -> Iterator[HistoryEvent]:
    """What ends with the process: calls, of which nobody will ever know, and memberships."""
    calls: dict[int, HistoryEvent] = {}
    members: dict[int, HistoryEvent] = {}
    for line in lines:
        if line.type == "invoke":
            calls[int(line.args["id"])] = line
        elif line.type != "event":
            calls.pop(int(line.args["id"]), None)
            if line.type == "ok" and line.op in ("join_group", "subscribe_group"):
                members[int(line.result["m"])] = line
        elif line.op == "member_ended":
            members.pop(int(line.args["m"]), None)
    why = f"the process ended: {end.args['why']}"
    for line in calls.values():
        args = {name: line.args[name] for name in ("id", "m", "session") if name in line.args}
        yield _replace(line, t=end.t, local=end.t, type="info", args=args, result={"why": why})
    for m, line in members.items():
        yield HistoryEvent(
            v=SCHEMA_VERSION, i=0, t=end.t, local=end.t, node=line.node, inc=line.inc, who=line.who, op="member_ended",
            group=int(line.result["group"]), args={"m": m, "why": why},
        )  # fmt: skip


def _taken(line: HistoryEvent) -> HistoryEvent:
    node, inc, number = line.args["provider"]
    args = {"provider": text_of((node, inc, number)), "ballot": line.args["ballot"], "phase": line.args["phase"]}
    return _replace(line, op="vote_taken", local=line.t, args=args)


# --- Files ---


def write(history: Iterable[HistoryEvent], path: Path) -> None:
    """Keep it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(map(to_line, history))


def read(path: Path) -> list[HistoryEvent]:
    """A history that was kept."""
    return lines_of(path)
