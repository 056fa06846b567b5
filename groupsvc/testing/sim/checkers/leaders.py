"""L1 – L5: epochs are used by one leader, kept by those who promised, and end when they are over."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from groupsvc.wire.history import HistoryEvent

from .eras import Era
from .lives import Lives, record_kind
from .verdict import Violation
from .views import TIME_SLACK

BINDING = frozenset(
    {"claim", "promised", "open", "opened", "order", "held", "beat", "leaderalive", "aliveack", "answered"}
)
"""Kinds of messages by which a voter puts itself under an epoch. Canvass, Support, Alive … only mention one."""

LEADING = frozenset({"leaderalive", "open", "order", "beat", "aliveack", "answered"})
"""Kinds only the leader of an epoch sends."""


def l1(era: Era) -> Iterator[Violation]:
    """At most one leader per epoch: ``ordered`` and ``stable`` of an epoch come from one boot of one node.

    A leader that restarts leads again only under a new epoch. A number is given once per epoch.
    """
    lives = Lives()
    author_of: dict[int, tuple[str, int]] = {}
    given: set[tuple[int, int]] = set()
    for line in era.of("boot", "ordered", "stable"):
        if line.op == "boot":
            lives.see(line)
            continue
        me = (line.node, lives[line.node].boot)
        author = author_of.setdefault(line.epoch, me)
        if author != me:
            text = f"epoch {line.epoch} is led by {author[0]} (boot {author[1]}) and by {me[0]} (boot {me[1]})"
            yield Violation("L1", text, line.i)
        if line.op == "ordered":
            if (line.epoch, line.seq) in given:
                yield Violation("L1", f"{line.node} gave number {line.seq} twice in epoch {line.epoch}", line.i)
            given.add((line.epoch, line.seq))


def l2(era: Era) -> Iterator[Violation]:
    """An epoch is on disk before it is used, and never used again.

    When a durable voter first sends a binding message of epoch e, a promise or open of at least e has been
    ``persisted`` on its present disk (a write that survived a crash without being seen counts). One boot of
    one node sends what only the leader of e sends. One node claims e in one boot only; two nodes may both
    *claim* it, since Support binds nobody, and at most one of them wins.
    """
    lives = Lives()
    on_disk: dict[str, int] = {}
    leader_of: dict[int, tuple[str, int]] = {}
    claimed_in: dict[tuple[int, str], int] = {}
    for line in era.of("boot", "persisted", "spoke"):
        node = line.node
        if line.op == "boot":
            if lives.see(line):
                on_disk[node] = 0
            continue
        if line.op == "persisted":
            if record_kind(line) in ("promise", "open"):
                on_disk[node] = max(on_disk.get(node, 0), line.epoch)
            continue
        kind = message_kind(line)
        life = lives[node]
        if kind in BINDING and node in era.voters and life.durable and on_disk.get(node, 0) < line.epoch:
            text = f"{node} sent {kind} of epoch {line.epoch}; on its disk is {on_disk.get(node, 0)}"
            yield Violation("L2", text, line.i)
        if kind in LEADING and leader_of.setdefault(line.epoch, (node, life.boot)) != (node, life.boot):
            other, boot = leader_of[line.epoch]
            text = f"{node} (boot {life.boot}) sent {kind} of epoch {line.epoch}, used by {other} (boot {boot})"
            yield Violation("L2", text, line.i)
        if kind == "claim" and claimed_in.setdefault((line.epoch, node), life.boot) != life.boot:
            yield Violation("L2", f"{node} claims epoch {line.epoch} again after a restart", line.i)


def message_kind(line: HistoryEvent) -> str:
    """What a ``spoke`` line is about."""
    return str(line.args.get("kind", "")).replace("_", "").lower()


def l3(era: Era) -> Iterator[Violation]:
    """After promising e nothing below e is accepted: no ``held``, no ``view_installed`` of a lower epoch.

    A promise counts from the moment the node has sent a binding message of that epoch, or has booted with it
    on its disk. Not yet from ``persisted``: one sync may cover an append and the promise after it, and what the
    append allows to say goes out first, before the promise is told to anyone.
    """
    lives = Lives()
    on_disk: dict[str, int] = {}
    bound: dict[str, int] = {}
    for line in era.of("boot", "persisted", "spoke", "held", "view_installed"):
        node = line.node
        if line.op == "boot":
            if lives.see(line):
                on_disk[node] = 0
            bound[node] = on_disk.get(node, 0)
        elif line.op == "persisted":
            if record_kind(line) in ("promise", "open"):
                on_disk[node] = max(on_disk.get(node, 0), line.epoch)
        elif line.op == "spoke":
            if message_kind(line) in BINDING:
                bound[node] = max(bound.get(node, 0), line.epoch)
        elif line.epoch < bound.get(node, 0):
            yield Violation("L3", f"{node} is bound to epoch {bound[node]} and has {line.op} of {line.epoch}", line.i)


def l4(era: Era) -> Iterator[Violation]:
    """Leader completeness: what was announced ``stable`` in epochs below e is in the log recovered for e.

    Both ways round in time: a Held that was long on its way may let an old leader announce after the new one
    has recovered, and then, too, the entry must be there, because whoever sent that Held promised later. The
    bytes are compared with what the announcing leader had recovered or ordered under those numbers.
    """
    logs: dict[int, list[tuple[int, int]]] = {}  # epoch -> (number, CRC), what its leader has, not yet stable
    done: dict[int, int] = {}  # epoch -> how many of these are stable
    stable: dict[int, tuple[int, int]] = {}  # number -> epoch in which it was announced first, CRC
    announced: dict[int, int] = {}  # epoch -> highest number announced
    recovered: dict[int, tuple[int, dict[int, int]]] = {}
    for line in era.of("ordered", "recovered", "stable"):
        epoch = line.epoch
        if line.op == "ordered":
            logs.setdefault(epoch, []).append((line.seq, line.crc))
        elif line.op == "recovered":
            tail = {int(seq): int(crc) for seq, crc in line.args["tail"]}
            last = int(line.args["last"])
            recovered[epoch] = (last, tail)
            logs.setdefault(epoch, []).extend(tail.items())
            top = max((seq for other, seq in announced.items() if other < epoch), default=0)
            if last < top:
                text = f"{line.node} recovered epoch {epoch} up to {last}; {top} had been announced stable"
                yield Violation("L4", text, line.i)
            for seq, crc in tail.items():
                known = stable.get(seq)
                if known is not None and known[0] < epoch and known[1] != crc:
                    text = f"the log of epoch {epoch} has CRC {crc:08x} at {seq}, stable was {known[1]:08x}"
                    yield Violation("L4", text, line.i)
        else:
            announced[epoch] = max(announced.get(epoch, 0), line.seq)
            later = [(other, *found) for other, found in recovered.items() if other > epoch]
            for other, last, _ in later:
                if last < line.seq:
                    text = f"{line.seq} is announced stable in epoch {epoch}, epoch {other} had recovered {last}"
                    yield Violation("L4", text, line.i)
            log, at = logs.get(epoch, []), done.get(epoch, 0)
            while at < len(log) and log[at][0] <= line.seq:
                seq, crc = log[at]
                stable.setdefault(seq, (epoch, crc))
                for other, _, tail in later:
                    if tail.get(seq, crc) != crc:
                        text = f"{seq} is stable in epoch {epoch}, but epoch {other} recovered another entry"
                        yield Violation("L4", text, line.i)
                at += 1
            done[epoch] = at


def l5(era: Era) -> Iterator[Violation]:
    """A leader acknowledges nothing after it is fenced.

    Epoch e is fenced when a majority of voters has a higher promise on disk. A voter promises only after
    ``leader_silent`` without a leader (or when the leader's process is dead, or yields), and a leader leaves
    office earlier than that after the last call a majority answered: so it has stopped by then.
    """
    lives = Lives()
    on_disk: dict[str, int] = {}
    fences: list[int] = []  # epochs below each of these are over ...
    since: list[float] = []  # ... from this harness time on
    for line in era.of("boot", "persisted", "acknowledged"):
        if line.op == "boot":
            if lives.see(line):
                on_disk[line.node] = 0
        elif line.op == "persisted":
            if record_kind(line) in ("promise", "open") and line.epoch > on_disk.get(line.node, 0):
                on_disk[line.node] = line.epoch
                fence = era.covered_by_majority(on_disk)
                if fence > (fences[-1] if fences else 0):
                    fences.append(fence)
                    since.append(line.t)
        else:
            place = bisect_right(fences, line.epoch)
            if place < len(fences):
                late = line.t - since[place]
                if late > TIME_SLACK:
                    text = (
                        f"{line.node} acknowledges in epoch {line.epoch} {late:.3f} s after a majority had"
                        f" promised {fences[place]}"
                    )
                    yield Violation("L5", text, line.i)
