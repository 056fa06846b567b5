"""One contradiction for each check that had no red run: a checker without one counts as absent.

Three nodes, n1, n2 and n3, tell a short story in which all goes well (``groupsvc.testing.made_journals``). A case
changes, leaves out, repeats or moves the lines that one check is about, in the journal of one node, so that it
contradicts the others or itself, or in all of them alike, where what is wrong is not that they differ. Then lines are
numbered anew, so that there are no holes in a journal that has fewer or more of them.

What one change breaks by itself is listed with it: a number that is given to a message twice is missing where it should
have been.

The plants of ``groupsvc.testing.made_journals`` are here, too, each in a domain of its own: what else is found there
was invented, while in one domain with all of them nobody could tell.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from groupsvc.journals.segments import SegmentName
from groupsvc.testing.made_journals import PLANTS, Plant, Shape, make_journals
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, from_line, to_line

from . import Case

SHAPE = Shape(
    nodes=3, groups=1, hot=1.0, blocks=24, entries=3, ballot_every=3, barrier_every=4, view_every=8, failure_every=6
)
"""It ends with a view, so nothing is delivered among the members that come with it."""

BATCHES = Shape(
    nodes=3, groups=1, hot=1.0, blocks=20, entries=3, ballot_every=5, barrier_every=6, view_every=8, failure_every=9,
    level="batch",
)  # fmt: skip

PLANTED = Shape(
    groups=1, hot=1.0, blocks=83, entries=2, ballot_every=4, barrier_every=5, view_every=8, failure_every=10
)
"""Nothing comes behind its last block."""

GROUP = 20
CALLED_S = 0.005
"""So long before it has a number a program sends a message: that is less than there is between two blocks."""

NODES = ("n1", "n2", "n3")

Lines = Sequence[HistoryEvent]
Edit = Callable[[str, Lines], Iterable[HistoryEvent]]
"""From the lines of a node to those that it is to have written."""

Fits = Callable[[HistoryEvent], bool]
Change = Callable[[HistoryEvent], Iterable[HistoryEvent]]

_replace = msgspec.structs.replace


# --- Writing --------------------------------------------------------------------------------------------------


@functools.cache
def _told(shape: Shape) -> dict[str, tuple[HistoryEvent, ...]]:
    """The sound story, by node."""
    with tempfile.TemporaryDirectory() as name:
        place = make_journals(Path(name), shape).directory
        return {
            node: tuple(from_line(line) for file in place.glob(f"{node}.*") for line in file.read_bytes().splitlines())
            for node in shape.names
        }


def _journals(edit: Edit, shape: Shape = SHAPE) -> Callable[[Path], None]:
    """Writes the journals of this story, edited."""

    def write(place: Path) -> None:
        place.mkdir(parents=True)
        for node, lines in _told(shape).items():
            _journal(place, node, edit(node, lines))

    return write


def _journal(place: Path, node: str, lines: Iterable[HistoryEvent], *, boot: str = "") -> Path:
    """One file, its lines numbered from one."""
    numbered = [_replace(line, i=i, boot=boot or line.boot) for i, line in enumerate(lines, 1)]
    file = place / str(SegmentName(node, int(numbered[0].boot, 16), 1))
    file.write_bytes(b"".join(map(to_line, numbered)))
    return file


# --- Editing --------------------------------------------------------------------------------------------------


def _each(at: Sequence[str], fits: Fits, change: Change, *, number: int = 1, count: int = 1) -> Edit:
    """At these nodes, the so-manieth line that fits becomes others; or ``count`` of them, from it on."""

    def edit(node: str, lines: Lines) -> Iterable[HistoryEvent]:
        seen = 0
        for line in lines:
            if node in at and fits(line):
                seen += 1
                if number <= seen < number + count:
                    yield from change(line)
                    continue
            yield line

    return edit


def _is(*ops: str, **args: Any) -> Fits:
    """A line of the group of one of these kinds, with this in its ``args``."""
    return lambda line: (
        line.op in ops and line.group == GROUP and all(line.args.get(name) == value for name, value in args.items())
    )


def _of_the_domain(*ops: str) -> Fits:
    return lambda line: line.op in ops and line.group == 0


def _with(**args: Any) -> Change:
    return lambda line: [_replace(line, args={**line.args, **args})]


def _gone(line: HistoryEvent) -> list[HistoryEvent]:
    return []


def _twice(line: HistoryEvent) -> list[HistoryEvent]:
    return [line, line]


def _behind(line: HistoryEvent, op: str, *, epoch: int = 0, seq: int = 0, **args: Any) -> HistoryEvent:
    """A line of the domain that its node has written right after this one."""
    others: dict[str, Any] = {"group": 0, "epoch": epoch, "seq": seq, "origin": "", "n": 0, "crc": 0}
    return _replace(line, op=op, args=args, **others)


def _is_message(line: HistoryEvent) -> bool:
    return line.group == GROUP and line.origin != "" and line.op == "delivered"


# --- B: order -------------------------------------------------------------------------------------------------


def _other_half(first: bool) -> Change:
    """A digest of which only the half for contents, or only that for order, is another."""

    def change(line: HistoryEvent) -> list[HistoryEvent]:
        text = line.args["digest"]
        other = f"{int(text, 16) ^ (1 << 40 if first else 1):016x}"
        return [_replace(line, args={**line.args, "digest": other})]

    return change


def _given_again(node: str, lines: Lines) -> Iterable[HistoryEvent]:
    """The second message of an origin in a block is its first one again, for everybody."""
    first = next(line for line in lines if _is_message(line))
    for line in lines:
        if line.group == GROUP and line.seq == first.seq + 1 and line.op in ("ordered", "delivered"):
            line = _replace(line, n=first.n)
        yield line


def _other_message(node: str, lines: Lines) -> Iterable[HistoryEvent]:
    """In its last block n2 delivers a message that its sender has never sent."""
    last = max(line.seq for line in lines if _is_message(line))
    for line in lines:
        yield _replace(line, n=line.n + 1_000) if node == "n2" and _is_message(line) and line.seq == last else line


def _other_log(line: HistoryEvent) -> list[HistoryEvent]:
    return [_replace(line, args={"last": line.seq, "base": line.seq - 1, "tail": [[line.seq, 1]]})]


def _a_later_epoch(line: HistoryEvent) -> list[HistoryEvent]:
    return [_replace(line, epoch=line.epoch + 1)]


# --- V and L: views and leaders -------------------------------------------------------------------------------


def _without_the_leader(line: HistoryEvent) -> list[HistoryEvent]:
    servers = [one for one in line.args["servers"] if one[0] != line.node]
    return [_replace(line, args={**line.args, "servers": servers})]


def _lists(at: Sequence[str], *nodes: str) -> Edit:
    """These nodes have newer and newer lists of nodes: as many as there are, the numbers counting down for n2."""

    def told(line: HistoryEvent, name: str) -> list[HistoryEvent]:
        return [line, _behind(line, "list_installed", epoch=1, seq=7, nodes={name: ["10.0.0.1", 4000]})]

    names = dict(zip(at, nodes, strict=True))

    def edit(node: str, lines: Lines) -> Iterable[HistoryEvent]:
        fits = _of_the_domain("rejoined")
        return _each(at, fits, lambda line: told(line, names[line.node]))(node, lines)

    return edit


def _an_older_list(line: HistoryEvent) -> list[HistoryEvent]:
    return [line, *(_behind(line, "list_installed", epoch=1, seq=seq, nodes={}) for seq in (3, 2))]


def _a_guest(line: HistoryEvent) -> list[HistoryEvent]:
    return [_replace(line, args={**line.args, "members": [*line.args["members"], ["guest", 1]]})]


def _late_for_a_list(node: str, lines: Lines) -> Iterable[HistoryEvent]:
    """A node comes that has no journal, and n3 learns of it one batch too late."""
    waiting: list[HistoryEvent] = []
    for line in lines:
        if _is("members")(line) and line.epoch > GROUP:
            waiting = _a_guest(line)
            if node == "n3":
                continue
            yield from waiting
            continue
        yield line
        if node == "n3" and waiting and _is("delivered")(line):
            yield from waiting
            waiting = []
    yield from waiting if node == "n3" else ()


def _recovered_by_two(node: str, lines: Lines) -> Iterable[HistoryEvent]:
    """The third node that promises an epoch recovers it, too."""
    newest = max(line.epoch for line in lines if line.group == GROUP)
    for line in lines:
        yield line
        if node == "n2" and _is("promise")(line) and line.epoch == newest:
            yield _replace(line, op="recovered", args={"base": 0, "last": 10_000, "tail": []}, seq=10_000)


def _another_majority(line: HistoryEvent) -> list[HistoryEvent]:
    view = {"k": 2, "leader": "n3", "members": ["n3", "n8", "n9"]}
    return [line, _behind(line, "view_installed", epoch=2, seq=9, **view)]


def _promised_by_nobody(node: str, lines: Lines) -> Iterable[HistoryEvent]:
    """Of the last view only its leader has bound itself; the others go on writing for two seconds."""
    newest = max(line.epoch for line in lines if line.group == GROUP)
    leads = any(line.op == "granted" and line.epoch == newest for line in lines)
    for line in lines:
        if leads or not (_is("promise")(line) and line.epoch == newest):
            yield line
    yield _replace(lines[-1], t=lines[-1].t + 2.0, wall_ns=lines[-1].wall_ns + 2_000_000_000)


def _ordered_early(node: str, lines: Lines) -> Iterable[HistoryEvent]:
    """n2 orders the first entry of its view a millisecond before that is active."""
    view = next(line for line in lines if _is("view_installed")(line) and line.args["leader"] == "n2")
    early = [line for line in lines if _is("ordered")(line) and line.epoch == view.epoch][:1] if node == "n2" else []
    for line in lines:
        if early and line.op == "view_active" and line.epoch == view.epoch:
            yield _replace(early[0], t=line.t - 0.001)
        if line not in early:
            yield line


def _another_run(place: Path) -> None:
    """n1 is started again, and is granted an epoch that it has recovered before."""
    _journals(lambda node, lines: lines)(place)
    lines = _told(SHAPE)["n1"]
    granted = [line for line in lines if line.op == "granted"][-1]
    head, started = (next(line for line in lines if line.op == op) for op in ("journal", "started"))
    later, boot = lines[-1], f"{int(lines[0].boot, 16) + 1_000_000:x}"
    _journal(
        place, "n1", [_replace(line, t=later.t, wall_ns=later.wall_ns, inc=int(boot, 16))
                      for line in (head, started, granted)], boot=boot,
    )  # fmt: skip


def _left_and_orders(line: HistoryEvent) -> list[HistoryEvent]:
    return [line, _behind(line, "office", epoch=1, phase="left", reason="tired")]


def _declared_gone(node: str, lines: Lines) -> Iterable[HistoryEvent]:
    """n1 tells that n3 is gone, and n3 goes on delivering."""
    inc = _told(SHAPE)["n3"][0].inc
    fits = _of_the_domain("rejoined")
    return _each(("n1",), fits, lambda line: [line, _behind(line, "node_gone", epoch=1, name="n3", inc=inc)])(
        node, lines
    )


# --- G and R: ballots and barriers ----------------------------------------------------------------------------


def _one_vote_less(line: HistoryEvent) -> list[HistoryEvent]:
    return [_replace(line, args={**line.args, "votes": line.args["votes"][:-1]})]


def _one_entry_later(line: HistoryEvent) -> list[HistoryEvent]:
    return [_replace(line, seq=line.seq + 1)]


# --- Histories with what programs called ----------------------------------------------------------------------


def _history(edit: Callable[[list[HistoryEvent]], list[HistoryEvent]]) -> Callable[[Path], None]:
    """All journals as one history, with a program at each sender that is told where its messages are, edited."""

    def write(place: Path) -> None:
        place.mkdir(parents=True)
        lines = [line for those in _told(SHAPE).values() for line in those]
        for line in [line for line in lines if line.op == "ordered" and line.origin]:
            sender, _, inc = line.origin.partition("/")
            call = HistoryEvent(v=SCHEMA_VERSION, i=0, t=line.t - CALLED_S, node=sender, inc=int(inc), who="member-1",
                                type="invoke", op="submit", group=GROUP, n=line.n)  # fmt: skip
            lines += [call, _replace(call, type="ok", t=line.t, result={"seq": line.seq})]
        told = edit(sorted(lines, key=lambda line: line.t))
        numbered = [_replace(line, i=i) for i, line in enumerate(told, 1)]
        (place / "history.ndjson").write_bytes(b"".join(map(to_line, numbered)))

    return write


def _told_of_nothing(lines: list[HistoryEvent]) -> list[HistoryEvent]:
    """A program is told that a message is in the stream that nobody delivers."""
    last = [line for line in lines if line.type == "ok"][-1]
    return [_replace(line, n=line.n + 1_000) if line is last else line for line in lines]


def _sent_after_it_came(lines: list[HistoryEvent]) -> list[HistoryEvent]:
    """What a program sends was delivered to its node before."""
    last = [line for line in lines if line.type == "invoke"][-1]
    came = next(line for line in lines if _is_message(line) and line.node == last.node
                and line.n == last.n and line.origin == f"{last.node}/{last.inc}")  # fmt: skip
    return [one for line in lines if line is not last for one in ((line, last) if line is came else (line,))]


# --- Plants ---------------------------------------------------------------------------------------------------


def _planted(plant: Plant) -> Case:
    """A domain with this one only."""

    def write(place: Path) -> None:
        make_journals(place, PLANTED, plants=[plant.rule])

    return Case(name=f"plant-{plant.rule}", write=write, finds=tuple(sorted(plant.rules)))


# --- Files ----------------------------------------------------------------------------------------------------


def _numbered_alike(place: Path) -> None:
    """n2 has written a line twice under one number."""
    _journals(lambda node, lines: lines)(place)
    (file,) = place.glob("n2.*")
    lines = file.read_bytes().splitlines(keepends=True)
    lease = [at for at, line in enumerate(lines) if json.loads(line)["op"] == "lease"][-1]
    file.write_bytes(b"".join([*lines[: lease + 1], *lines[lease:]]))


def _two_copies(place: Path, **changed: Any) -> None:
    """The journal of n2 is there as lines and as Parquet, and in one of them a lease was changed."""
    from groupsvc.journals.parquet import compact

    _journals(lambda node, lines: lines)(place)
    (file,) = place.glob("n2.*")
    assert [file.name] == [done.file.name for done in compact(place, keep=True) if done.file == file]
    for other in place.glob("n[13].*.parquet"):
        other.unlink()
    lines = [from_line(line) for line in file.read_bytes().splitlines()]
    lease = [line for line in lines if line.op == "lease"][-1]
    file.write_bytes(b"".join(to_line(_replace(line, **changed) if line is lease else line) for line in lines))


# --- All of them ----------------------------------------------------------------------------------------------

CASES: tuple[Case, ...] = (
    Case(
        name="B1-digest", write=_journals(_each(("n2",), _is("digest"), _other_half(True), number=9)),
        finds=("B1: one number has the same bytes everywhere: one body in 64",),
    ),
    Case(
        name="B1-one-number", write=_journals(_given_again),
        finds=("B1: a message is delivered under one number",
               "B5: what one origin submits comes in its order, and without a gap"),
    ),
    Case(
        name="B2", write=_history(_told_of_nothing),
        finds=("B2: what a program was told is in the stream is delivered",),
    ),
    Case(
        name="B4-digest", write=_journals(_each(("n2",), _is("digest"), _other_half(False), number=9)),
        finds=("B4: the same in the same order everywhere: by digests",),
    ),
    Case(
        name="B4-one-entry", write=_journals(_other_message),
        finds=("B4: one number is one entry everywhere",
               "B1: only what the leader of an epoch ordered is delivered in it"),
    ),
    Case(
        name="B5-causal", write=_history(_sent_after_it_came),
        finds=("B5: what is sent after something was delivered comes behind it",),
    ),
    Case(
        name="B6-bytes", write=_journals(_each(NODES, _is("recovered"), _other_log)),
        finds=("B6: a new leader's log has it with the same bytes",),
    ),
    Case(
        name="V1-leads", write=_journals(_each(("n2",), _is("view_active"), _without_the_leader)),
        finds=("V1: who leads a view is in it", "V3: one view, one leader, one list of servers"),
    ),
    Case(
        name="V2-epochs", write=_journals(_each(("n3",), _is("members"), _a_later_epoch, number=2)),
        finds=("V2: the epochs that a process delivers in only grow",),
    ),
    Case(
        name="V2-lists", write=_journals(_each(("n2",), _of_the_domain("rejoined"), _an_older_list)),
        finds=("V2: the lists of nodes that a process installs only grow",),
    ),
    Case(
        name="V3-members", write=_journals(_each(("n3",), _is("members"), _a_guest, number=4)),
        finds=("V3: one list of members after one entry",),
    ),
    Case(
        name="V3-table", write=_journals(_lists(("n1", "n2"), "n1", "n7")),
        finds=("V3: one table of nodes under one version",),
    ),
    Case(
        name="V4-one-recovers", write=_journals(_recovered_by_two),
        finds=("V4: one process recovers the log of an epoch",),
    ),
    Case(
        name="V4-majority", write=_journals(_each(("n3",), _of_the_domain("rejoined"), _another_majority)),
        finds=("V4: views of the domain that follow share a majority",),
    ),
    Case(
        name="V4-enough", write=_journals(_promised_by_nobody),
        finds=("V4: a log is recovered from enough servers of the view before",),
    ),
    Case(
        name="V4-early", write=_journals(_ordered_early),
        finds=("V4: nobody orders in a view that is not active",),
    ),
    Case(
        name="V6-batch", write=_journals(_late_for_a_list, BATCHES),
        finds=("V6: batches that end with one number are delivered among the same members",
               "V5: who goes from one list to the next together has delivered the same"),
    ),
    Case(
        name="L1-number", write=_journals(_each(NODES, _is("ordered"), _twice, number=8)),
        finds=("L1: a leader gives a number once",),
    ),
    Case(name="L2-reused", write=_another_run, finds=("L2: an epoch is used by one process of a node",)),
    Case(
        name="L5-office", write=_journals(_each(("n1",), _of_the_domain("ordered"), _left_and_orders)),
        finds=("L5: who has left the office orders nothing in it",),
    ),
    Case(
        name="L5-gone", write=_journals(_declared_gone),
        finds=("L5: who is gone delivers, orders and holds nothing",),
    ),
    Case(
        name="L6-handed-out", write=_journals(_each(("n2",), _is("provider_joined"), _with(fence=1), number=2)),
        finds=("L6: fences that are handed out only grow",),
    ),
    Case(
        name="G1-one-at-a-time", write=_journals(_each(NODES, _is("outcome"), _gone, number=2)),
        finds=("G1: one ballot at a time",),
    ),
    Case(
        name="G1-same-story", write=_journals(_each(("n2",), _is("phase"), _with(time_limit=0.3), number=2)),
        finds=("G1: the same story everywhere",),
    ),
    Case(
        name="G4-electorate", write=_journals(_each(NODES, _is("outcome"), _one_vote_less, number=2)),
        finds=("G4: who is counted is who had a vote, each once",),
    ),
    Case(
        name="G4-one-vote", write=_journals(_each(("n3",), _is("voted"), _twice, number=2)),
        finds=("G4: a daemon takes one vote of a voter",),
    ),
    Case(
        name="G4-has-voted", write=_journals(_each(("n3",), _is("voted"), _gone, number=2)),
        finds=("G4: who is counted has voted",),
    ),
    Case(
        name="G5-announced", write=_journals(_each(NODES, _is("provider_failing"), _gone)),
        finds=("G5: who is passed over as failed or unresponsive was announced as that",),
    ),
    Case(
        name="G10-two-entries", write=_journals(_each(("n2",), _is("provider_left"), _one_entry_later)),
        finds=("G10: who leaves leaves with one entry",),
    ),
    Case(
        name="R1-has-come", write=_journals(_each(("n3",), _is("barrier_entered"), _gone)),
        finds=("R1: who is counted has come, by the word of its own daemon",),
    ),
    Case(name="J1-twice", write=_numbered_alike, finds=("J1: no line is there twice",)),
    Case(
        name="J1-copies", write=lambda place: _two_copies(place, epoch=2),
        finds=("J1: copies of a journal are the same",),
    ),
    Case(
        name="J1-arguments", write=lambda place: _two_copies(place, args={"until": 1e9}),
        finds=("J1: copies of a journal are the same",),
    ),
    Case(name="J1-alike", write=_two_copies),
    *map(_planted, PLANTS.values()),
)  # fmt: skip
"""Each has one contradiction, which one check must find."""
