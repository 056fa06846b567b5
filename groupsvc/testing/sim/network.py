"""The simulated network: links with delays and a bad temper.

Every ordered pair of nodes has a link of its own, so that A may reach B while B cannot reach A. A link keeps
its order unless told otherwise, as TCP does; a troubled one loses, repeats, overtakes, garbles, or keeps a
frame for many seconds, which is how a message of a dead epoch comes back. Frames are the real bytes: packed
on one side, checked and decoded on the other.

What A multicasts and what it sends to B alone travel over two connections, as in the daemon: each keeps its own
order, and one may overtake the other.

A cut link *drops* what is sent while it is cut, or *holds* it until it heals (a connection that stalls and
recovers). What is already under way arrives in either case. Cuts are counted, so faults may overlap.

Every frame is counted where it is sent, by link and topic, so that a test can show who exchanges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from heapq import heappush
from typing import TYPE_CHECKING

import attrs

from groupsvc.errors import PeerProtocolError
from groupsvc.wire import frames
from groupsvcd.core.events import PeerFrame
from groupsvcd.core.peer_messages import PEER_CODEC, Answered, Canvass, Grant, Register, Tell

from .audiences import Audiences

if TYPE_CHECKING:
    from .node import Node
    from .world import World

HELD_FRAMES_MAX = 1_000
"""What a stalled connection keeps; a socket's high-water mark drops the rest."""

_WITH_DICTS = frozenset({Answered, Canvass, Grant, Register, Tell})


@attrs.frozen(kw_only=True)
class Weather:
    """What every link of a world is like: seconds, and probabilities per frame."""

    delay_min: float = 0.0002
    delay_spread: float = 0.002
    loss: float = 0.0
    repeat: float = 0.0
    overtake: float = 0.0
    garble: float = 0.0
    late: float = 0.0
    late_s_max: float = 30.0


CALM = Weather()


DIRECT = b""
"""In the place of a topic: what is for one node alone."""


class Packet:
    """A frame under way; decoded once, however many receive it."""

    __slots__ = ("event", "frame", "topic")

    def __init__(self, frame: bytes, topic: bytes = DIRECT) -> None:
        self.frame = frame
        self.topic = topic
        self.event: PeerFrame | None = None

    def open(self) -> PeerFrame | None:
        """The event for a receiver, or None if the frame must be refused."""
        if self.event is not None:
            return self.event
        try:
            frame = frames.unpack(self.frame)
        except PeerProtocolError:
            return None
        messages = PEER_CODEC.decode(frame.body)
        event = PeerFrame(frame.sender, frame.incarnation, frame.domain, messages)
        # Receivers may share what cannot be changed; a message with a dictionary in it is decoded for each.
        for message in messages:
            if type(message) in _WITH_DICTS:
                return event
        self.event = event
        return event


@attrs.define
class Traffic:
    """What was sent over one link on one topic, or directly; lost frames are counted, too."""

    frames: int = 0
    bytes: int = 0


class Link:
    """One direction between two nodes: a connection for frames to this node alone, another for multicasts."""

    __slots__ = ("cuts", "held", "holding", "last_arrival", "last_multicast", "target", "traffic")

    def __init__(self, target: Node) -> None:
        self.target = target
        self.cuts = 0
        self.holding = 0
        self.held: list[Packet] = []
        self.last_arrival = 0.0
        self.last_multicast = 0.0
        self.traffic: dict[bytes, Traffic] = {}


