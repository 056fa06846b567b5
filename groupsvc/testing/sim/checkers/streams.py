"""B1 – B4 and B6: one log, the same everywhere, never taken back.

The lines are ``ordered`` (the leader gave a number), ``delivered`` (a voter applied an entry; its epoch is the
one the voter had accepted), ``restored`` (a voter took over a checkpoint) and ``recovered`` (a new leader has
chosen and installed its log). A CRC stands for the bytes of an entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .eras import Era
from .lives import LIFE_OPS, Lives
from .verdict import Violation


def b1(era: Era) -> Iterator[Violation]:
    """Integrity.

    A number is delivered at most once in one boot and incarnation of a node; a restart may go through the
    entries after its checkpoint again, and so may a node that ``restored`` (a blank voter that followed the
    stream from outside delivers once more what it holds itself now). Only what some leader ordered under that
    number, with the same bytes; the first entry of a domain is not ordered but found in the log that its first
    leaders recover before anything was. A message (origin, n) is delivered under one number only, everywhere;
    entries without an origin are the leader's own and may repeat.
    """
    lives = Lives()
    ordered: set[tuple[int, int]] = set()
    delivered: dict[tuple[str, int, int], set[int]] = {}
    place_of: dict[tuple[str, int], int] = {}
    formed = False
    for line in era.of("boot", "ordered", "recovered", "restored", "delivered"):
        if line.op == "boot":
            lives.see(line)
        elif line.op == "ordered":
            formed = True
            ordered.add((line.seq, line.crc))
        elif line.op == "recovered":
            if not formed:
                ordered.update((int(seq), int(crc)) for seq, crc in line.args["tail"])
        elif line.op == "restored":
            delivered.pop((line.node, lives[line.node].boot, line.inc), None)
        else:
            mine = delivered.setdefault((line.node, lives[line.node].boot, line.inc), set())
            if line.seq in mine:
                yield Violation("B1", f"{line.node} delivered {line.seq} twice", line.i)
            mine.add(line.seq)
            if (line.seq, line.crc) not in ordered:
                text = f"{line.node} delivered {line.seq} with CRC {line.crc:08x}, which nobody had ordered"
                yield Violation("B1", text, line.i)
            if line.origin and line.n > 0:
                place = place_of.setdefault((line.origin, line.n), line.seq)
                if place != line.seq:
                    text = f"message {line.n} of {line.origin} is delivered as {place} and, at {line.node}, {line.seq}"
                    yield Violation("B1", text, line.i)


def b2(era: Era) -> Iterator[Violation]:
    """Validity, at the end of a converged run.

    Every ``config_set`` and look-up has an end, unless the client's node went down after the invoke: its
    clients went with it. What the good ones rest on was delivered (or restored) at a majority of voters.
    """
    if not era.converged:
        return
    went_down: dict[str, int] = {}
    reached: dict[str, int] = {}
    for position, line in enumerate(era.events):
        if line.type == "event" and line.group == 0:
            if line.op in LIFE_OPS:
                went_down[line.node] = position
            elif line.op in ("delivered", "restored"):
                reached[line.node] = max(reached.get(line.node, 0), line.seq)
    majority_has = era.covered_by_majority(reached)
    for (client, number), call in era.calls.items():
        if not call.is_look_up and call.invoke.op != "config_set":
            continue
        what = f"{call.invoke.op} {number} of {client}"
        if call.end is None:
            if went_down.get(call.invoke.node, -1) < call.began and not call.carried:
                yield Violation("B2", f"{what} never ended", call.invoke.i)
        elif not call.carried and call.shown_seq > majority_has:
            text = f"{what} was told of entry {call.shown_seq}, a majority of voters has only {majority_has}"
            yield Violation("B2", text, call.end.i)


def b3(era: Era) -> Iterator[Violation]:
    """Uniform agreement, at the end of a converged run.

    What anyone delivered, even one who died, every running voter has delivered or restored on its present
    disk. High-water marks are enough: B4 sees gaps and differences. Converged means quiet, so an entry still
    on its way at the end is missed on purpose.
    """
    if not era.converged:
        return
    lives = Lives()
    reached: dict[str, int] = {}
    top, shown_by = 0, ""
    for line in era.of(*LIFE_OPS, "delivered", "restored"):
        if line.op in LIFE_OPS:
            if lives.see(line):
                reached[line.node] = 0
            continue
        reached[line.node] = max(reached.get(line.node, 0), line.seq)
        if line.op == "delivered" and line.seq > top:
            top, shown_by = line.seq, line.node
    for node in lives.running():
        if node in era.voters and reached.get(node, 0) < top:
            text = f"{shown_by} delivered up to {top}, {node} survived and has only {reached.get(node, 0)}"
            yield Violation("B3", text, era.end)


def b4(era: Era) -> Iterator[Violation]:
    """Total order: a number has one content, at all nodes, in all epochs; nobody skips a number.

    Within a boot the next delivery is at most one above the last delivered or restored number (below it is
    B1's matter, and legal after a change of incarnation). The first one after a restart may be anywhere up to
    one above what anybody has shown so far, because it follows a checkpoint; a voter on a new disk that
    restored nothing begins with the first number of the stream (ordered, or recovered before anything was).
    """
    lives = Lives()
    content: dict[int, int] = {}
    last: dict[str, int] = {}
    blank: set[str] = set()
    first = top = 0
    for line in era.of("boot", "ordered", "recovered", "delivered", "restored"):
        node = line.node
        if line.op == "boot":
            blank.discard(node)
            if lives.see(line) and node in era.voters:
                blank.add(node)
            last.pop(node, None)
            continue
        if line.op == "ordered":
            first = min(first or line.seq, line.seq)
            continue
        if line.op == "recovered":
            if not first and line.args["tail"]:
                first = int(line.args["tail"][0][0])
            continue
        if line.op == "delivered":
            if content.setdefault(line.seq, line.crc) != line.crc:
                text = f"{node} delivered {line.seq} with CRC {line.crc:08x}, elsewhere {content[line.seq]:08x}"
                yield Violation("B4", text, line.i)
            if node in last:
                limit = max(last[node] + 1, first)
            else:
                limit = first if node in blank or not top else top + 1
            if line.seq > limit:
                yield Violation("B4", f"{node} delivered {line.seq}, {limit} would have been next", line.i)
        last[node] = line.seq
        top = max(top, line.seq)


def b6(era: Era) -> Iterator[Violation]:
    """One canonical log: nothing delivered is ever undone.

    The log recovered for epoch e reaches at least as far as anybody had delivered in an epoch below e, and
    has the same bytes there. Deliveries of higher epochs do not count: a slow winner of e may finish its
    recovery when a later leader is already at work, and nobody will listen to it. Entries before the first
    one listed are in its base or checkpoint.
    """
    delivered: dict[int, tuple[int, int]] = {}  # number -> lowest epoch it was delivered in, CRC
    reached: dict[int, int] = {}  # epoch -> highest number delivered in it
    for line in era.of("delivered", "recovered"):
        if line.op == "delivered":
            known = delivered.get(line.seq)
            if known is None or line.epoch < known[0]:
                delivered[line.seq] = (line.epoch, line.crc if known is None else known[1])
            reached[line.epoch] = max(reached.get(line.epoch, 0), line.seq)
            continue
        last = int(line.args["last"])
        top = max((seq for epoch, seq in reached.items() if epoch < line.epoch), default=0)
        if last < top:
            text = f"{line.node} recovered epoch {line.epoch} up to {last}; {top} had been delivered"
            yield Violation("B6", text, line.i)
        yield from _contradictions(line.i, line.epoch, line.args["tail"], last, delivered)


def _contradictions(
    at: int, epoch: int, tail: list[Any], last: int, delivered: dict[int, tuple[int, int]]
) -> Iterator[Violation]:
    entries: dict[int, int] = {int(seq): int(crc) for seq, crc in tail}
    for seq in range(min(entries, default=last + 1), last + 1):
        known = delivered.get(seq)
        if known is None or known[0] >= epoch:
            continue
        if seq not in entries:
            yield Violation("B6", f"the log recovered for epoch {epoch} lacks {seq}, which had been delivered", at)
        elif entries[seq] != known[1]:
            text = f"the log recovered for epoch {epoch} has CRC {entries[seq]:08x} at {seq}, delivered {known[1]:08x}"
            yield Violation("B6", text, at)
