"""Which nodes there are: name → newest incarnation and whether it is up, down or gone.

A starts as incarnation 1 and is *up*. It stops answering: the name server orders that A/1 is *down*, and
from then on nobody acknowledges it. That does not mean that A/1 knows. Once its lease must have run out by
its own clock as well, A/1 is *gone*, and things may be given away.

A may come back as A/2 before A/1 is gone. Its line then shows A/2, up, and A/1 is kept as a *former*
incarnation until it is gone too; otherwise A's quick restart would look as if A/1 were gone already. If A/2
shows the state directory of A/1, which a living process would have locked, A/1 is gone at once.

An incarnation never comes back: who was declared down goes on under a higher one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from groupsvc.wire.limits import NODE_NAME_BYTES_MAX

from ..peer_messages import NodeEntry
from ..views import NodeId
from .commands import NodeUp, shown
from .limits import ADDRESS_CHARS_MAX, FORMER_INCARNATIONS_MAX, NODES_MAX, STATE_ID_CHARS_MAX

UP = "up"
DOWN = "down"
GONE = "gone"

NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class Node(msgspec.Struct, frozen=True, array_like=True):
    """One line of the table. ``former`` are (incarnation, state id) that are down and not yet gone."""

    name: str
    incarnation: int
    status: str
    state_id: str
    address: str
    voter: bool
    changed: int
    former: tuple[tuple[int, str], ...] = ()
    pinned: bool = False
    priority: int = 0

    def entry(self) -> NodeEntry:
        """The line as it is told to other nodes."""
        return NodeEntry(
            name=self.name,
            incarnation=self.incarnation,
            status=self.status,
            address=self.address,
            state_id=self.state_id,
            voter=self.voter,
            changed=self.changed,
            pinned=self.pinned,
            priority=self.priority,
        )

    def as_answer(self) -> dict[str, Any]:
        """The line as plain data."""
        return {
            "name": self.name,
            "incarnation": self.incarnation,
            "status": self.status,
            "state_id": self.state_id,
            "address": self.address,
            "voter": self.voter,
            "changed": self.changed,
            "former": [incarnation for incarnation, _ in self.former],
        }


def problem_with_name(name: str) -> str:
    """Why this can be no node's name, or ""."""
    if 1 <= len(name) <= NODE_NAME_BYTES_MAX and NAME_CHARACTERS.issuperset(name):
        return ""
    return f"node name {shown(name)} must be 1 to {NODE_NAME_BYTES_MAX} of the characters A-Z a-z 0-9 . _ -"


class NodeTable:
    """All lines, and the version of the list: the number of the entry that last changed it."""

    def __init__(self, nodes: tuple[Node, ...] = (), version: int = 0) -> None:
        self.version = version
        # The last changed comes last, so that what has changed lately is found without looking at all.
        self._nodes = {node.name: node for node in sorted(nodes, key=lambda node: node.changed)}
        self._by_name: tuple[Node, ...] | None = None

    def get(self, name: str) -> Node | None:
        """The line of ``name``."""
        return self._nodes.get(name)

    def all(self) -> tuple[Node, ...]:
        """Every line, by name."""
        if self._by_name is None:
            self._by_name = tuple(self._nodes[name] for name in sorted(self._nodes))
        return self._by_name

    def changed_since(self, version: int) -> list[Node]:
        """Every line that changed after ``version``, by name."""
        found: list[Node] = []
        for node in reversed(self._nodes.values()):
            if node.changed <= version:
                break
            found.append(node)
        return sorted(found, key=lambda node: node.name)

    def is_up(self, node_id: NodeId) -> bool:
        """Whether this very incarnation is up."""
        node = self._nodes.get(node_id[0])
        return node is not None and node.status == UP and node.incarnation == node_id[1]

    def is_gone(self, node_id: NodeId) -> bool:
        """Whether this incarnation certainly acts no more. Lines are dropped only when all of them is gone."""
        name, incarnation = node_id
        node = self._nodes.get(name)
        if node is None:
            return True
        if incarnation == node.incarnation:
            return node.status == GONE
        return incarnation < node.incarnation and all(incarnation != former for former, _ in node.former)

    def problem_with(self, command: NodeUp) -> str:
        """Why this incarnation cannot come up, or ""."""
        if problem := problem_with_name(command.name):
            return problem
        if command.incarnation < 1:
            return f"incarnation {command.incarnation} of {command.name} must be at least 1"
        if len(command.address) > ADDRESS_CHARS_MAX or len(command.state_id) > STATE_ID_CHARS_MAX:
            return (
                f"address or state id of {command.name} is too long:"
                f" at most {ADDRESS_CHARS_MAX} and {STATE_ID_CHARS_MAX} characters"
            )
        node = self._nodes.get(command.name)
        if node is None:
            if len(self._nodes) >= NODES_MAX and self._longest_gone() is None:
                return f"the domain has {NODES_MAX} nodes, none of them gone: no more fit"
            return ""
        if command.incarnation <= node.incarnation:
            return (
                f"incarnation {command.incarnation} of {command.name} is not above the last known one,"
                f" {node.incarnation}, which is {node.status}"
            )
        if len(node.former) >= FORMER_INCARNATIONS_MAX:
            return f"{command.name} has {len(node.former)} incarnations that are not yet gone; try again later"
        return ""

    def up(self, command: NodeUp, seq: int) -> None:
        """The incarnation is up; an older one that is not gone becomes a former one, and is at least down."""
        known = self._nodes.get(command.name)
        former: tuple[tuple[int, str], ...] = ()
        if known is not None:
            former = known.former if known.status == GONE else (*known.former, (known.incarnation, known.state_id))
            if command.state_id:
                former = tuple(line for line in former if line[1] != command.state_id)
        elif len(self._nodes) >= NODES_MAX and (gone := self._longest_gone()) is not None:
            del self._nodes[gone.name]
        node = Node(
            name=command.name,
            incarnation=command.incarnation,
            status=UP,
            state_id=command.state_id,
            address=command.address,
            voter=command.voter,
            changed=seq,
            former=former,
            pinned=command.pinned,
            priority=command.priority,
        )
        self._put(node, seq)

    def down(self, node: Node, seq: int) -> None:
        """The incarnation that was up is down."""
        self._put(msgspec.structs.replace(node, status=DOWN, changed=seq), seq)

    def gone(self, node: Node, incarnation: int, seq: int) -> None:
        """The present incarnation or a former one is gone."""
        if incarnation == node.incarnation:
            self._put(msgspec.structs.replace(node, status=GONE, changed=seq), seq)
        else:
            former = tuple(line for line in node.former if line[0] != incarnation)
            self._put(msgspec.structs.replace(node, former=former, changed=seq), seq)

    def not_gone(self) -> tuple[NodeId, ...]:
        """Every incarnation that is down and for which NodeGone is still to be ordered."""
        found: list[NodeId] = []
        for node in self.all():
            found.extend((node.name, incarnation) for incarnation, _ in node.former)
            if node.status == DOWN:
                found.append((node.name, node.incarnation))
        return tuple(found)

    def _put(self, node: Node, seq: int) -> None:
        self._nodes.pop(node.name, None)
        self._nodes[node.name] = node
        self._by_name = None
        self.version = seq

    def _longest_gone(self) -> Node | None:
        """Whose line can make room: gone altogether, no voter, and unchanged for the longest time."""
        spare = [node for node in self._nodes.values() if node.status == GONE and not node.former and not node.voter]
        return min(spare, key=lambda node: (node.changed, node.name), default=None)
