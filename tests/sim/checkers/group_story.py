"""Small honest histories of a group, told line by line, to be broken in one place.

``honest_group()``: the voters a, b, c look on while d forms group 7, e and f join it, and the three become its servers
(epoch 12, two must hold an entry). d dies with an entry that only e has got; e takes over with f (epoch 20) and
delivers it; d comes back as another incarnation and joins again. Programs at e and f submit all the while.

``forced_group()``: the same beginning, but d and e are gone for good with entries 8 and 9 delivered; f goes on without
them (epoch 30, forced), and g, which had delivered 8, has to begin anew.
"""

from __future__ import annotations

from typing import Any

from .story import Lines, Story

GROUP = 7
NAME = "jobs"
VOTERS = ("a", "b", "c")
Servers = dict[str, int]


def crc(seq: int, epoch: int = 0) -> int:
    """The CRC of the honest entry ``seq``; another one for an entry that replaces it."""
    return 0xE00000 + 0x1000 * epoch + seq


class GroupStory(Story):
    """Writes the lines of group 7, in a domain that does nothing else."""

    def __init__(self, *nodes: str) -> None:
        super().__init__()
        for node in (*VOTERS, *nodes):
            self.boot(node)
        self.promise(1, "a", "b", "c")
        self.open(1, "a", "b", "c")
        for seq in range(1, 4):
            self.order(1, seq, "a", "b", "c")
        self.entries: dict[int, tuple[int, str, int]] = {}  # number -> CRC, origin, n
        self.sent: dict[str, int] = {}
        self.waiting: list[tuple[str, str, int, int]] = []

    def end_well(self, *running: str) -> Lines:
        """Everybody has the list of who is up; that is the end."""
        up = (*VOTERS, *running)
        self.list_installed(1, 3, up, {}, up)
        return self.lines

    def line(self, node: str, op: str, epoch: int = 0, seq: int = 0, **fields: Any) -> None:
        """A line of the group."""
        self.add(node, op, group=GROUP, epoch=epoch, seq=seq, **fields)

    # --- Views ---

    def activate(
        self, epoch: int, leader: str, servers: Servers, k: int, *, base: int, forced: bool = False, fence: int = 0
    ) -> None:
        """The directory has confirmed the view."""
        named = [[name, inc] for name, inc in servers.items()]
        args = {
            "leader": leader,
            "servers": named,
            "k": k,
            "base": base,
            "forced": forced,
            "fence": fence or epoch << 20,
        }
        self.line(leader, "view_active", epoch, args=args)

    def promise_group(self, epoch: int, *nodes: str) -> None:
        """Servers promise."""
        for node in nodes:
            self.line(node, "promise", epoch)
            self.line(node, "spoke", epoch, args={"kind": "Promised"})

    def recover(
        self, epoch: int, leader: str, servers: Servers, k: int, *, base: int, known: int, last: int,
        forced: bool = False, ask: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """From the promises to the activation; ``known`` is what the leader knew to be stable."""
        self.promise_group(epoch, *(ask or tuple(servers)))
        self.line(leader, "spoke", epoch, args={"kind": "Claim"})
        for node in (leader, *(name for name in servers if name != leader)):
            args = {"leader": leader, "members": list(servers), "k": k, "forced": forced, "base": base}
            self.line(node, "view_installed", epoch, last, args=args)
            if node == leader:
                tail = [[seq, self.entries[seq][0]] for seq in range(known + 1, last + 1)]
                self.line(leader, "recovered", epoch, last, args={"base": known, "last": last, "tail": tail})
        self.activate(epoch, leader, servers, k, base=base, forced=forced)
        if last:
            self.line(leader, "stable", epoch, last)

    # --- Entries ---

    def submit(self, node: str, who: str) -> tuple[str, int]:
        """A program submits; returns (origin, n)."""
        origin = f"{node}/{self.inc[node]}"
        n = self.sent[origin] = self.sent.get(origin, 0) + 1
        self.calls += 1
        self.waiting.append((who, node, n, self.calls))
        self.line(node, "submit", type="invoke", who=who, n=n, crc=0xF000 + self.calls,
                  args={"id": self.calls, "name": NAME})  # fmt: skip
        return origin, n

    def order_one(
        self, epoch: int, seq: int, leader: str, holders: tuple[str, ...], to: tuple[str, ...],
        message: tuple[str, int] = ("", 0),
    ) -> None:  # fmt: skip
        """An entry is ordered, held by ``holders`` beside the leader, stable, and delivered by ``to``."""
        origin, n = message
        replaced = seq in self.entries
        call = next((0xF000 + c for _, node, m, c in self.waiting if (f"{node}/{self.inc[node]}", m) == message), 0)
        self.entries[seq] = (call or crc(seq, epoch if replaced else 0), origin, n)
        self.line(leader, "ordered", epoch, seq, crc=self.entries[seq][0], origin=origin, n=n)
        self.line(leader, "spoke", epoch, args={"kind": "Order"})
        for node in (leader, *holders):
            self.line(node, "held", epoch, seq)
        self.line(leader, "stable", epoch, seq)
        self.hand_up(epoch, seq, *to)

    def hand_up(self, epoch: int, seq: int, *nodes: str) -> None:
        """Nodes deliver; the submitter's program is told."""
        entry, origin, n = self.entries[seq]
        for node in nodes:
            self.line(node, "delivered", epoch, seq, crc=entry, origin=origin, n=n)
            for waiting in list(self.waiting):
                who, where, m, call = waiting
                if (where, f"{where}/{self.inc[where]}", m) == (node, origin, n):
                    self.waiting.remove(waiting)
                    self.line(node, "submit", type="ok", who=who, n=n, args={"id": call, "name": NAME},
                              result={"seq": seq})  # fmt: skip

    def list_changes(self, epoch: int, seq: int, members: Servers, *at: str) -> None:
        """Members deliver a change of the list."""
        for node in at:
            self.line(node, "members", epoch, seq, args={"members": [[name, inc] for name, inc in members.items()]})

    def begin(self, node: str, who: str, epoch: int, seq: int) -> None:
        """A node is let in with the state after an entry."""
        self.calls += 1
        self.add(node, "join", type="invoke", who=who, args={"id": self.calls, "name": NAME})
        if seq:
            self.line(node, "restored", epoch, seq)
        self.line(node, "joined", epoch, seq)
        self.line(node, "join", type="ok", who=who, args={"id": self.calls, "name": NAME}, result={"group": GROUP})

    # --- The common beginning ---

    def form(self) -> None:
        """d forms the group."""
        self.activate(7, "d", {"d": 1}, 1, base=0)
        self.order_one(7, 1, "d", (), ("d",))
        self.order_one(7, 2, "d", (), ("d",))
        self.list_changes(7, 2, {"d": 1}, "d")
        self.begin("d", "user-d", 7, 0)

    def let_in(self, epoch: int, seq: int, leader: str, holders: tuple[str, ...], node: str, members: Servers) -> None:
        """The leader orders the change of the list; those who follow deliver it, the newcomer begins behind it."""
        others = tuple(name for name in members if name != node)
        self.order_one(epoch, seq, leader, holders, others)
        self.list_changes(epoch, seq, members, *others)
        self.begin(node, f"user-{node}", epoch, seq)
        self.list_changes(epoch, seq, members, node)

    def three_servers(self) -> None:
        """d forms the group, e and f join, epoch 12 makes them its servers."""
        self.form()
        self.let_in(7, 3, "d", (), "e", {"d": 1, "e": 1})
        self.let_in(7, 4, "d", (), "f", {"d": 1, "e": 1, "f": 1})
        self.recover(12, "d", {"d": 1, "e": 1, "f": 1}, 2, base=7, known=4, last=4, ask=("d",))
        self.order_one(12, 5, "d", ("e",), ("d", "e", "f"))


def honest_group() -> Lines:
    """The first story of the module docstring."""
    s = GroupStory("d", "e", "f")
    s.three_servers()
    first, second = s.submit("e", "user-e"), s.submit("f", "user-f")
    s.order_one(12, 6, "d", ("e", "f"), ("d", "e", "f"), first)
    s.order_one(12, 7, "d", ("f",), ("d", "e", "f"), second)
    third = s.submit("e", "user-e")
    s.order_one(12, 8, "d", ("e",), ("d",), third)  # neither e nor f has heard that it is stable
    s.crash("d")
    s.wait(1.0)
    s.recover(20, "e", {"e": 1, "f": 1}, 2, base=12, known=7, last=8)
    s.hand_up(20, 8, "e", "f")
    s.order_one(20, 9, "e", ("f",), ("e", "f"))
    s.order_one(20, 10, "e", ("f",), ("e", "f"))
    s.list_changes(20, 10, {"e": 1, "f": 1}, "e", "f")
    s.boot("d")
    s.let_in(20, 11, "e", ("f",), "d", {"e": 1, "f": 1, "d": 2})
    s.order_one(20, 12, "e", ("f",), ("e", "f", "d"), s.submit("f", "user-f"))
    return s.end_well("d", "e", "f")


def forced_group(*, told: bool = True) -> Lines:
    """The second story; ``told``: g is told that what it delivered is lost."""
    s = GroupStory("d", "e", "f", "g")
    s.three_servers()
    s.let_in(12, 6, "d", ("e", "f"), "g", {"d": 1, "e": 1, "f": 1, "g": 1})
    s.order_one(12, 7, "d", ("f",), ("d", "e", "f", "g"))
    s.order_one(12, 8, "d", ("e",), ("d", "e", "g"))
    s.order_one(12, 9, "d", ("e",), ("d", "e"))
    s.crash("d")
    s.crash("e")
    for name in ("d", "e"):
        s.add("a", "node_gone", epoch=1, seq=3, args={"name": name, "inc": 1})
    s.recover(30, "f", {"f": 1}, 1, base=12, known=7, last=7, forced=True)
    if told:
        s.line("g", "group_lost", 12, 8, args={"reason": "its entries are lost"})
    s.order_one(30, 8, "f", (), ("f",))
    s.order_one(30, 9, "f", (), ("f",))
    s.list_changes(30, 9, {"f": 1}, "f")
    if told:
        s.let_in(30, 10, "f", (), "g", {"f": 1, "g": 1})
    else:
        s.order_one(30, 10, "f", (), ("f", "g"))
    return s.end_well("f", "g")
