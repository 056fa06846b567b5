"""Cases of single rules: what a rule must not pass over in silence, and what is sound although it looks wrong.

Each is a small story that went well, five nodes and one group, of which some lines are edited. What is left out of a
journal *with* its number is a hole, as if a collector had missed it; what is left out with the others counted anew was
never written.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from groupsvc.testing.made_journals import Shape, make_journals
from groupsvc.wire.history import HistoryEvent, from_line, to_line

from . import Case

SHAPE = Shape(blocks=60, groups=1, hot=1.0, entries=4, ballot_every=4, barrier_every=5, view_every=10, failure_every=17)
GROUP = 20

Edit = Callable[[str, list[HistoryEvent]], Iterable[HistoryEvent]]
"""From the lines of a node to those that it is to have; none at all: its journal is not here."""

_replace = msgspec.structs.replace


def _case(name: str, edit: Edit, *finds: str, holes: bool = False, shape: Shape = SHAPE) -> Case:
    return Case(name=f"rules-{name}", write=partial(_write, edit, holes, shape), finds=finds)


def _write(edit: Edit, holes: bool, shape: Shape, directory: Path) -> None:
    """Processes of every case have started at a time of their own: what is missing of them is told by that."""
    make_journals(directory, shape)
    boot = f"{zlib.crc32(directory.name.encode()):x}"
    for file in sorted(directory.glob("*.ndjson")):
        node, _, number, kind = file.name.split(".")
        edited = list(edit(node, [from_line(line) for line in file.read_bytes().splitlines()]))
        edited = [_replace(line, boot=boot, i=line.i if holes else i) for i, line in enumerate(edited, 1)]
        file.unlink()
        if edited:
            (directory / f"{node}.{boot}.{number}.{kind}").write_bytes(b"".join(map(to_line, edited)))


def _with(line: HistoryEvent, **args: Any) -> HistoryEvent:
    """The same line with these fields; without those that are None."""
    new = {name: value for name, value in {**line.args, **args}.items() if value is not None}
    return _replace(line, args=new)


def _each(
    op: str, change: Callable[[HistoryEvent], HistoryEvent | None], *, node: str = "", nth: int = 0, group: int = GROUP,
    fits: Callable[[HistoryEvent], bool] = lambda line: True,
) -> Edit:  # fmt: skip
    """Every line of a kind is changed, or left out; ``node``: only there; ``nth``: only that one of those that fit."""

    def edit(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
        count = 0
        for line in lines:
            if line.op == op and line.group == group and node in ("", name) and fits(line):
                count += 1
                if nth in (0, count):
                    changed = change(line)
                    if changed is not None:
                        yield changed
                    continue
            yield line

    return edit


def _then(*edits: Edit) -> Edit:
    def edit(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
        for one in edits:
            lines = list(one(name, lines))
        return lines

    return edit


def _never(line: HistoryEvent) -> None:
    return None


# --- V: views ---------------------------------------------------------------------------------------------------


def _without(field: str) -> Callable[[HistoryEvent], HistoryEvent]:
    return lambda line: _with(line, **{field: None})


def _from_the_view_on(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """What n2 wrote before its view was active is not here any more."""
    if name != "n2":
        return lines
    active = next(at for at, line in enumerate(lines) if line.op == "view_active")
    return lines[active + 1 :]


# --- G: ballots -------------------------------------------------------------------------------------------------


def _is_late(line: HistoryEvent) -> bool:
    return any(why == "late" for _, _, why in line.args["votes"])


def _rejects(line: HistoryEvent) -> bool:
    return any(vote == "reject" for _, vote, _ in line.args["votes"])


def _before(op: str, fits: Callable[[HistoryEvent], bool], change: Callable[[HistoryEvent], HistoryEvent]) -> Edit:
    """Of every ballot whose outcome fits, what began its phase is changed."""

    def edit(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
        those = {line.args["ballot"] for line in lines if line.op == "outcome" and fits(line)}
        return [change(line) if line.op == op and line.args["ballot"] in those else line for line in lines]

    return edit


_early = _each("outcome", lambda line: _with(line, at=line.args["at"] - 0.3), fits=_is_late)
"""Somebody is called late before its time."""


def _leader_saw_no_late_one(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """Whoever led when somebody was called late has a journal, and lines about the ballot are missing there."""
    leader = ""
    missing: set[int] = set()
    for line in lines:
        if line.op == "members":
            leader = line.args["leader"]
        if line.op == "outcome" and _is_late(line) and leader == name:
            missing |= {line.args["ballot"]}
    return [line for line in lines if line.op != "phase" or line.args["ballot"] not in missing]


# --- B: order ---------------------------------------------------------------------------------------------------

ORIGIN = "n4/1794000000000003"
SKIPPED = 5


def _skipped(after: int, *given_up: tuple[int, int]) -> Edit:
    """From its message ``after`` on all those of n4 have later numbers; these it tells to have given up."""

    def edit(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
        for line in lines:
            if line.origin == ORIGIN and line.n > after:
                if name == "n4" and line.n == after + 1 and line.op == "delivered":
                    for first, last in given_up:
                        yield _replace(line, op="given_up", origin="", seq=0, epoch=0, crc=0, n=last,
                                       args={"first": first})  # fmt: skip
                line = _replace(line, n=line.n + SKIPPED)
            yield line

    return edit


def _not_at(node: str) -> Edit:
    return lambda name, lines: [] if name == node else lines


_with_a_hole = _each("lease", _never, node="n4", nth=2, group=0)


def _missed(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """What everybody wrote for a while is in no journal."""
    return [line for line in lines if not line.group or not 1003.5 < line.t < 1004.2]


def _half_an_hour_old(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """n4 had been up long before what is here began, and its first files are gone."""
    if name != "n4":
        return lines
    head = [_replace(line, t=line.t - 1800.0, wall_ns=line.wall_ns - 1800 * 10**9) for line in lines[:2]]
    return [_replace(line, i=i) for i, line in enumerate([*head, *lines[2:]], 50_000)]


# --- V5, V6: journals of two levels -----------------------------------------------------------------------------


def _batches(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """n2 writes its journal at level batch."""
    if name != "n2":
        return lines
    return [
        _replace(line, op="delivered") if line.op == "digest"
        else _with(line, level="batch") if line.op == "journal" else line
        for line in lines
        if not line.group or line.op not in ("delivered", "ordered", "stable", "held")
    ]  # fmt: skip


def _without_a_batch(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """n2 has left one out."""
    if name != "n2":
        return lines
    batches = [line for line in lines if line.group and line.op == "delivered" and line.args["first"] < line.seq]
    return [line for line in lines if line is not batches[len(batches) // 2]]


def _behind_the_list(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """V6: a list that has a guest in it n2 learns of behind the next batch, and the others before it."""
    members = [at for at, line in enumerate(lines) if line.op == "members"]
    lines = list(lines)
    place = members[-2]
    lines[place] = _with(lines[place], members=[*lines[place].args["members"], ["guest", 1]])
    if name == "n2":
        line = lines.pop(place)
        behind = next(at for at in range(place, len(lines)) if lines[at].op == "delivered" and lines[at].group)
        lines.insert(behind + 1, line)
    return lines


# --- R: barriers ------------------------------------------------------------------------------------------------

FORCED = 20_020


def _held_again(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """Behind a forced view a round is held again that was released before it, and passes over a party at n4.

    That one, which had come, counts for the next round.
    """
    over: HistoryEvent | None = None
    entered = 0
    for line in lines:
        if line.op == "barrier_entered" and name == "n4" and line.args["round"] == 5:
            continue
        if line.op == "barrier_over" and line.args["round"] == 4:
            over = line
        if line.op == "view_active" and line.epoch == FORCED:
            line = _with(line, forced=True)
        if line.op == "members" and line.epoch >= FORCED:
            line = _with(line, era=FORCED)
            entered += 1
        yield line
        if entered == 1 and line.op == "members" and over is not None:
            arrived = [one for one in over.args["arrived"] if one[0] != "n4"]
            yield _replace(_with(over, arrived=arrived), t=line.t, wall_ns=line.wall_ns, seq=line.seq)


# --- L3: durable groups -----------------------------------------------------------------------------------------

_durable = _each("view_active", lambda line: _with(
    line, servers=[[name, f"disk-of-{name}"] for name, _ in line.args["servers"]]))  # fmt: skip


def _written_late(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """n3 says that it holds something when that is written, and has promised to the next leader meanwhile."""
    held = None
    for line in lines:
        held = line if line.op == "held" else held
        yield line
        if line.op == "promise" and line.group and name == "n3" and held is not None:
            yield _replace(held, t=line.t, wall_ns=line.wall_ns)


def _promised_early(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """n3 has promised to the next leader, and goes on taking what the one before orders."""
    if name != "n3":
        return lines
    place = [at for at, line in enumerate(lines) if line.op == "promise" and line.group][1]
    promise, before = lines[place], lines[place - 40]
    promise = _replace(promise, t=before.t, wall_ns=before.wall_ns)
    return [*lines[: place - 40], promise, *lines[place - 40 : place], *lines[place + 1 :]]


# --- B3: the end ------------------------------------------------------------------------------------------------


def _stopped_one_by_one(name: str, lines: list[HistoryEvent]) -> Iterable[HistoryEvent]:
    """n1 has ordered something in the domain's stream and ends, then n3; n2 is told that it is stable, and goes on."""
    end, entry = lines[-1], max((line for line in lines if not line.group), key=lambda line: line.seq)
    entry = _replace(entry, seq=entry.seq + 1, n=0, origin="", crc=7, t=end.t, wall_ns=end.wall_ns)
    if name == "n1":
        return [*lines, _replace(entry, op="ordered")]
    if name != "n2":
        return lines
    return [*lines, _replace(entry, op="delivered"), _replace(end, t=end.t + 1.0, wall_ns=end.wall_ns + 10**9)]


