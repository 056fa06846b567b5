"""The enemies of a domain, by name: each knows how to begin its mischief and how to end it.

A nemesis is told the world and a generator of its own and hurts only what it may: the protocol promises nothing
once a majority of disks is lost, so ``lose-disk`` never takes more than a minority until the domain has made
the blank voters whole; everything else may overlap freely. ``Weatherman`` draws which nemeses work, when and
for how long; all of them end with ``World.heal``.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .network import Weather, between
from .node import Node, Trap

if TYPE_CHECKING:
    from .world import World


class Nemesis:
    """Begins, lasts a while, ends."""

    name = ""
    lasts_s = (0.5, 8.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self.ended = False

    def begin(self) -> str | None:
        """Do harm; says to whom, or None if there is nothing to harm now."""
        raise NotImplementedError

    def end(self) -> None:
        """Undo what can be undone."""

    # What several of them need.

    def victim(self, among: Sequence[str] | None = None) -> Node | None:
        """A running node, voters more often than others."""
        names = among if among is not None else (self.world.names if self.rng.random() < 0.3 else self.world.voters)
        running = [name for name in names if self.world.nodes[name].running]
        return self.world.nodes[self.rng.choice(running)] if running else None

    def name_server_or_any(self) -> Node | None:
        """The name server in most cases; otherwise any victim."""
        leader = self.world.name_server() if self.rng.random() < 0.7 else None
        return self.world.nodes[leader] if leader is not None else self.victim()

    def restart_later(self, node: Node, after: float) -> None:
        """Start the process again, unless somebody else has done so by then."""
        self.world.push(self.world.t + after, self._restart, node, None)

    def _restart(self, node: Node, _: object) -> None:
        if not node.running:
            node.start()


class Kill(Nemesis):
    """kill -9 of one process; started again when this ends."""

    name = "kill"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        # Somewhere within the next few effects, not neatly between two steps.
        self.node.trap = Trap(self.rng.randrange(8), _kill)
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        if not self.node.running:
            self.node.start()


def _kill(node: Node) -> None:
    node.crash("killed between two effects")


class KillAtOnce(Kill):
    """kill -9 while the process waits for events, which is most of the time."""

    name = "kill-idle"

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.crash("killed")
        return self.node.name


class Pause(Nemesis):
    """SIGSTOP, in the middle of the effects of one step."""

    name = "pause"
    lasts_s = (0.1, 7.0)
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        if self.rng.random() < 0.5:
            self.node.pause()
        else:
            self.node.trap = Trap(self.rng.randrange(6), Node.pause)
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        if self.node.trap is not None and self.node.trap.spring is Node.pause:
            self.node.trap = None
        self.node.resume()


class Cut(Nemesis):
    """The base of all that cut links: which ones, and whether frames are dropped or held."""

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.hold = rng.random() < 0.3
        self.pairs: list[tuple[str, str]] = []

    def links(self) -> list[tuple[str, str]]:
        """The links to cut."""
        raise NotImplementedError

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


class SlowDisk(Nemesis):
    """Every sync of one voter takes up to a second."""

    name = "slow-disk"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.disk.slowness = self.rng.choice([10.0, 50.0, 250.0])
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        self.node.disk.slowness = 1.0


class DiskFull(Nemesis):
    """No write of one voter completes until there is space again."""

    name = "disk-full"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.disk.stick()
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        self.node.disk.unstick()


class DiskHung(DiskFull):
    """The device does not answer; for a daemon the same as a full one, only shorter or for ever."""

    name = "disk-hung"
    lasts_s = (0.05, 3.0)


class FsyncEio(Nemesis):
    """The next sync of one voter fails; the process must stop, and is started again on a mended disk."""

    name = "fsync-eio"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.disk.error = True
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        self.node.disk.error = False
        if not self.node.running:
            self.node.start()


class PowerLossOne(Nemesis):
    """One machine is off: no reset, no refusal, only silence; its steady clock begins anew."""

    name = "power-loss-one"
    lasts_s = (0.3, 10.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.down: list[Node] = []

    def begin(self) -> str | None:
        node = self.name_server_or_any()
        if node is None:
            return None
        node.crash("power loss", power=True)
        self.down = [node]
        return node.name

    def end(self) -> None:
        for node in self.down:
            if not node.running:
                node.start()


class PowerLossAll(PowerLossOne):
    """All machines are off; they come back one after the other."""

    name = "power-loss-all"
    lasts_s = (0.1, 2.0)

    def begin(self) -> str | None:
        for name in self.world.names:
            self.world.nodes[name].crash("power loss", power=True)
        return "all"

    def end(self) -> None:
        for name in self.world.names:
            node = self.world.nodes[name]
            if not node.running:
                self.restart_later(node, self.rng.random() * 1.0)


class ClockJump(Nemesis):
    """The wall clock jumps by days; the steady clock does not notice."""

    name = "clock-jump"
    lasts_s = (0.1, 0.2)

    def begin(self) -> str | None:
        node = self.victim()
        if node is None:
            return None
        jump = self.rng.uniform(-864_000, 864_000)
        if not node.parameters.durable:
            jump = abs(jump)  # without a memory its incarnation is only as good as its clock
        node.wall_offset += jump
        if self.rng.random() < 0.5:
            node.crash("killed after a clock jump")
            self.restart_later(node, 0.05 + self.rng.random())
        return f"{node.name} by {jump:.0f} s"


class KillDuringRecovery(Nemesis):
    """Whoever claims, promises or opens next dies right there, perhaps with its word half said."""

    name = "kill-during-recovery"
    lasts_s = (2.0, 8.0)

    def begin(self) -> str | None:
        kind = self.rng.choice(["Claim", "Promised", "Open", "Opened", "LeaderAlive"])
        self.kind = kind
        for name in self.world.voters:
            self.world.nodes[name].on_spoke = self._spoke
        leader = self.world.name_server()
        if leader is not None:
            # Without an election there is nothing to kill in.
            self.world.nodes[leader].crash("killed to make an election")
            self.restart_later(self.world.nodes[leader], 0.5 + self.rng.random() * 2)
        return f"at {kind}"

    def _spoke(self, node: Node, kind: str, epoch: int) -> None:
        if kind != self.kind or self.ended:
            return
        self.ended = True
        how = self.rng.randrange(3)
        if how == 0:
            node.crash(f"killed before its {kind} left")
        elif how == 1:
            node.trap = Trap(self.rng.randrange(4), _kill)
        else:
            self.world.push(self.world.t + self.rng.random() * 0.02, self._kill_late, node, None)
        self.restart_later(node, 0.05 + self.rng.random() * 3)

    def _kill_late(self, node: Node, _: object) -> None:
        node.crash("killed during recovery")

    def end(self) -> None:
        self.ended = True
        for name in self.world.voters:
            self.world.nodes[name].on_spoke = None


class KillBetweenPersistAndSend(Nemesis):
    """A write is on disk and the words that hang on it are never said."""

    name = "kill-between-persist-and-send"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.left = self.rng.randrange(4)
        self.node.on_persisted = self._persisted
        return self.node.name

    def _persisted(self, node: Node) -> None:
        self.left -= 1
        if self.left < 0:
            node.on_persisted = None
            if self.rng.random() < 0.3:
                node.pause()
                self.world.push(self.world.t + self.rng.random() * 5, self._resume, node, None)
            else:
                node.crash("killed between persist and send")

    def _resume(self, node: Node, _: object) -> None:
        node.resume()

    def end(self) -> None:
        assert self.node is not None
        self.node.on_persisted = None
        if not self.node.running:
            self.node.start()


class LoseDisk(Nemesis):
    """A voter's process dies and comes back at once with an empty state directory."""

    name = "lose-disk"
    lasts_s = (0.1, 1.5)
    node: Node | None = None

    def begin(self) -> str | None:
        world = self.world
        still_blank = 0
        for name in world.voters:
            node = world.nodes[name]
            if node.disk.lost:
                status = node.status()
                if status is not None and status.role in ("voter", "name server"):
                    node.disk.lost = False
            still_blank += node.disk.lost
        if still_blank >= (len(world.voters) - 1) // 2:
            return None
        # Only what belongs to a formed domain can be replaced in it.
        whole = [name for name in world.voters if not world.nodes[name].disk.lost]
        if any(not world.nodes[name].disk.logs for name in whole):
            return None
        self.node = world.nodes[self.rng.choice(whole)]
        self.node.crash("lost its disk", power=self.rng.random() < 0.5)
        self.node.disk.make_blank()
        self.node.disk.lost = True
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        if not self.node.running:
            self.node.start()


