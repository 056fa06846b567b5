"""What a large world costs: every message counted where it is sent, by kind, by node, by operation.

The engines are those of production and the frames are real bytes; only what a thousand nodes cannot afford is left out:
no history is kept, and nothing is wrong with the network. A multicast counts once for each node that hears it: that is
what the publisher's sockets send.
"""

from __future__ import annotations

from typing import Any

import attrs

from groupsvc.wire import frames
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.effects import Journal
from groupsvcd.core.peer_messages import DOMAIN_STREAM, PEER_CODEC, PeerMessage, StreamMessage

from ..network import DIRECT, Network, Packet
from ..node import Node
from ..world import World

Counts = dict[str, list[int]]
"""Kind → [messages, bytes of their bodies]."""


_kinds: dict[tuple[type[PeerMessage], bool], str] = {}


def kind_of(message: PeerMessage) -> str:
    """Its name; what is about the directory's own stream is told apart from what is about a group's."""
    kind = type(message)
    key = (kind, isinstance(message, StreamMessage) and message.stream == DOMAIN_STREAM)
    found = _kinds.get(key)
    if found is None:
        found = _kinds[key] = f"{kind.__name__} (directory)" if key[1] else kind.__name__
    return found


class Parcel(Packet):
    """A frame that knows what is in it: (kind, bytes, group) of each message."""

    __slots__ = ("content",)

    def __init__(self, frame: bytes, topic: bytes, content: list[tuple[str, int, int]]) -> None:
        super().__init__(frame, topic)
        self.content = content


@attrs.define
class Load:
    """What one node sent and received."""

    frames_sent: int = 0
    messages_sent: int = 0
    bytes_sent: int = 0
    frames_received: int = 0
    messages_received: int = 0
    bytes_received: int = 0


class Meter:
    """The counts since the last look."""

    def __init__(self) -> None:
        self.watched: set[int] = set()  # groups whose messages are counted apart, too
        self.start()

    def start(self) -> None:
        """Count from here on."""
        self.kinds: Counts = {}
        self.of_watched: Counts = {}
        self._loads: dict[str, list[int]] = {}

    def load(self, name: str) -> Load:
        """What one node had to do."""
        return Load(*self._loads.get(name, ()))

    def count(self, source: str, target: str, parcel: Parcel) -> None:
        """A frame is on its way."""
        loads, content = self._loads, parcel.content
        size, count = len(parcel.frame), len(content)
        sender = loads.get(source)
        if sender is None:
            sender = loads[source] = [0] * 6
        sender[0] += 1
        sender[1] += count
        sender[2] += size
        receiver = loads.get(target)
        if receiver is None:
            receiver = loads[target] = [0] * 6
        receiver[3] += 1
        receiver[4] += count
        receiver[5] += size
        kinds, watched = self.kinds, self.watched
        for kind, length, stream in content:
            found = kinds.get(kind)
            if found is None:
                found = kinds[kind] = [0, 0]
            found[0] += 1
            found[1] += length
            if stream in watched:
                found = self.of_watched.setdefault(kind, [0, 0])
                found[0] += 1
                found[1] += length


class MeteredNetwork(Network):
    """Links without faults that count."""

    def __init__(self, world: World, *arguments: Any) -> None:
        super().__init__(world, *arguments)
        self.meter = Meter()

    def send(self, source: str, target: str, packet: Packet, at: float) -> None:
        """Count it and carry it."""
        assert isinstance(packet, Parcel)
        self.meter.count(source, target, packet)
        if self.sieve is None or not self.sieve(source, target, packet):
            self._carry(self.link(source, target), packet, at)


class MeteredNode(Node):
    """A machine whose history nobody writes down."""

    __slots__ = ()

    def _flush(self, outgoing: dict[str | bytes, list[PeerMessage]], at: float) -> None:
        world, engine = self.world, self.engine
        if engine is None:
            return
        network = world.network
        for target, messages in outgoing.items():
            body = PEER_CODEC.encode(messages)  # type: ignore[arg-type]
            frame = frames.pack(FrameKind.PEER, engine.domain, self.name_bytes, engine.incarnation, body)
            content = [(kind_of(message), _size(message, messages, body), _stream(message)) for message in messages]
            if isinstance(target, bytes):
                parcel = Parcel(frame, target, content)
                for listener, since in network.audiences.of(self.name, target):
                    if since <= at:
                        network.send(self.name, listener, parcel, at)
                continue
            address = self.addresses.get(target)
            reached = world.at_address.get(address) if address is not None else None
            if reached is None or reached is self:
                world.unroutable += 1
            else:
                network.send(self.name, reached.name, Parcel(frame, DIRECT, content), at)

    def journal(self, effect: Journal) -> None:
        """Only marks are worth keeping."""
        if effect.op == "mark":
            name, marks = effect.args["name"], self.world.marks
            marks[name] = marks.get(name, 0) + 1

    def line(self, op: str, args: dict[str, Any], *, group: int = 0, epoch: int = 0, seq: int = 0) -> None:
        """Nobody reads it."""


def _size(message: PeerMessage, messages: list[PeerMessage], body: bytes) -> int:
    return len(body) - 1 if len(messages) == 1 else len(PEER_CODEC.encode([message])) - 1  # type: ignore[list-item]


def _stream(message: PeerMessage) -> int:
    return message.stream if isinstance(message, StreamMessage) else 0


class MeteredWorld(World):
    """A world that counts."""

    make_network = MeteredNetwork
    make_node = MeteredNode

    @property
    def meter(self) -> Meter:
        """The counts."""
        assert isinstance(self.network, MeteredNetwork)
        return self.network.meter
