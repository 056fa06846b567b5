"""L1 – L5 and S1 for groups: an epoch is led by one, kept by those who promised, and over when it is over.

Where the domain's rules speak of a majority of voters, these speak of k of a view's servers, each a process or, in
durable groups, a disk (see ``group_streams``).
"""

from __future__ import annotations

from collections.abc import Iterator

from .group_streams import GroupStream, GroupView, Part, Server, Servers
from .leaders import BINDING, message_kind
from .lives import Lives, record_kind
from .verdict import Violation

LEADING = frozenset({"claim", "open", "order", "beat"})
"""Kinds of messages of a group's stream that only the leader of an epoch sends."""


def l1(stream: GroupStream) -> Iterator[Violation]:
    """At most one leader per epoch: ``ordered`` and ``stable`` of an epoch come from one incarnation.

    A number is given once per epoch.
    """
    author_of: dict[int, Part] = {}
    given: set[tuple[int, int]] = set()
    for line in stream.of("ordered", "stable"):
        me = (line.node, line.inc)
        author = author_of.setdefault(line.epoch, me)
        if author != me:
            yield Violation("L1", f"epoch {line.epoch} is led by {author} and by {me}", line.i)
        if line.op == "ordered":
            if (line.epoch, line.seq) in given:
                yield Violation("L1", f"{line.node} gave number {line.seq} twice in epoch {line.epoch}", line.i)
            given.add((line.epoch, line.seq))


def l2(stream: GroupStream) -> Iterator[Violation]:
    """An epoch is used by one incarnation, and in durable groups it is on disk before it is used.

    What only the leader of an epoch sends is sent in it by one incarnation. When a server of a durable group first
    sends a binding message of an epoch, a promise or open of at least that epoch is ``persisted`` on its present disk.
    """
    lives = Lives()
    on_disk: dict[str, int] = {}
    leader_of: dict[int, Part] = {}
    for line in stream.of("boot", "persisted", "spoke"):
        if line.op == "boot":
            if lives.see(line):
                on_disk[line.node] = 0
        elif line.op == "persisted":
            if record_kind(line) in ("promise", "open"):
                on_disk[line.node] = max(on_disk.get(line.node, 0), line.epoch)
        else:
            kind, me = message_kind(line), (line.node, line.inc)
            if stream.durable and kind in BINDING and on_disk.get(line.node, 0) < line.epoch:
                text = f"{line.node} sent {kind} of epoch {line.epoch}; on its disk is {on_disk.get(line.node, 0)}"
                yield Violation("L2", text, line.i)
            if kind in LEADING and leader_of.setdefault(line.epoch, me) != me:
                text = f"{me} sent {kind} of epoch {line.epoch}, which {leader_of[line.epoch]} uses"
                yield Violation("L2", text, line.i)


def l3(stream: GroupStream) -> Iterator[Violation]:
    """After promising an epoch nothing below it is accepted: no ``held``, no ``view_installed`` of a lower one.

    In volatile groups from the ``promise`` on. In durable ones, as in the domain's stream, from when the server has
    sent a binding message of the epoch or has booted with it on its disk: one sync may cover an append and the promise
    after it.
    """
    lives = Lives()
    servers = Servers(stream.durable)
    on_disk: dict[str, int] = {}
    bound: dict[Server, int] = {}
    for line in stream.of("boot", "persisted", "spoke", "promise", "held", "view_installed"):
        if line.op == "boot":
            servers.see(line)
            if lives.see(line):
                on_disk[line.node] = 0
            if stream.durable:
                bound[servers.of(line)] = on_disk.get(line.node, 0)
            continue
        me = servers.of(line)
        if line.op == "persisted":
            if record_kind(line) in ("promise", "open"):
                on_disk[line.node] = max(on_disk.get(line.node, 0), line.epoch)
        elif line.op == "promise" or line.op == "spoke":
            if message_kind(line) in BINDING if stream.durable else line.op == "promise":
                bound[me] = max(bound.get(me, 0), line.epoch)
        elif line.epoch < bound.get(me, 0):
            text = f"{line.node} has promised epoch {bound[me]} and has {line.op} of {line.epoch}"
            yield Violation("L3", text, line.i)


def l4(stream: GroupStream) -> Iterator[Violation]:
    """Leader completeness: what was announced ``stable`` in lower epochs is in the log recovered for an epoch.

    Whatever the order in time: a Held that was long on its way may let a deposed leader announce after its successor
    has recovered, and then, too, the entry must be there. Forced views are exempt (see ``lineage``).
    """
    yield from (loss for loss in stream.lineage.losses if loss.invariant == "L4")


