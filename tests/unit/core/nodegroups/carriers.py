"""Real engines that carry a group, by hand: who joins, submits, leaves, dies or is cut off, and what users are told.

A, B and C are the voters, and A is name server; the group lives on D, E, F and G, so that what happens to it happens to
it alone:

    nodes = Carriers.with_group("DEF")       # D leads, E and F serve with it
    nodes.submit("E", "red")
    nodes.run(0.1)
    assert ["red"] == nodes.texts("F")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from groupsvcd.core.domain.groups import Group
from groupsvcd.core.events import LocalCall
from groupsvcd.core.nodegroups.group_status import GroupStatus
from groupsvcd.core.nodegroups.leading import Leading
from groupsvcd.core.nodegroups.node_group import NodeGroup
from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.nodegroups.seat import Seat
from groupsvcd.core.peer_messages import PeerMessage
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import AttributeValue, NodeId
from tests.unit.core.trio import Trio

GROUP = "jobs"


class Witness:
    """A user, member or stranger, that remembers what it was told."""

    def __init__(self) -> None:
        self.joined_at: list[int] = []
        self.members: tuple[NodeId, ...] = ()
        self.entries: list[tuple[int, Entry]] = []
        self.losses: list[str] = []
        self.accepted_upto = 0
        self.failures: list[str] = []

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """From here on everything is delivered."""
        self.joined_at.append(seq)
        self.members = members
        self._next = seq + 1

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next ones: none is skipped and none comes twice."""
        assert first_seq == self._next, (first_seq, self._next)
        assert entries
        self._next += len(entries)
        self.entries += enumerate(entries, first_seq)

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Who carries the group now."""
        assert seq < self._next
        self.members = members

    def lost(self, reason: str) -> None:
        """Nothing more comes."""
        self.losses.append(reason)

    def accepted(self, upto_n: int) -> None:
        """What was sent from outside is stable."""
        self.accepted_upto = upto_n

    def failed(self, reason: str) -> None:
        """Nothing more is known of what was sent from outside."""
        self.failures.append(reason)

    @property
    def texts(self) -> list[str]:
        """What other users submitted, in the order of delivery."""
        return [entry.body.decode() for _, entry in self.entries if entry.origin]

    @property
    def names(self) -> str:
        """The members' names, one letter each."""
        return "".join(name for name, _ in self.members)


class Carriers(Trio):
    """A domain, and a group on some of its nodes."""

    def __init__(self, voters: str = "ABC", others: str = "DEFG", **arguments: Any) -> None:
        super().__init__(voters, others, **arguments)
        self.users: dict[tuple[str, str], Witness] = {}

    @classmethod
    def with_group(
        cls, carriers: str, others: str = "DEFG", *, parameters: dict[str, Any] | None = None,
        **attributes: AttributeValue,
    ) -> Carriers:  # fmt: skip
        """A group that these nodes carry: the first leads, and up to three are servers."""
        nodes = cls(others=others, **(parameters or {}))
        nodes.boot(*nodes.names)
        nodes.run(2.0)
        nodes.assemble(carriers, **attributes)
        return nodes

    def assemble(self, carriers: str, **attributes: AttributeValue) -> None:
        """These nodes join one after the other, until everybody has its place."""
        for name in carriers:
            self.join(name, GROUP, **attributes)
            self.run(0.1)
        self.run(0.6)
        self.forget_the_past()

    # --- Users ---

    def act(self, node: str, action: Callable[[NodeGroups], None]) -> None:
        """A program inside the daemon does something."""
        groups = self.engines[node].groups
        self.step(node, LocalCall(lambda: action(groups)))

    def join(self, node: str, group: str = GROUP, **attributes: AttributeValue) -> Witness:
        """A user on this node takes part."""
        user = self.users[node, group] = Witness()
        self.act(node, lambda groups: groups.join(group, attributes, user))
        return user

    def leave(self, node: str, group: str = GROUP) -> None:
        """The user takes part no longer."""
        self.act(node, lambda groups: groups.leave(group, self.users[node, group]))

    def submit(self, node: str, *texts: str, group: str = GROUP) -> int:
        """The node submits; returns the number of the first, 0 if they were not taken."""
        first: list[int] = []
        self.act(node, lambda groups: first.append(groups.submit(group, [text.encode() for text in texts])))
        return first[0]

    def send(self, node: str, *texts: str, group: str = GROUP) -> bool:
        """Somebody on this node, which does not carry the group, submits."""
        stranger = self.users.setdefault((node, group), Witness())
        taken: list[bool] = []
        self.act(node, lambda groups: taken.append(groups.send(group, [text.encode() for text in texts], stranger)))
        return taken[0]

    def user(self, node: str, group: str = GROUP) -> Witness:
        """The newest user on this node."""
        return self.users[node, group]

    def texts(self, node: str, group: str = GROUP) -> list[str]:
        """What the newest user on this node was given."""
        return self.user(node, group).texts

    # --- Looking at it ---

    def about(self, node: str, group: str = GROUP) -> GroupStatus | None:
        """What the node says of the group."""
        found = [status for status in self.engines[node].groups.status() if status.name == group]
        return found[0] if found else None

    def roles(self, names: str, group: str = GROUP) -> list[str]:
        """What each of these nodes is in the group."""
        found = [self.about(name, group) for name in names]
        return ["none" if status is None else status.role for status in found]

    def part(self, node: str, group: str = GROUP) -> NodeGroup:
        """The node's part in the group, from the inside."""
        return self.engines[node].groups._by_name[group]

    def seat(self, node: str, group: str = GROUP) -> Seat:
        """Its place in the stream."""
        seat = self.part(node, group).seat
        assert seat is not None
        return seat

    def leading(self, node: str, group: str = GROUP) -> Leading:
        """What it does as leader."""
        leading = self.seat(node, group).leading
        assert leading is not None
        return leading

    def id(self, group: str = GROUP) -> int:
        """The group's id."""
        return self.record(group).id

    def record(self, group: str = GROUP) -> Group:
        """What the directory says of the group."""
        name_server = self.leaders[0]
        record = self.voter(name_server).directory.groups.named(group)
        assert record is not None, "there is no such group"
        return record

    def incarnation(self, node: str) -> int:
        """Of the node's process."""
        return self.engines[node].incarnation

    def node(self, name: str) -> NodeId:
        """The node as a member of groups."""
        return (name, self.incarnation(name))

    def lose(self, kind: type[PeerMessage] | tuple[type[PeerMessage], ...], links: str = "") -> None:
        """From now on these messages are lost, on these links ("D>E D>F") or everywhere."""
        pairs = {tuple(link.split(">")) for link in links.split()}
        before = self.loses

        def loses(sender: str, receiver: str, message: PeerMessage) -> bool:
            here = not pairs or (sender, receiver) in pairs
            return (here and isinstance(message, kind)) or before(sender, receiver, message)

        self.loses = loses

    def die(self, *names: str) -> None:
        """Processes end, and the name server and one more node find their ports closed."""
        self.kill(*names)
        observers = [name for name in self.names if name in self.engines]
        for name in names:
            self.refuse(name, *observers)
