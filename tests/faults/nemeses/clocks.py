"""Wall clocks that jump, by days and backwards: nothing hangs on them but numbers of incarnations."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

from ..nemesis import Nemesis, Scene
from ..shims import compiler, library

HOUR_S = 3600
DAY_S = 24 * HOUR_S
JUMPS_S = (10 * DAY_S, -HOUR_S, -3 * DAY_S, 400 * DAY_S, 20, -20)

_seconds = struct.Struct("=q")


class ClockJump(Nemesis):
    """The wall clock of some nodes jumps, at some of them while the daemon is started again."""

    name = "clock-jump"
    lasts_s = (1.0, 4.0)

    def look(self) -> None:
        compiler()

    def prepare(self, scene: Scene) -> None:
        shim = library("wall_shim", scene.directory)
        for name, outfit in scene.outfits.items():
            self._file(scene, name).write_bytes(_seconds.pack(0))
            outfit.load(shim, GSF_WALL=str(self._file(scene, name)))

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.randint(1, len(scene.names)))
        jumps = {name: rng.choice(JUMPS_S) for name in chosen}
        for name, jump in jumps.items():
            self._set(scene, name, jump)
        restarted = ""
        if rng.random() < 0.4:
            restarted = rng.choice(chosen)
            if scene.cluster.is_running(restarted):
                scene.cluster.kill(restarted)
            scene.cluster.restart(restarted, wait=False)
        return {"jumps_s": jumps, "restarted": restarted}

    def heal(self, scene: Scene) -> None:
        for name in scene.names:
            self._set(scene, name, 0)

    def _file(self, scene: Scene, name: str) -> Path:
        return scene.directory / f"{name}.wall"

    def _set(self, scene: Scene, name: str, ahead_s: int) -> None:
        with self._file(scene, name).open("r+b", buffering=0) as file:
            file.write(_seconds.pack(ahead_s))  # eight bytes at once: daemons have them mapped