def l5(stream: GroupStream) -> Iterator[Violation]:
    """A deposed leader is silent once it can know, and at the latest when its lease has ended.

    Whoever has put itself under a higher epoch (promised or installed it, or delivered in it) orders and announces
    nothing in a lower one any more. And an incarnation that was declared gone orders, holds, announces and delivers
    nothing at all in a group: its lease is over, and others may go on without a word from it. What a cut-off leader
    that knows nothing announces until then is L4's matter.
    """
    highest: dict[Part, int] = {}
    gone: set[Part] = set()
    for line in stream.of(
        "node_gone", "promise", "view_installed", "members", "delivered", "ordered", "stable", "held"
    ):
        if line.op == "node_gone":
            gone.add((str(line.args["name"]), int(line.args["inc"])))
            continue
        me = (line.node, line.inc)
        if me in gone and line.op in ("ordered", "held", "stable", "delivered"):
            text = f"{line.node}/{line.inc} is gone and still has {line.op} {line.seq} in epoch {line.epoch}"
            yield Violation("L5", text, line.i)
        if line.op == "ordered" or line.op == "stable":
            if line.epoch < highest.get(me, 0):
                text = f"{line.node} is in epoch {highest[me]} and still has {line.op} {line.seq} in {line.epoch}"
                yield Violation("L5", text, line.i)
        elif line.op != "held":
            highest[me] = max(highest.get(me, 0), line.epoch)


def s1(stream: GroupStream) -> Iterator[Violation]:
    """What a leader announces ``stable``, or a server delivers before that, is held by k servers of its view.

    A server, the leader among them, holds what it said it does in this epoch (``held``), and the log with which it
    installed it. A leader with a disk need not say so to itself: what is there counts. Counted are the processes that
    the view names, in durable groups the disks, and there what was held is on disk. Numbers that were announced or
    delivered in a lower epoch already are not asked about again.
    """
    servers = Servers(stream.durable)
    lives = Lives()
    holds: dict[int, dict[Server, int]] = {}
    on_disk: dict[str, int] = {}
    announced: dict[int, int] = {}
    for line in stream.of("boot", "persisted", "view_installed", "held", "stable", "delivered"):
        if line.op == "boot":
            servers.see(line)
            if lives.see(line):
                on_disk[line.node] = 0
            continue
        if line.op == "persisted":
            kind = record_kind(line)
            if kind == "open":
                on_disk[line.node] = line.seq
            elif kind in ("append", "checkpoint"):
                on_disk[line.node] = max(on_disk.get(line.node, 0), line.seq)
            continue
        if line.op in ("stable", "delivered"):
            known = max((seq for epoch, seq in announced.items() if epoch < line.epoch), default=0)
            if line.op == "delivered":
                known = max(known, announced.get(line.epoch, 0))
            announced[line.epoch] = max(announced.get(line.epoch, 0), line.seq)
            view = stream.views.get(line.epoch)
            if line.op == "stable" and stream.durable:
                mine, me = holds.setdefault(line.epoch, {}), servers.of(line)
                mine[me] = max(mine.get(me, 0), on_disk.get(line.node, 0))
            if line.seq > known and view is not None:
                count = _holders(view, holds.get(line.epoch, {}), line.seq)
                if count < view.k:
                    does = "announces" if line.op == "stable" else "delivers"
                    text = f"{line.node} {does} {line.seq} in epoch {line.epoch}; {count} of {view.k} hold it"
                    yield Violation("S1", text, line.i)
            continue
        if line.op == "held" and stream.durable and on_disk.get(line.node, 0) < line.seq:
            text = f"{line.node} holds {line.seq} in epoch {line.epoch}; on its disk is {on_disk.get(line.node, 0)}"
            yield Violation("S1", text, line.i)
        mine = holds.setdefault(line.epoch, {})
        me = servers.of(line)
        mine[me] = max(mine.get(me, 0), line.seq)


def _holders(view: GroupView, holds: dict[Server, int], seq: int) -> int:
    """How many servers of the view hold the entry."""
    having = {server for server, upto in holds.items() if upto >= seq}
    return len(having.intersection(view.servers)) if view.servers else len({n for n, _ in having} & {*view.names})
