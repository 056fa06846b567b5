"""B1 – B6 for groups: one log, the same at all who follow, in the order in which it was sent.

A node follows a group from ``restored`` (it has the state after that entry) or, if it formed the group, from the first
entry on. What it delivers from there until it ends, restarts or begins anew is judged as one run. Entries of branches
that were lost with a forced view are judged apart (see ``lineage``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import attrs

from groupsvc.wire.history import HistoryEvent

from .group_streams import ENDS_OF_PROCESSES, GroupStream, Part, members_of
from .lineage import Lineage
from .verdict import Violation


def b1(stream: GroupStream) -> Iterator[Violation]:
    """Integrity.

    A number is delivered at most once in one run; only what some leader ordered under that number, with the same
    bytes. A message (origin, n) is delivered under one number only, everywhere in one branch. If the origin's programs
    wrote down what they submitted under which number, it is just that, and nothing they did not submit.
    """
    ordered: set[tuple[int, int]] = set()
    delivered: dict[Part, set[int]] = {}
    place_of: dict[tuple[int, str, int], int] = {}
    writers = {origin for origin, _ in stream.submitted} - {origin for origin, n in stream.submitted if not n}
    for line in stream.of("ordered", "restored", "delivered"):
        if line.op == "ordered":
            ordered.add((line.seq, line.crc))
        elif line.op == "restored":
            delivered.pop((line.node, line.inc), None)
        else:
            yield from _integrity(line, ordered, delivered.setdefault((line.node, line.inc), set()))
            if line.origin:
                place = (stream.lineage.branch(line.seq, line.epoch), line.origin, line.n)
                seq = place_of.setdefault(place, line.seq)
                if seq != line.seq:
                    text = f"message {line.n} of {line.origin} is delivered as {seq} and, at {line.node}, {line.seq}"
                    yield Violation("B1", text, line.i)
                if line.origin in writers and line.crc not in stream.submitted.get((line.origin, line.n), ()):
                    text = f"{line.node} delivered {line.seq}, which {line.origin} did not submit as its {line.n}"
                    yield Violation("B1", text, line.i)


def _integrity(line: HistoryEvent, ordered: set[tuple[int, int]], mine: set[int]) -> Iterator[Violation]:
    if line.seq in mine:
        yield Violation("B1", f"{line.node} delivered {line.seq} twice", line.i)
    mine.add(line.seq)
    if (line.seq, line.crc) not in ordered:
        text = f"{line.node} delivered {line.seq} with CRC {line.crc:08x}, which nobody had ordered"
        yield Violation("B1", text, line.i)


def b2(stream: GroupStream) -> Iterator[Violation]:
    """Validity, at the end of a converged run: a ``submit`` that ended well was delivered.

    At the submitting node if the program has seen it there (``seq`` in the result) and its incarnation still runs: one
    that is killed may have told its program before it wrote its line. Else, of a stranger, anywhere. That every call
    ends is asked in ``group_calls``.
    """
    if not stream.converged:
        return
    delivered: set[tuple[str, str, int]] = set()
    anywhere: set[tuple[str, int]] = set()
    runs: dict[str, int] = {}
    for line in stream.of("boot", *ENDS_OF_PROCESSES, "delivered"):
        if line.op == "boot":
            runs[line.node] = line.inc
        elif line.op != "delivered":
            runs.pop(line.node, None)
        elif line.origin:
            delivered.add((line.node, line.origin, line.n))
            anywhere.add((line.origin, line.n))
    for line in stream.of(calls=("submit",)):
        if line.type == "ok":
            origin = f"{line.node}/{line.inc}"
            if line.result.get("seq") is None:
                is_true = (origin, line.n) in anywhere
            else:
                is_true = (line.node, origin, line.n) in delivered or runs.get(line.node) != line.inc
            if is_true:
                continue
            text = f"{line.who} at {line.node} was told that its {line.n} is in the stream; it was not delivered"
            yield Violation("B2", text, line.i)


def b3(stream: GroupStream) -> Iterator[Violation]:
    """Uniform agreement, in two parts.

    *Kept*: nothing is thrown away that a member lacks, unless it may lag by more than the whole history (GS-12), which
    nobody does before so many entries were ordered. What a leader says that all have, all who are in its list have
    delivered; and no more than that goes with a checkpoint. A disk owes nothing to an earlier process on itself, which
    is dead and no survivor: C comes back, its list has the C of before, and it takes over a log that begins behind what
    that one had delivered. A leader that says what all have goes by its list all the same. Who throws away what the
    leader says that all have may be behind the leader: whom an entry removed that somebody has delivered lacks nothing.
    (Only durable groups write that down, and they lose no entry: removed is removed.) And who lags so far that what it
    lacks is kept nowhere goes on behind a checkpoint: it throws away what it had, not what it never had.

    *Delivered*, at the end of a converged run: what anyone delivered, even one who died, everybody who still follows
    has delivered or begun behind; entries that a forced view lost are not asked for. High-water marks are enough: B4
    sees gaps and differences.
    """
    yield from _thrown_away(stream)
    if not stream.converged:
        return
    reached: dict[Part, int] = {}
    top, shown_by = 0, ""
    for line in stream.of("boot", *ENDS_OF_PROCESSES, "group_lost", "restored", "delivered"):
        me = (line.node, line.inc)
        if line.op == "restored" or line.op == "delivered":
            reached[me] = line.seq
            is_void = line.op == "restored" or stream.lineage.is_void(line.seq, line.epoch, line.crc)
            if line.seq > top and not is_void:
                top, shown_by = line.seq, line.node
        else:
            for part in [part for part in reached if part[0] == line.node]:
                del reached[part]
    for (node, _), seq in sorted(reached.items()):
        if seq < top:
            yield Violation("B3", f"{shown_by} delivered up to {top}, {node} follows and has only {seq}", stream.end)


def _thrown_away(stream: GroupStream) -> Iterator[Violation]:
    reached: dict[Part, int] = {}
    inserted: dict[Part, int] = {}  # the newest list, and since which entry each counts
    lists: dict[Part, tuple[Part, ...]] = {}
    newest_list = 0
    bases: dict[str, int] = {}  # behind which entry the log on a disk begins
    ends: dict[str, int] = {}  # and with which it ends
    ordered = 0
    for line in stream.of("members", "ordered", "restored", "delivered", "discarding", "persisted", "group_lost"):
        me = (line.node, line.inc)
        if line.op == "members":
            lists[me] = members_of(line)
            if line.seq > newest_list:
                newest_list = line.seq
                inserted = {part: inserted.get(part, line.seq) for part in lists[me]}
        elif line.op == "ordered":
            ordered = max(ordered, line.seq)
        elif line.op == "group_lost":
            reached.pop(me, None)  # if it is listed, then because it comes again and has not begun yet
        elif line.op == "persisted" or line.op == "discarding":
            upto = line.seq
            if line.op == "persisted":
                upto, before = int(line.args.get("base", 0)), bases.get(line.node, 0)
                had, ends[line.node] = ends.get(line.node, upto), line.seq
                bases[line.node] = upto or before
                if upto <= before or not line.epoch:  # without an epoch: the disk begins to have a log, with this
                    continue
                upto = min(upto, had)
            # Who comes with a machine, or with its disk, waits for nothing before its insertion: it can be given that.
            lacking = [part for part in lists.get(me, ()) if inserted.get(part, 0) <= reached.get(part, upto) < upto]
            if line.op == "persisted":
                lacking = [part for part in lacking if part in inserted and (part[0] != line.node or part == me)]
            if lacking and ordered <= stream.history_entries_max:
                name, inc = lacking[0]
                text = f"{line.node} drops entries up to {upto}; {name}/{inc} has only {reached[name, inc]}"
                yield Violation("B3", text, line.i)
        else:
            reached[me] = line.seq


def b4(stream: GroupStream) -> Iterator[Violation]:
    """Total order: a number has one content in a branch, at all nodes, in all epochs; nobody skips a number.

    In one run the next delivery is one above the last one; the first is one above ``restored``, or the first of the
    stream. Below is B1's matter. And nobody begins behind an entry that nobody had delivered or announced.
    """
    content: dict[tuple[int, int], int] = {}
    last: dict[Part, int] = {}
    top = 0
    for line in stream.of("boot", *ENDS_OF_PROCESSES, "group_lost", "stable", "restored", "delivered"):
        me = (line.node, line.inc)
        if line.op == "stable":
            top = max(top, line.seq)
        elif line.op == "restored":
            if line.seq > top:
                text = f"{line.node} begins behind {line.seq}; the stream had been delivered up to {top}"
                yield Violation("B4", text, line.i)
            last[me] = line.seq
        elif line.op == "delivered":
            place = (stream.lineage.branch(line.seq, line.epoch), line.seq)
            if content.setdefault(place, line.crc) != line.crc:
                text = f"{line.node} delivered {line.seq} with CRC {line.crc:08x}, elsewhere {content[place]:08x}"
                yield Violation("B4", text, line.i)
            following = last.get(me, 0) + 1
            if line.seq > following:
                yield Violation("B4", f"{line.node} delivered {line.seq}, {following} would have been next", line.i)
            last[me] = line.seq
            top = max(top, line.seq)
        else:
            for part in [part for part in last if part[0] == line.node]:
                del last[part]


def b5(stream: GroupStream) -> Iterator[Violation]:
    """Order of sending, in two parts.

    *FIFO*: in one run the messages of an origin come in the order of their numbers, without a gap; who begins in the
    middle of the stream may begin anywhere. After a forced view those numbers may be missing that had been delivered to
    somebody before: they are lost with its tail, and their origin knows them as done. And those may be missing that the
    origin has given up (``given_up``), because who had submitted them had ended its part.

    *Causal*: what a node submits after it has delivered an entry is ordered behind that entry; unless entries were lost
    with a forced view, whose numbers are given again.
    """
    cuts = stream.lineage.cuts
    shown: dict[str, int] = {}  # origin -> highest number that was ever delivered
    given_up: dict[str, set[int]] = {}  # origin -> numbers
    next_n: dict[Part, dict[str, int]] = {}
    reached: dict[Part, int] = {}
    known: dict[tuple[str, int], int] = {}  # message -> what its node had delivered when it was submitted
    for line in stream.of("restored", "delivered", "given_up", calls=("submit",)):
        me = (line.node, line.inc)
        if line.op == "submit":
            if line.type == "invoke":
                known[f"{line.node}/{line.inc}", line.n] = reached.get(me, 0)
        elif line.op == "given_up":
            numbers = range(int(line.args["first"]), line.n + 1)
            given_up.setdefault(f"{line.node}/{line.inc}", set()).update(numbers)
        elif line.op == "restored":
            reached[me] = line.seq
            next_n.pop(me, None)
        else:
            reached[me] = line.seq
            if not line.origin:
                continue
            mine = next_n.setdefault(me, {})
            expected = mine.get(line.origin, line.n)
            mine[line.origin] = line.n + 1
            before, gone = shown.get(line.origin, 0), given_up.get(line.origin, set())
            is_known = all((cuts and n <= before) or n in gone for n in range(expected, line.n))
            shown[line.origin] = max(line.n, before)
            if line.n < expected or not is_known:
                text = f"{line.node} delivered message {line.n} of {line.origin}, {expected} would have been next"
                yield Violation("B5", text, line.i)
            before = known.get((line.origin, line.n), 0)
            if line.seq <= before and not cuts:
                text = f"message {line.n} of {line.origin} is {line.seq}; when it was sent {before} was delivered there"
                yield Violation("B5", text, line.i)


@attrs.define
class _Run:
    """What one incarnation has delivered that some forced view does without, as (number, epoch, CRC)."""

    cut: list[tuple[int, int, int]] = attrs.field(factory=list)
    epoch: int = 0  # in which it delivered last

    def lost_in(self, lineage: Lineage, epoch: float) -> int:
        """The first of them that the log of this epoch is without; 0 if it has them all."""
        return min((entry[0] for entry in self.cut if lineage.is_without(*entry, epoch)), default=0)


def b6(stream: GroupStream) -> Iterator[Violation]:
    """One canonical log: nothing delivered is ever undone.

    The log recovered for an epoch has everything that was delivered in lower ones, with the same bytes, whether
    its view ever became active or not; unless it is forced (``Lineage.losses``). Where entries are lost with a forced
    view, nobody who has delivered one of them delivers anything more in that epoch or above: its part has ended
    (``group_lost``), and in a converged run it has in time. A later forced view may have them again.
    """
    yield from (loss for loss in stream.lineage.losses if loss.invariant == "B6")
    if not stream.lineage.cuts:
        return
    runs: dict[Part, _Run] = {}
    for line in stream.of("boot", *ENDS_OF_PROCESSES, "group_lost", "restored", "delivered"):
        me = (line.node, line.inc)
        if line.op == "restored":
            runs.pop(me, None)
        elif line.op == "delivered":
            run = runs.setdefault(me, _Run())
            lost = run.lost_in(stream.lineage, line.epoch) if line.epoch != run.epoch else 0
            run.epoch = line.epoch
            if lost:
                text = f"{line.node} goes on with {line.seq} in epoch {line.epoch}, which is without its {lost}"
                yield Violation("B6", text, line.i)
            if stream.lineage.is_ever_cut(line.seq, line.epoch):
                run.cut.append((line.seq, line.epoch, line.crc))
        else:
            for part in [part for part in runs if part[0] == line.node]:
                del runs[part]
    if stream.converged:
        for (node, _), run in sorted(runs.items()):
            lost = run.lost_in(stream.lineage, math.inf)
            if lost:
                text = f"{node} still follows, with its {lost} that the group is without"
                yield Violation("B6", text, stream.end)
