"""Processes that end, and processes that stand still: daemons, and their clients."""

from __future__ import annotations

import random
from typing import Any

from ..nemesis import Nemesis, Scene


class Kill(Nemesis):
    """kill -9 of a daemon, that of the name server most often; started again when this ends."""

    name = "kill"
    lasts_s = (0.2, 5.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng)
        if node is None:
            return None
        scene.cluster.kill(node)
        return {"target": node}

    def heal(self, scene: Scene) -> None:
        for name in scene.names:
            if not scene.cluster.is_running(name):
                scene.cluster.restart(name, wait=False)


class KillAll(Kill):
    """kill -9 of all daemons within a moment; all are started again."""

    name = "kill-all"
    lasts_s = (0.2, 2.0)
    gap_s = (5.0, 9.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        names = [name for name in scene.names if scene.cluster.is_running(name)]
        rng.shuffle(names)
        for name in names:
            scene.cluster.kill(name)
        return {"target": names}


class Pause(Nemesis):
    """SIGSTOP of one or two daemons; they go on with what they were about to say."""

    name = "pause"
    lasts_s = (0.5, 6.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng)
        if node is None:
            return None
        chosen = [node]
        if len(scene.names) > 3 and rng.random() < 0.4:
            chosen += rng.sample([name for name in scene.running() if name != node], 1)
        for name in chosen:
            scene.cluster.pause(name)
        return {"target": chosen}

    def heal(self, scene: Scene) -> None:
        for name in scene.names:
            if scene.cluster.is_running(name) and scene.cluster.is_paused(name):
                scene.cluster.resume(name)


class KillClient(Nemesis):
    """kill -9 of a client; another one comes in its place."""

    name = "kill-client"
    nodes_min = 1
    lasts_s = (0.1, 1.0)
    gap_s = (0.5, 2.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        who = rng.choice(scene.clients.names)
        scene.clients.kill(who)
        return {"target": who}

    def heal(self, scene: Scene) -> None:
        scene.clients.replace_the_dead()


class PauseClient(Nemesis):
    """SIGSTOP of a client, sometimes for longer than any lease."""

    name = "pause-client"
    nodes_min = 1
    lasts_s = (0.5, 7.0)
    gap_s = (0.2, 1.5)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.clients.names, min(2, len(scene.clients.names)))
        for who in chosen:
            scene.clients.stop(who)
        return {"target": chosen}

    def heal(self, scene: Scene) -> None:
        scene.clients.go_on()
