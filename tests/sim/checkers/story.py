"""Small honest histories, told line by line, to be broken in one place.

``honest()`` is a domain of the voters a, b, c and the plain node d: a leads epoch 1, orders three entries, two
clients set, read and look up; a crashes, b recovers the log for epoch 2, d is declared gone after its
crash, a comes back and everybody is in order. Tests take its lines and change one thing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from groupsvc.testing.sim.checkers import check
from groupsvc.wire.history import SCHEMA_VERSION, EventType, HistoryEvent

VOTERS = ("a", "b", "c")
RATE = {"a": 1.0, "b": 1.01, "c": 0.99, "d": 0.995, "e": 1.0, "f": 1.005, "g": 0.998, "h": 1.0, "i": 1.0}
OFFSET = {"a": 100.0, "b": 7.0, "c": 0.0, "d": 55.0}

Lines = list[HistoryEvent]


def crc(seq: int) -> int:
    """The CRC of the honest entry ``seq``."""
    return 0xABC000 + seq


class Story:
    """Writes lines as engine and driver would; time moves by ``wait``."""

    def __init__(self) -> None:
        self.lines: Lines = []
        self.t = 0.0
        self.inc: dict[str, int] = {}
        self.calls = 0

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.t += seconds

    def local(self, node: str) -> float:
        """What the node's own clock shows."""
        return OFFSET.get(node, 0.0) + RATE.get(node, 1.0) * self.t

    def add(self, node: str, op: str, *, type: EventType = "event", who: str = "daemon", **fields: Any) -> None:
        """Write one line."""
        self.t += 0.001
        line = HistoryEvent(
            v=SCHEMA_VERSION, i=len(self.lines), t=self.t, local=self.local(node), node=node,
            inc=self.inc.get(node, 0), who=who, type=type, op=op, **fields,
        )  # fmt: skip
        self.lines.append(line)

    def boot(self, node: str, *, disk: int = 1, durable: bool = True, outdated: bool = False) -> None:
        """A process starts, on disk number ``disk``."""
        self.inc[node] = self.inc.get(node, 0) + 1
        args = {"rate": RATE[node], "state_id": f"{node}-{disk}", "durable": durable}
        self.add(node, "boot", args={**args, "outdated": True} if outdated else args)

    def crash(self, node: str) -> None:
        """A process dies."""
        self.add(node, "crash")

    def persisted(self, node: str, record: str, *, epoch: int = 0, seq: int = 0) -> None:
        """A record is on disk."""
        self.add(node, "persisted", epoch=epoch, seq=seq, args={"record": record})

    def spoke(self, node: str, kind: str, epoch: int) -> None:
        """The first message of a kind."""
        self.add(node, "spoke", epoch=epoch, args={"kind": kind})

    def promise(self, epoch: int, leader: str, *others: str) -> None:
        """``leader`` claims ``epoch``, ``others`` promise it."""
        for node in (leader, *others):
            self.add(node, "promise", epoch=epoch)
            self.persisted(node, "promise", epoch=epoch)
            self.spoke(node, "Claim" if node == leader else "Promised", epoch)
        self.add(leader, "office", epoch=epoch, args={"phase": "won"})

    def open(self, epoch: int, leader: str, *others: str, base: int = 0, last: int = 0) -> None:
        """``leader`` recovers and opens; each of them accepts the epoch."""
        for node in (leader, *others):
            view = {"leader": leader, "members": list(VOTERS), "k": 2}
            self.add(node, "view_installed", epoch=epoch, seq=last, args=view)
            if node == leader:
                tail = [[seq, crc(seq)] for seq in range(base + 1, last + 1)]
                self.add(node, "recovered", epoch=epoch, args={"last": last, "base": base, "tail": tail})
            self.persisted(node, "open", epoch=epoch, seq=last)
            self.spoke(node, "Open" if node == leader else "Opened", epoch)
        if last:
            self.add(leader, "stable", epoch=epoch, seq=last)
        self.add(leader, "office", epoch=epoch, args={"phase": "open"})
        self.spoke(leader, "LeaderAlive", epoch)

    def order(self, epoch: int, seq: int, leader: str, *others: str) -> None:
        """One entry, ordered, held, stable and delivered by all of them."""
        self.add(leader, "ordered", epoch=epoch, seq=seq, crc=crc(seq), origin="d/1", n=seq)
        self.spoke(leader, "Order", epoch)
        for node in (leader, *others):
            self.persisted(node, "append", epoch=epoch, seq=seq)
            if node != leader:
                self.add(node, "held", epoch=epoch, seq=seq)
        self.add(leader, "stable", epoch=epoch, seq=seq)
        self.deliver(epoch, seq, leader, *others)

    def deliver(self, epoch: int, seq: int, *nodes: str) -> None:
        """An entry is applied."""
        for node in nodes:
            self.add(node, "delivered", epoch=epoch, seq=seq, crc=crc(seq), origin="d/1", n=seq)

    def acknowledge(self, node: str, epoch: int, kind: str = "AliveAck") -> None:
        """A leader commits itself."""
        self.add(node, "acknowledged", epoch=epoch, args={"kind": kind, "to": "d"})

    def lease(self, node: str, seconds: float) -> None:
        """A node's lease is good for so long from now, on its own clock."""
        self.add(node, "lease", args={"until": self.local(node) + seconds})

    def list_installed(
        self, epoch: int, version: int, up: tuple[str, ...], down: dict[str, int], at: tuple[str, ...]
    ) -> None:
        """Nodes take over the table of nodes."""
        table = {node: [self.inc[node], "up"] for node in up} | {node: [inc, "gone"] for node, inc in down.items()}
        for node in at:
            self.add(node, "list_installed", epoch=epoch, seq=version, args={"nodes": table})

    def invoke(self, client: str, op: str, *, node: str = "c", **args: Any) -> int:
        """A client asks; returns the number of the call."""
        self.calls += 1
        self.add(node, op, type="invoke", who=client, args={"id": self.calls, **args})
        return self.calls

    def end(self, client: str, op: str, call: int, type: EventType = "ok", *, node: str = "c", **result: Any) -> None:
        """A client is told."""
        self.add(node, op, type=type, who=client, args={"id": call}, result=result)


