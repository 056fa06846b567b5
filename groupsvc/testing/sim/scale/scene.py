"""The groups of a large world: who carries which, and whether all of them are told the same.

Programs run together, so groups do: the nodes beside the voters form *cells* of a few nodes each, and a group lives
within one. Its first member leads it, the first three serve it. The first node of the first cell, the *hub*, is in
every group of its cell.

No history is kept. Whoever is told an entry first says what it is, the others compare; what all have seen is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from groupsvcd.core.nodegroups.group_status import GroupStatus
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import NodeId

from .meter import MeteredWorld

CELL_NODES = 10
"""Nodes among which the groups of one application are spread."""

REMEMBERED_MAX = 200
"""Entries per group that late members can still be compared with; who is later than this is a failure."""

SIZES = (2, 3, 4)
"""Members of a group when it begins, in turn."""


class Listener:
    """One member: how far it was told, and that it was told the same as the others."""

    __slots__ = ("group", "is_in", "node", "reached")

    def __init__(self, group: Placed, node: str) -> None:
        self.group = group
        self.node = node
        self.reached = 0
        self.is_in = False

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """It is in."""
        self.group.id = group
        self.reached = seq
        self.is_in = True

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next entries, compared with what others were told."""
        if first_seq != self.reached + 1:
            self.group.broken(f"{self.node} is told {first_seq} after {self.reached}")
        for seq, entry in enumerate(entries, first_seq):
            self.group.told(self.node, seq, entry)
        self.reached = first_seq + len(entries) - 1

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Others came or went."""

    def lost(self, reason: str) -> None:
        """It is out."""
        self.is_in = False
        if reason != "left":
            self.group.broken(f"{self.node} has lost it: {reason}")


class Placed:
    """One group and where it is to be."""

    __slots__ = ("_crcs", "id", "listeners", "members", "name", "problems", "unseen")

    def __init__(self, name: str, members: list[str], problems: list[str]) -> None:
        self.name = name
        self.id = 0
        self.members = members
        self.listeners: dict[str, Listener] = {}
        self.problems = problems
        self.unseen: set[bytes] = set()  # submitted and not delivered anywhere yet
        self._crcs: dict[int, int] = {}

    def told(self, node: str, seq: int, entry: Entry) -> None:
        """A member was told an entry."""
        crc = crc32(b"%s %d %d %s" % (entry.origin.encode(), entry.incarnation, entry.n, entry.body))
        known = self._crcs.get(seq)
        if known is None:
            if self._crcs and seq < next(iter(self._crcs)):
                self.broken(f"{node} is told {seq}, which nobody remembers")
            self._crcs[seq] = crc
            self.unseen.discard(entry.body)
            if len(self._crcs) > REMEMBERED_MAX:
                del self._crcs[next(iter(self._crcs))]
        elif known != crc:
            self.broken(f"{node} is told another entry {seq} than others")

    def broken(self, text: str) -> None:
        """A promise was not kept."""
        self.problems.append(f"{self.name}: {text}")


class Scene:
    """All groups of a world."""

    def __init__(self, world: MeteredWorld, groups: int) -> None:
        self.world = world
        self.problems: list[str] = []
        self.bodies = 0
        carriers = [name for name in world.names if name not in world.voters]
        self.cells = [carriers[first : first + CELL_NODES] for first in range(0, len(carriers), CELL_NODES)]
        if len(self.cells) > 1 and len(self.cells[-1]) <= max(SIZES) + 1:
            last = self.cells.pop()
            self.cells[-1] += last
        self.hub = self.cells[0][0]
        self.groups = [self._place(number) for number in range(groups)]

    def _place(self, number: int) -> Placed:
        cell = self.cells[number % len(self.cells)]
        turn = number // len(self.cells)
        size = SIZES[turn % len(SIZES)]
        members = [cell[(turn + position) % len(cell)] for position in range(size)]
        if cell is self.cells[0] and self.hub not in members:
            members[turn % size] = self.hub
        return Placed(f"g{number}", members, self.problems)

    def place_alone(self, number: int) -> Placed:
        """One more group, with a single member."""
        cell = self.cells[number % len(self.cells)]
        return Placed(f"g{number}", [cell[1 + number % (len(cell) - 1)]], self.problems)

    def spare(self, group: Placed) -> str:
        """A node of the group's cell that is not in it, and is not the hub."""
        cell = next(cell for cell in self.cells if group.members[0] in cell)
        return next(name for name in cell if name not in group.members and name != self.hub)

    # --- Deeds ---

    def join(self, group: Placed, name: str) -> None:
        """A program on this node takes part."""
        node = self.world.nodes[name]
        groups = node.groups
        assert groups is not None
        listener = group.listeners[name] = Listener(group, name)
        if name not in group.members:
            group.members.append(name)
        node.call(lambda: groups.join(group.name, {}, listener))

    def leave(self, group: Placed, name: str) -> None:
        """And no longer."""
        node = self.world.nodes[name]
        groups = node.groups
        assert groups is not None
        listener = group.listeners.pop(name)
        group.members.remove(name)
        node.call(lambda: groups.leave(group.name, listener))

    def submit(self, group: Placed, name: str, size: int) -> None:
        """A message that nobody has sent before."""
        node = self.world.nodes[name]
        groups = node.groups
        assert groups is not None
        self.bodies += 1
        body = (b"%d " % self.bodies).ljust(size, b".")
        group.unseen.add(body)

        def submit() -> None:
            if not groups.submit(group.name, [body]):
                group.broken(f"{name} could not submit")

        node.call(submit)

    def died(self, name: str) -> None:
        """The node is dead, and with it all programs on it."""
        for group in self.groups:
            if name in group.listeners:
                del group.listeners[name]
                group.members.remove(name)

    # --- The end ---

    def check(self) -> list[str]:
        """Everything that is not as it should be: one leader, one list, the same entries everywhere."""
        found = list(self.problems)
        statuses: dict[str, dict[str, GroupStatus]] = {}
        for name, node in self.world.nodes.items():
            if node.groups is not None:
                for status in node.groups.status():
                    statuses.setdefault(status.name, {})[name] = status
        for group in self.groups:
            found += _problems_of(group, statuses.pop(group.name, {}))
        found += [f"{name} is carried by {', '.join(of)} and should not be" for name, of in statuses.items()]
        return found


def _problems_of(group: Placed, statuses: dict[str, GroupStatus]) -> list[str]:
    found: list[str] = []
    if sorted(statuses) != sorted(group.members):
        found.append(f"is carried by {sorted(statuses)}, not by {sorted(group.members)}")
    leaders = [name for name, status in statuses.items() if status.role == "leader"]
    if len(leaders) != 1:
        found.append(f"has the leaders {leaders}")
    lists = {tuple(name for name, _ in status.members) for status in statuses.values()}
    if len(lists) != 1 or {tuple(sorted(one)) for one in lists} != {tuple(sorted(group.members))}:
        found.append(f"has the members {sorted(lists)}, not {group.members}")
    ends = {
        (status.last, status.stable, status.delivered, status.epoch, status.servers) for status in statuses.values()
    }
    if len(ends) != 1:
        found.append(f"does not stand at one place: {sorted(ends)}")
    if {listener.reached for listener in group.listeners.values()} != {end[2] for end in ends}:
        found.append("has members that were not told everything")
    if group.unseen:
        found.append(f"never delivered {len(group.unseen)} messages")
    return [f"{group.name} {text}" for text in found]
