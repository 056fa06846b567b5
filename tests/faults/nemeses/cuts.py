"""Networks that fall apart: who hears whom is changed, and nobody is told."""

from __future__ import annotations

import random
import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from ..nemesis import Missing, Scene
from .wire_base import WireNemesis


class Cut(WireNemesis):
    """One that takes words away from somebody, and looks whether they are away."""

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        done = self.cut(scene, rng)
        if done is not None:
            self.look_at(scene)
        return done

    @abstractmethod
    def cut(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        """Do harm; as ``strike``."""

    def look_at(self, scene: Scene) -> None:
        """At the wires as they are now."""
        self.seen(scene.wires.problem() if scene.wires.silent else "nothing is cut")


class IsolateLeader(Cut):
    """The name server hears nobody, and nobody hears it."""

    name = "isolate-leader"

    def cut(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader()
        if node is None:
            return None
        scene.wires.part([node], scene.others(node))
        return {"target": node}


class IsolateOne(Cut):
    """Any node is cut off; half of the time by pulling its wire."""

    name = "isolate-one"

    def cut(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node, pulls = rng.choice(scene.names), rng.random() < 0.5
        if pulls:
            scene.wires.unplug(node)
        else:
            scene.wires.part([node], scene.others(node))
        return {"target": node, "pulled": pulls}


class Halves(Cut):
    """Two sides, at random: a majority goes on, the others wait."""

    name = "halves"
    nodes_min = 3

    def cut(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        names = list(scene.names)
        rng.shuffle(names)
        middle = len(names) // 2
        scene.wires.part(names[:middle], names[middle:])
        return {"sides": [names[:middle], names[middle:]]}


class MajoritiesRing(Cut):
    """Everybody hears a majority, and no two the same one: each only its neighbours on a ring."""

    name = "majorities-ring"
    nodes_min = 5

    def cut(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        ring = list(scene.names)
        rng.shuffle(ring)
        count, reach = len(ring), len(ring) // 4 or 1
        blocked = {}
        for place, name in enumerate(ring):
            near = {ring[(place + step) % count] for step in range(-reach, reach + 1)}
            blocked[name] = [other for other in ring if other not in near]
        scene.wires.cut(blocked)
        return {"ring": ring}


class Bridge(Cut):
    """Two sides that do not hear one another, and one node that hears both."""

    name = "bridge"
    nodes_min = 3

    def cut(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        names = list(scene.names)
        rng.shuffle(names)
        bridge, rest = names[0], names[1:]
        one, other = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        scene.wires.cut({**dict.fromkeys(one, other), **dict.fromkeys(other, one)})
        return {"bridge": bridge, "sides": [one, other]}


class OneWay(Cut):
    """Somebody hears the others and is not heard, or is heard and hears nobody; or so between two."""

    name = "one-way"

    def cut(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng) or rng.choice(scene.names)
        others = scene.others(node)
        if rng.random() < 0.3:
            others = [rng.choice(others)]
        is_deaf = rng.random() < 0.5
        scene.wires.cut({node: others} if is_deaf else {other: [node] for other in others})
        return {"target": node, "deaf" if is_deaf else "dumb": others}


class Unsteady(WireNemesis):
    """One whose wires change all the time, by a thread: so it looks whenever it has pulled one."""

    def look_at(self, scene: Scene, node: str) -> None:
        """At the wire of this node, which has been pulled."""
        near = {pair for pair in scene.wires.probes.pairs if node in pair}
        self.seen(f"{node} still hears, or is heard" if scene.wires.probes.heard(near) else "")

    def heal(self, scene: Scene) -> None:
        if hasattr(self, "_thread"):
            self._over.set()
            self._thread.join()
        super().heal(scene)

    def begin(self, act: Callable[[threading.Event], None]) -> None:
        """Until it is told to end."""
        self._over = over = threading.Event()

        def go_on() -> None:
            try:
                act(over)
            except Missing as problem:  # a wire that cannot be pulled
                self.seen(str(problem))

        self._thread = threading.Thread(target=go_on)
        self._thread.start()


class SwizzleClog(Unsteady):
    """One node after the other is clogged, and in another order they are unclogged again."""

    name = "swizzle-clog"
    lasts_s = (5.0, 9.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.randint(2, len(scene.names)))
        again = rng.sample(chosen, len(chosen))
        waits = [rng.uniform(0.1, 1.0) for _ in chosen * 2]

        def swizzle(over: threading.Event) -> None:
            for node, wait in zip(chosen, waits, strict=False):
                scene.wires.unplug(node)
                self.look_at(scene, node)
                if over.wait(wait):
                    return
            for node, wait in zip(again, waits[len(chosen) :], strict=True):
                scene.wires.plug_in(node)
                if over.wait(wait):
                    return

        self.begin(swizzle)
        return {"down": chosen, "up": again}


class Flap(Unsteady):
    """A wire that is in and out several times a second, or every second."""

    name = "flap"
    lasts_s = (4.0, 8.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng) or rng.choice(scene.names)
        pace, draw = rng.choice([0.1, 0.4, 1.2]), random.Random(rng.random())

        def flap(over: threading.Event) -> None:
            is_first = True
            while not over.wait(draw.uniform(0.5, 1.5) * pace):
                scene.wires.unplug(node)
                if is_first:  # a look takes a moment, and the pace is what this is about
                    self.look_at(scene, node)
                is_first = False
                if over.wait(draw.uniform(0.5, 1.5) * pace):
                    return
                scene.wires.plug_in(node)

        self.begin(flap)
        return {"target": node, "pace": pace}