class Network:
    """All links, made when first used."""

    def __init__(self, world: World, rng: random.Random, weather: Weather) -> None:
        self.world = world
        self.rng = rng
        self.links: dict[str, dict[str, Link]] = {}
        self.audiences = Audiences(world)
        self.frames_refused = 0
        self.sieve: Callable[[str, str, Packet], bool] | None = None  # drops what it says True to; for scripts
        self.set_weather(weather)

    def set_weather(self, weather: Weather) -> None:
        """Change what all links are like."""
        self.weather = weather
        self._min = weather.delay_min
        self._spread = weather.delay_spread
        self._trouble = weather.loss + weather.repeat + weather.overtake + weather.garble + weather.late

    def link(self, source: str, target: str) -> Link:
        """The link from one node to another."""
        of_source = self.links.get(source)
        if of_source is None:
            of_source = self.links[source] = {}
        link = of_source.get(target)
        if link is None:
            link = of_source[target] = Link(self.world.nodes[target])
        return link

    def send(self, source: str, target: str, packet: Packet, at: float) -> None:
        """Put a packet on its way at harness time ``at``."""
        if self.sieve is not None and self.sieve(source, target, packet):
            return
        try:
            link = self.links[source][target]
        except KeyError:
            link = self.link(source, target)
        traffic = link.traffic.get(packet.topic)
        if traffic is None:
            traffic = link.traffic[packet.topic] = Traffic()
        traffic.frames += 1
        traffic.bytes += len(packet.frame)
        if link.cuts:
            if link.holding == link.cuts and len(link.held) < HELD_FRAMES_MAX:
                link.held.append(packet)
            return
        self._carry(link, packet, at)

    def _carry(self, link: Link, packet: Packet, at: float) -> None:
        random_ = self.rng.random
        r = random_()
        arrival = at + self._min + self._spread * r * r * r
        if self._trouble and random_() < self._trouble:
            self._misbehave(link, packet, arrival)
            return
        if packet.topic:
            if arrival < link.last_multicast:
                arrival = link.last_multicast
            else:
                link.last_multicast = arrival
        elif arrival < link.last_arrival:
            arrival = link.last_arrival
        else:
            link.last_arrival = arrival
        world = self.world
        world.pushed += 1
        heappush(world.heap, (arrival, world.pushed, link.target.receive, packet, None))

    def _misbehave(self, link: Link, packet: Packet, arrival: float) -> None:
        weather, rng = self.weather, self.rng
        r = rng.random() * self._trouble
        if r < weather.loss:
            return
        r -= weather.loss
        if r < weather.repeat:
            self.world.push(arrival, link.target.receive, packet, None)
            arrival += rng.random() * 0.5
        elif r < weather.repeat + weather.overtake:
            arrival += rng.random() * 0.1
        elif r < weather.repeat + weather.overtake + weather.garble:
            frame = bytearray(packet.frame)
            frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
            packet = Packet(bytes(frame), packet.topic)
        else:
            arrival += rng.random() ** 2 * weather.late_s_max
        self.world.push(arrival, link.target.receive, packet, None)

    def one_way(self) -> float:
        """How long a small frame takes now, if nothing befalls it."""
        r = self.rng.random()
        return self._min + self._spread * r * r * r

    def traffic(self) -> dict[tuple[str, str, bytes], Traffic]:
        """All that was sent so far, by sender, receiver and topic (``DIRECT`` for what was not multicast)."""
        return {
            (source, target, topic): traffic
            for source in sorted(self.links)
            for target in sorted(self.links[source])
            for topic, traffic in sorted(self.links[source][target].traffic.items())
        }

    def works_both_ways(self, a: str, b: str) -> bool:
        """Whether a connection attempt between two nodes gets an answer."""
        return not self.link(a, b).cuts and not self.link(b, a).cuts

    def cut(self, pairs: Iterable[tuple[str, str]], *, hold: bool = False) -> None:
        """Cut these links; each ``cut`` needs its own ``heal`` with the same arguments."""
        for source, target in pairs:
            link = self.link(source, target)
            link.cuts += 1
            link.holding += hold

    def heal(self, pairs: Iterable[tuple[str, str]], *, hold: bool = False) -> None:
        """Undo one ``cut``."""
        for source, target in pairs:
            link = self.link(source, target)
            link.cuts = max(0, link.cuts - 1)
            link.holding = max(0, link.holding - hold)
            if not link.cuts and link.held:
                held, link.held = link.held, []
                for packet in held:
                    self._carry(link, packet, self.world.t)

    def heal_all(self) -> None:
        """Every link works again, and the weather is calm."""
        self.set_weather(CALM if self.weather.delay_spread > CALM.delay_spread or self._trouble else self.weather)
        for source in sorted(self.links):
            for target in sorted(self.links[source]):
                link = self.links[source][target]
                if link.cuts:
                    link.cuts, link.holding = 1, min(link.holding, 1)
                    self.heal([(source, target)], hold=bool(link.holding))


def between(left: Sequence[str], right: Sequence[str]) -> list[tuple[str, str]]:
    """Both directions of every link between two sets of nodes."""
    return [pair for a in left for b in right if a != b for pair in ((a, b), (b, a))]