def honest() -> Lines:
    """The story of the module docstring."""
    s = Story()
    for node in ("a", "b", "c", "d"):
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    write = s.invoke("x", "config_set", key="k", value="x1", if_version=0)
    for seq in (1, 2, 3):
        s.order(1, seq, "a", "b", "c")
    s.acknowledge("a", 1, "Answered")
    s.end("x", "config_set", write, version=2)
    s.list_installed(1, 3, ("a", "b", "c", "d"), {}, ("a", "b", "c", "d"))
    s.lease("d", 2.0)
    s.acknowledge("a", 1)
    s.crash("d")
    look = s.invoke("y", "look_up", name="g", form=True)
    s.order(1, 4, "a", "b")  # c has not got it when a dies
    s.crash("a")
    s.wait(1.1)
    s.promise(2, "b", "c")
    s.open(2, "b", "c", base=3, last=4)
    s.deliver(2, 4, "c")
    s.acknowledge("b", 2, "Answered")
    s.end("y", "look_up", look, exists=True, formed=True, group=4, leader="c", epoch=4)
    s.wait(3.0)
    s.order(2, 5, "b", "c")
    s.add("b", "node_gone", epoch=2, seq=5, args={"name": "d", "inc": 1})
    read = s.invoke("x", "config_get", key="k")
    s.end("x", "config_get", read, value="x1", version=2)
    s.boot("a")
    for seq in (1, 2, 3, 4):
        s.deliver(1, seq, "a")
    s.add("a", "promise", epoch=2)
    s.add("a", "view_installed", epoch=2, seq=5, args={"leader": "b", "members": list(VOTERS), "k": 2})
    s.persisted("a", "open", epoch=2, seq=5)
    s.spoke("a", "Opened", 2)
    s.deliver(2, 5, "a")
    s.order(2, 6, "b", "a", "c")
    s.list_installed(2, 6, ("a", "b", "c"), {"d": 1}, ("a", "b", "c"))
    return s.lines


def red(lines: Lines, *, converged: bool = True, voters: tuple[str, ...] = VOTERS) -> set[str]:
    """The invariants that are broken."""
    return {violation.invariant for violation in check(lines, voters=voters, converged=converged)}


def find(lines: Lines, op: str, **wanted: Any) -> int:
    """Where the first line is that has all of ``wanted``."""
    for place, line in enumerate(lines):
        if line.op == op and all(getattr(line, name) == value for name, value in wanted.items()):
            return place
    raise LookupError(f"no {op} with {wanted}")


def changed(lines: Lines, place: int, **fields: Any) -> Lines:
    """The same lines with one of them different."""
    return renumbered([*lines[:place], msgspec.structs.replace(lines[place], **fields), *lines[place + 1 :]])


def without(lines: Lines, drop: Callable[[HistoryEvent], bool]) -> Lines:
    """The lines that are not dropped."""
    return renumbered([line for line in lines if not drop(line)])


def inserted(lines: Lines, place: int, *more: HistoryEvent) -> Lines:
    """The same lines with some more before ``place``."""
    return renumbered([*lines[:place], *more, *lines[place:]])


def renumbered(lines: Lines) -> Lines:
    """Numbers that grow by one again."""
    return [msgspec.structs.replace(line, i=place) for place, line in enumerate(lines)]
