"""Networks that fall apart: who hears whom is changed, and nobody is told."""

from __future__ import annotations

import random
import threading
from typing import Any

from ..nemesis import Nemesis, Scene


class Cut(Nemesis):
    """One that is undone by healing all wires."""

    def heal(self, scene: Scene) -> None:
        scene.wires.heal()


class IsolateLeader(Cut):
    """The name server hears nobody, and nobody hears it."""

    name = "isolate-leader"

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader()
        if node is None:
            return None
        scene.wires.part([node], scene.others(node))
        return {"target": node}


class IsolateOne(Cut):
    """Any node is cut off; half of the time by pulling its wire."""

    name = "isolate-one"

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
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

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        names = list(scene.names)
        rng.shuffle(names)
        middle = len(names) // 2
        scene.wires.part(names[:middle], names[middle:])
        return {"sides": [names[:middle], names[middle:]]}


class MajoritiesRing(Cut):
    """Everybody hears a majority, and no two the same one: each only its neighbours on a ring."""

    name = "majorities-ring"
    nodes_min = 5

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
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

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        names = list(scene.names)
        rng.shuffle(names)
        bridge, rest = names[0], names[1:]
        one, other = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        scene.wires.cut({**dict.fromkeys(one, other), **dict.fromkeys(other, one)})
        return {"bridge": bridge, "sides": [one, other]}


class OneWay(Cut):
    """Somebody hears the others and is not heard, or is heard and hears nobody; or so between two."""

    name = "one-way"

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng) or rng.choice(scene.names)
        others = scene.others(node)
        if rng.random() < 0.3:
            others = [rng.choice(others)]
        is_deaf = rng.random() < 0.5
        scene.wires.cut({node: others} if is_deaf else {other: [node] for other in others})
        return {"target": node, "deaf" if is_deaf else "dumb": others}


class SwizzleClog(Cut):
    """One node after the other is clogged, and in another order they are unclogged again."""

    name = "swizzle-clog"
    lasts_s = (5.0, 9.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.randint(2, len(scene.names)))
        again = rng.sample(chosen, len(chosen))
        waits = [rng.uniform(0.1, 1.0) for _ in chosen * 2]
        self._over = over = threading.Event()

        def swizzle() -> None:
            for node, wait in zip(chosen, waits, strict=False):
                scene.wires.unplug(node)
                if over.wait(wait):
                    return
            for node, wait in zip(again, waits[len(chosen) :], strict=True):
                scene.wires.plug_in(node)
                if over.wait(wait):
                    return

        self._thread = threading.Thread(target=swizzle)
        self._thread.start()
        return {"down": chosen, "up": again}

    def heal(self, scene: Scene) -> None:
        if hasattr(self, "_thread"):
            self._over.set()
            self._thread.join()
        super().heal(scene)


class Flap(Cut):
    """A wire that is in and out several times a second, or every second."""

    name = "flap"
    lasts_s = (4.0, 8.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng) or rng.choice(scene.names)
        pace, draw = rng.choice([0.1, 0.4, 1.2]), random.Random(rng.random())
        self._over = over = threading.Event()

        def flap() -> None:
            while not over.wait(draw.uniform(0.5, 1.5) * pace):
                scene.wires.unplug(node)
                if over.wait(draw.uniform(0.5, 1.5) * pace):
                    return
                scene.wires.plug_in(node)

        self._thread = threading.Thread(target=flap)
        self._thread.start()
        return {"target": node, "pace": pace}

    def heal(self, scene: Scene) -> None:
        if hasattr(self, "_thread"):
            self._over.set()
            self._thread.join()
        super().heal(scene)