class ReplaceVoter(LoseDisk):
    """A machine is dead for good; much later another one takes its name."""

    name = "replace-voter"
    lasts_s = (4.0, 12.0)


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


ALL: tuple[type[Nemesis], ...] = (
    Kill, KillAtOnce, Pause, IsolateLeader, IsolateOne, Halves, MajoritiesRing, Bridge, OneWay, SwizzleClog, Flap,
    SlowDisk, DiskFull, DiskHung, FsyncEio, PowerLossOne, PowerLossAll, ClockJump, KillDuringRecovery,
    KillBetweenPersistAndSend, LoseDisk, ReplaceVoter, BadWeather,
)  # fmt: skip

BY_NAME: dict[str, type[Nemesis]] = {nemesis.name: nemesis for nemesis in ALL}

HARMLESS_TO_MEMORY = (
    "pause", "isolate-leader", "isolate-one", "halves", "majorities-ring", "bridge", "one-way", "swizzle-clog",
    "flap", "bad-weather",
)  # fmt: skip
"""What may happen to a domain that keeps its directory in memory only and is to keep it."""


class Weatherman:
    """Draws from a palette of nemeses: one after the other, sometimes two or three at a time."""

    def __init__(self, world: World, rng: random.Random, palette: Sequence[str], gap_s: float = 3.0) -> None:
        self.world = world
        self.rng = rng
        self.palette = [BY_NAME[name] for name in palette]
        self.gap_s = gap_s
        self.active: list[Nemesis] = []
        self.over = False

    def begin(self, at: float) -> None:
        """Send the first nemesis at a harness time."""
        self.world.push(at, self._next, None, None)

    def _next(self, _: object, __: object) -> None:
        if self.over:
            return
        nemesis = self.rng.choice(self.palette)(self.world, self.rng)
        lasts = self.rng.uniform(*nemesis.lasts_s)
        target = nemesis.begin()
        if target is not None:
            self.world.fault(nemesis.name, "begin", target=target)
            self.active.append(nemesis)
            self.world.push(self.world.t + lasts, self._end, nemesis, None)
        self.world.push(self.world.t + self.rng.expovariate(1.0) * self.gap_s, self._next, None, None)

    def _end(self, nemesis: Nemesis, _: object) -> None:
        if nemesis in self.active:
            self.active.remove(nemesis)
            nemesis.end()
            self.world.fault(nemesis.name, "end")

    def stop(self) -> None:
        """End all of them and send no more."""
        self.over = True
        for nemesis in list(self.active):
            self._end(nemesis, None)
