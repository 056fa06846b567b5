"""The enemies that live in the network: they cut links in shapes that have names, spoil the weather, or intrude.

A cut drops what is sent meanwhile, or holds it like a stalled connection; which of the two is drawn for each.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupsvc.wire import frames
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.peer_messages import PEER_CODEC
from groupsvcd.core.records import NO_DOMAIN

from .nemesis import Nemesis
from .network import Packet, Weather, between
from .node import Node

if TYPE_CHECKING:
    from .world import World


class Cut(Nemesis):
    """The base of all that cut links: which ones, and whether frames are dropped or held."""

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.hold = rng.random() < 0.3
        self.pairs: list[tuple[str, str]] = []

    @abstractmethod
    def links(self) -> list[tuple[str, str]]:
        """The links to cut."""

    def begin(self) -> str | None:
        self.pairs = self.links()
        self.world.network.cut(self.pairs, hold=self.hold)
        if not self.pairs:
            return None
        shown = " ".join(f"{a}>{b}" for a, b in self.pairs[:24])
        return shown if len(self.pairs) <= 24 else f"{shown} … {len(self.pairs)} links"

    def end(self) -> None:
        self.world.network.heal(self.pairs, hold=self.hold)
        self.pairs = []

    def others(self, *names: str) -> list[str]:
        """All nodes but these."""
        return [name for name in self.world.names if name not in names]

    def shuffled(self, names: Sequence[str]) -> list[str]:
        """The same names in a random order."""
        return self.rng.sample(names, len(names))


class IsolateLeader(Cut):
    """The name server is cut off from everybody."""

    name = "isolate-leader"

    def links(self) -> list[tuple[str, str]]:
        leader = self.world.name_server()
        return between([leader], self.others(leader)) if leader is not None else []


class IsolateOne(Cut):
    """One node, any, is cut off."""

    name = "isolate-one"

    def links(self) -> list[tuple[str, str]]:
        one = self.rng.choice(self.world.names)
        return between([one], self.others(one))


class Halves(Cut):
    """Two parts that do not see each other."""

    name = "halves"

    def links(self) -> list[tuple[str, str]]:
        names = self.shuffled(self.world.names)
        middle = len(names) // 2
        return between(names[:middle], names[middle:])


class StaleTail(Cut):
    """The name server is cut off with a minority, and its own clients make it order a long tail that never holds.

    Its log then ends far behind the one of its successor, but in an older epoch. When the cut heals, the successor
    often dies at once, so that the stale tail takes part in the next recovery. Voters without their state are
    on the minority's side: they have followed what is about to be replaced.
    """

    name = "stale-tail"
    lasts_s = (1.3, 4.0)
    burst = 15

    def links(self) -> list[tuple[str, str]]:
        leader = self.world.name_server()
        if leader is None:
            return []
        blank = [name for name in self.world.voters if self.world.nodes[name].disk.lost and name != leader]
        whole = self.shuffled([name for name in self.world.voters if name not in (leader, *blank)])
        minority = (len(self.world.voters) - 1) // 2
        company = (blank + whole)[: self.rng.randint(0, max(minority - 1, len(blank)))]
        side = [leader, *company]
        self._order_on(leader)
        return between(side, self.others(*side))

    def _order_on(self, leader: str) -> None:
        node = self.world.nodes[leader]
        for number in range(self.burst):
            self.world.push(self.world.t + 0.02 + self.rng.random() * 0.5, self._ask, node, number)

    def _ask(self, node: Node, number: int) -> None:
        clients = self.world.clients
        if node.running and not clients.quiet:
            client = clients.client_at(node, f"burst-{len(clients.all)}")
            key = f"burst-{number}"
            client.ask("config_set", {"key": key, "value": f"{client.name}:1", "if_version": 0}, 1.0)

    def end(self) -> None:
        successor = self.world.name_server()
        super().end()
        if successor is not None and self.rng.random() < 0.6:
            node = self.world.nodes[successor]
            node.crash("killed when the cut healed")
            self.restart_later(node, self.rng.uniform(1.0, 4.0))


class MajoritiesRing(Cut):
    """Every voter sees a majority, and no two see the same one.

    Voters stand in a ring. Of five each is connected with its two neighbours; three are too few for that, there
    each hears only the next one.
    """

    name = "majorities-ring"

    def links(self) -> list[tuple[str, str]]:
        ring = self.shuffled(self.world.voters)
        n = len(ring)
        if n < 3:
            return []
        if n == 3:
            return [(ring[i], ring[(i + 1) % n]) for i in range(n)]
        reach = (n // 2) // 2
        return [
            (a, b)
            for i, a in enumerate(ring)
            for j, b in enumerate(ring)
            if i != j and min((i - j) % n, (j - i) % n) > reach
        ]


class Bridge(Cut):
    """Two halves that share one node which sees all."""

    name = "bridge"

    def links(self) -> list[tuple[str, str]]:
        names = self.shuffled(self.world.names)
        middle = len(names) // 2
        return between(names[:middle], names[middle + 1 :])


class OneWay(Cut):
    """Some links work in one direction only."""

    name = "one-way"

    def links(self) -> list[tuple[str, str]]:
        pairs = [(a, b) for a in self.world.voters for b in self.world.voters if a != b]
        if self.rng.random() < 0.3:
            one = self.rng.choice(self.world.names)
            others = self.others(one)
            return [(one, b) for b in others] if self.rng.random() < 0.5 else [(b, one) for b in others]
        return self.rng.sample(pairs, self.rng.randint(1, max(1, len(pairs) // 2))) if pairs else []


class SwizzleClog(Nemesis):
    """Clog some nodes one after the other, then unclog them one by one in another order."""

    name = "swizzle-clog"
    lasts_s = (2.0, 12.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.clogged: dict[str, list[tuple[str, str]]] = {}

    def begin(self) -> str | None:
        names = self.world.names if len(self.world.names) <= 8 else self.world.voters
        if len(names) < 2:
            return None
        chosen = self.rng.sample(names, self.rng.randint(1, len(names)))
        at = self.world.t
        for name in chosen:
            self.world.push(at, self._clog, name, None)
            at += self.rng.random() * 1.5
        for name in self.rng.sample(chosen, len(chosen)):
            at += self.rng.random() * 1.5
            self.world.push(at, self._unclog, name, None)
        return " ".join(chosen)

    def _clog(self, name: str, _: object) -> None:
        if not self.ended and name not in self.clogged:
            pairs = between([name], [other for other in self.world.names if other != name])
            self.clogged[name] = pairs
            self.world.network.cut(pairs, hold=True)

    def _unclog(self, name: str, _: object) -> None:
        self.world.network.heal(self.clogged.pop(name, []), hold=True)

    def end(self) -> None:
        self.ended = True
        for name in list(self.clogged):
            self._unclog(name, None)


class Flap(Cut):
    """A link, or all of one node, goes away and comes back several times a second."""

    name = "flap"

    def links(self) -> list[tuple[str, str]]:
        one = self.rng.choice(self.world.voters)
        others = self.others(one)
        return between([one], others if self.rng.random() < 0.5 else others[:1])

    def begin(self) -> str | None:
        shown = super().begin()
        self.up = False
        self.world.push(self.world.t + self.rng.random() * 0.6, self._flip, None, None)
        return shown

    def _flip(self, _: object, __: object) -> None:
        if self.ended:
            return
        if self.up:
            self.world.network.cut(self.pairs, hold=self.hold)
        else:
            self.world.network.heal(self.pairs, hold=self.hold)
        self.up = not self.up
        self.world.push(self.world.t + self.rng.random() * 0.6, self._flip, None, None)

    def end(self) -> None:
        self.ended = True
        if not self.up:
            super().end()


class BadWeather(Nemesis):
    """Frames are lost, repeated, overtaken, garbled, or come much later."""

    name = "bad-weather"
    lasts_s = (2.0, 15.0)

    def begin(self) -> str | None:
        rng = self.rng
        weather = Weather(
            delay_min=0.0005,
            delay_spread=rng.choice([0.005, 0.05, 0.3]),
            loss=rng.choice([0.0, 0.02, 0.2]),
            repeat=rng.choice([0.0, 0.05]),
            overtake=rng.choice([0.0, 0.1]),
            garble=rng.choice([0.0, 0.01]),
            late=rng.choice([0.0, 0.01]),
        )
        self.before = self.world.network.weather
        self.world.network.set_weather(weather)
        return f"spread {weather.delay_spread} loss {weather.loss} late {weather.late}"

    def end(self) -> None:
        self.world.network.set_weather(self.before)


class ForeignFrames(Nemesis):
    """Another domain with the same names speaks on our addresses: all that we say comes back under its id.

    Only nodes that know their domain hear it; a blank one has nothing yet to tell the two apart by.
    """

    name = "foreign-frames"
    lasts_s = (0.5, 5.0)

    def begin(self) -> str | None:
        network = self.world.network
        if network.sieve is not None:
            return None
        self.domain = self.rng.randbytes(16)
        network.sieve = self._echo
        return self.domain.hex()

    def _echo(self, source: str, target: str, packet: Packet) -> bool:
        event = packet.open()
        if event is not None and self.rng.random() < 0.2:
            body = PEER_CODEC.encode(event.messages)  # type: ignore[arg-type]
            later = event.incarnation + 1_000_000
            foreign = Packet(frames.pack(FrameKind.PEER, self.domain, source.encode(), later, body))
            self.world.push(self.world.t + self.rng.random() * 0.1, self._arrive, self.world.nodes[target], foreign)
        return False

    def _arrive(self, node: Node, packet: Packet) -> None:
        if node.engine is not None and node.engine.domain != NO_DOMAIN:
            node.receive(packet, None)

    def end(self) -> None:
        self.world.network.sieve = None
