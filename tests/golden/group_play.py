"""A run told for those who want to know about groups: their streams, and what the directory decides about them.

What the domain needs for itself (elections, leases, registrations, its own stream) is left out. The directory's stream
appears as what it orders, one line per entry:

   2.104 directory 12: ProposeView(id=10, base_epoch=10, leader=n4, servers=(n4/1, n5/1), k=2, by=n4/1)

Entries are shown by their contents, nodes as ``name/incarnation``, ``Held@10`` is about group 10, and fields that say
nothing are not shown. What is repeated word for word until it is answered (beats, claims, complaints) is
shown once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from groupsvc.testing.sim.transcript import Play
from groupsvcd.core.domain.commands import (
    ActivateView,
    ContinueGroup,
    DropGroup,
    FormGroup,
    NodeDown,
    NodeGone,
    ProposeView,
    decode_command,
)
from groupsvcd.core.nodegroups.controls import decode_control
from groupsvcd.core.peer_messages import (
    DOMAIN_STREAM,
    Ask,
    Beat,
    Claim,
    Complaint,
    Grant,
    GroupIs,
    Held,
    Open,
    Order,
    Orphan,
    PeerMessage,
    Repair,
    Seen,
    StreamMessage,
    Tell,
)
from groupsvcd.core.stream.entries import decode_entry, decode_reference, is_reference, one_by_one
from groupsvcd.core.views import View

if TYPE_CHECKING:
    from groupsvc.testing.sim.node import Node

DECISIONS = (NodeDown, NodeGone, FormGroup, ProposeView, ActivateView, ContinueGroup, DropGroup)
"""Commands of the directory that make or change views."""

REPEATED = (Beat, Held, Seen, Claim, Open, Grant, GroupIs, Complaint, Orphan)
"""What is said again and again until something changes."""

UNSAID = frozenset({"stream", "checkpoint"})
"""Fields that are told otherwise, or change nothing in any of these stories."""

OF_THE_NODE = frozenset({"crash", "restart", "pause", "resume", "halted", "isolated", "rejoined", "down_learned"})
OF_THE_GROUP = frozenset(
    {"promise", "granted", "view_installed", "recovered", "view_active", "view_left", "restored", "group_lost"}
)
"""Lines of the journal that no message and no word of a user shows already."""


class GroupPlay(Play):
    """Leaves out what only the domain is concerned with."""

    def __init__(self, write: Callable[[str], None], *, steady: bool = False) -> None:
        super().__init__(write, steady=steady)
        self._ordered: set[tuple[int, bytes]] = set()
        self._asked: dict[tuple[str, int], str] = {}
        self._has_begun = False  # while the domain forms, every node finds its first lease

    def begin(self) -> None:
        """The first user acts."""
        self._has_begun = True

    def user(self, t: float, node: str, group: str, text: str) -> None:
        """Something that a user of a group is told, or does."""
        self.line(f"{t:8.3f} {node} user of {group}: {text}")

    def sent(self, node: Node, peer: str, messages: Sequence[PeerMessage]) -> None:
        """A frame leaves; of the domain's stream only what is decided about groups is shown."""
        for message in messages:
            if isinstance(message, Order) and message.stream == DOMAIN_STREAM:
                self._tell_decisions(node.world.t, message)
        words = [self._shown(node.name, peer, message) for message in messages]
        told = ", ".join(word for word in words if word)
        if not told:
            return
        front = f"{node.world.t:8.3f} {node.name}"
        if (front, told) == (self._front, self._words):
            self._peers.append(peer)
            return
        self.release()
        self._front, self._peers, self._words = front, [peer], told

    def _tell_decisions(self, t: float, order: Order) -> None:
        for seq, entry in enumerate(one_by_one(order.entries), order.first_seq):
            command = decode_command(decode_entry(entry).body)
            if isinstance(command, DECISIONS) and (seq, entry) not in self._ordered:
                self._ordered.add((seq, entry))
                self.line(f"{t:8.3f} directory {seq}: {in_words(command)}")

    def _shown(self, name: str, peer: str, message: PeerMessage) -> str:
        if isinstance(message, Ask) and message.what == "find":
            self._asked[name, message.number] = message.key
            return f"Ask(find {message.key})"
        if isinstance(message, Tell):
            return self._told(self._asked.get((peer, message.number), ""), message)
        of_group = isinstance(message, StreamMessage) and message.stream != DOMAIN_STREAM
        if not of_group and not isinstance(message, Complaint | Orphan):
            return ""
        words = in_words(message)
        if isinstance(message, REPEATED) and not self.steady and not self._is_first(name, peer, "said", words):
            return ""
        return words

    @staticmethod
    def _told(key: str, tell: Tell) -> str:
        if not key:
            return ""
        record = tell.answer.get("group")
        if record is None:
            return f"Tell(no group {key})"
        return f"Tell({key} is group {record['id']}, led by {record['active']['leader']})"

    def happened(self, node: Node, op: str, group: int, epoch: int, seq: int, args: dict[str, Any]) -> None:
        """A node did something."""
        if op == "office" and args.get("phase") in ("open", "left"):
            text = "is name server" if args["phase"] == "open" else "leaves office"
            self.line(f"{node.world.t:8.3f} {node.name} {text}, epoch {epoch}")
        elif (op in OF_THE_GROUP and group) or (op in OF_THE_NODE and self._has_begun):
            shown = {name: value for name, value in args.items() if name != "tail"}
            super().happened(node, op, group, epoch, seq, shown)


def in_words(value: Any) -> str:
    """A value, for people who know the protocol."""
    if isinstance(value, Order | Repair):
        return _with_entries(value)
    if isinstance(value, View):
        words = f"epoch {value.epoch}: {in_words(value.servers)} led by {value.leader}, k {value.k}"
        return f"<{words}, forced>" if value.forced else f"<{words}>"
    if isinstance(value, StreamMessage):
        return f"{type(value).__name__}@{value.stream}({_fields_in_words(value)})"
    if isinstance(value, msgspec.Struct):
        return f"{type(value).__name__}({_fields_in_words(value)})"
    if isinstance(value, bytes):
        return f'"{value.decode()}"' if value.isascii() and value.decode().isprintable() else f"<{len(value)} bytes>"
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int):
        return f"{value[0]}/{value[1]}"
    if isinstance(value, tuple | list):
        return "(" + ", ".join(in_words(item) for item in value) + ")"
    return str(value)


def _fields_in_words(struct: msgspec.Struct) -> str:
    parts = []
    for field in msgspec.structs.fields(type(struct)):
        value = getattr(struct, field.name)
        if field.name not in UNSAID and value != field.default and value != ():
            parts.append(f"{field.name}={in_words(value)}")
    return ", ".join(parts)


def _with_entries(message: Order | Repair) -> str:
    entries = ", ".join(map(entry_in_words, one_by_one(message.entries)))
    fields = _fields_in_words(msgspec.structs.replace(message, entries=()))
    return f"{type(message).__name__}@{message.stream}({fields}, entries=({entries}))"


def entry_in_words(entry: bytes) -> str:
    """What somebody submitted as ``n4/1 #3 "text"``, what a leader ordered itself by its name."""
    if is_reference(entry):
        large = decode_reference(entry)
        return f"{large.origin}/{large.incarnation} #{large.n} <{large.size} bytes elsewhere>"
    parts = decode_entry(entry)
    if not parts.origin:
        return in_words(decode_control(parts.body))
    return f"{parts.origin}/{parts.incarnation} #{parts.n} {in_words(parts.body)}"