# --- All of them: first what must be found ----------------------------------------------------------------------

CASES: tuple[Case, ...] = (
    _case("what-no-daemon-writes", _then(
        _each("view_installed", _without("members"), node="n4", nth=3),
        _each("view_active", _without("servers"), node="n3", nth=1),
        _each("view_active", _without("base"), node="n4", nth=1),
        _each("view_active", _without("fence"), node="n5", nth=1),
        _each("phase", _without("phases"), nth=2),
        _each("phase", _without("electorate"), nth=3),
        _before("phase", _is_late, lambda line: _with(line, time_limit=0.0)),
    ), "V1: who installs a view is in it", "V1: who leads a view is in it", "V3", "V4: active views form one chain",
       "L6: of two active views the later has the higher fence", "G3: the outcome follows from the votes",
       "G4: who is counted is who had a vote, each once", "G5: who is called late had its time"),
    _case("leads-and-is-never-active", _each("view_active", _never, node="n2", nth=1),
          "V4: nobody orders in a view that is not active"),
    _case("no-office-and-phases-that-are-not-known", _then(
        _each("office", _never, node="n1", group=0, fits=lambda line: line.args["phase"] == "open"),
        _before("phase", _rejects, lambda line: _with(line, phases=-1)),
        _each("outcome", lambda line: _with(line, approved=True), fits=_rejects),
    ), "V4: nobody orders in a view that is not active", "G3: the outcome follows from the votes"),
    _case("gap-given-up-twice", _skipped(24, (25, 26), (25, 27), (26, 27)), "B5"),
    _case("gap-behind-an-old-beginning", _then(_skipped(24, (25, 28)), _half_an_hour_old), "B5", holes=True),
    _case("less-at-another-level", _then(_batches, _without_a_batch),
          "B4", "V5: who goes from one list to the next together has delivered the same"),
    _case("other-members-at-another-level", _then(_batches, _behind_the_list),
          "V6: batches that end with one number are delivered among the same members", "V5"),
    _case("takes-what-is-ordered-later", _then(_durable, _promised_early),
          "L3: who has promised an epoch takes nothing that is ordered later in a lower one"),
    # And what is sound:
    _case("leads-since-before-its-first-line", _then(_from_the_view_on, _skipped(24), _with_a_hole), holes=True),
    _case("late-and-the-leader-has-a-hole", _then(_early, _leader_saw_no_late_one), holes=True),
    _case("gap-of-one-without-a-journal", _then(_skipped(24), _not_at("n4"))),
    _case("entries-that-nobody-has", _missed, holes=True),
    _case("two-levels-stopped-one-by-one", _then(
        _batches, _skipped(24, (25, 27), (26, 29)), _stopped_one_by_one,
    )),
    _case("round-and-entry-that-are-held-late", _then(_durable, _written_late, _held_again)),
)  # fmt: skip
