"""Too little of something: processor time, memory. By control groups of version 1, one for each node.

Groups are named after the process that made them, as namespaces are, and those of dead ones are swept.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from pathlib import Path
from typing import Any

from ..nemesis import Missing, Nemesis, Scene
from ..wires import PREFIX

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


class Scarcity(Nemesis):
    """Puts each daemon into a group of its own."""

    kind = ""
    sign = ""  # a file that such a group has

    def look(self) -> None:
        if not (ROOT / self.kind / self.sign).exists():
            raise Missing(f"there is no cgroup v1 {self.kind} controller with {self.sign} here")
        if not os.access(ROOT / self.kind, os.W_OK):
            raise Missing(f"nobody may make groups in {ROOT / self.kind}")

    def prepare(self, scene: Scene) -> None:
        self._sweep()
        for name in scene.names:
            self._group(name).mkdir(exist_ok=True)
            scene.outfits[name].around += ["sh", "-c", f'echo $$ >{self._group(name)}/cgroup.procs; exec "$@"', "sh"]

    def close(self, scene: Scene) -> None:
        for name in scene.names:
            with contextlib.suppress(OSError):
                self._group(name).rmdir()

    def _group(self, name: str) -> Path:
        return ROOT / self.kind / f"{PREFIX}-{os.getpid()}-{name}"

    def _sweep(self) -> None:
        for group in (ROOT / self.kind).glob(f"{PREFIX}-*"):
            if not Path(f"/proc/{group.name.split('-')[1]}").exists():
                with contextlib.suppress(OSError):
                    group.rmdir()

    def _set(self, name: str, file: str, value: int) -> None:
        (self._group(name) / file).write_text(str(value))


class CpuStarvation(Scarcity):
    """Some daemons get between 3 and 20 % of a core, in pieces."""

    name = "cpu-starvation"
    kind, sign = "cpu", "cpu.cfs_quota_us"
    lasts_s = (3.0, 8.0)

    def __init__(self) -> None:
        super().__init__()
        self._starved: dict[str, int] = {}  # by node: how often it had been made to wait before
        self.bitten = 0

    def bites(self) -> int | None:
        return self.bitten

    def _waits(self, name: str) -> int:
        words = (self._group(name) / "cpu.stat").read_text().split()
        return int(words[words.index("nr_throttled") + 1])

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.randint(1, len(scene.names) // 2 + 1))
        percent = rng.choice([3, 8, 20])
        self._starved = {name: self._waits(name) for name in chosen}
        for name in chosen:
            self._set(name, self.sign, PERIOD_US * percent // 100)
        return {"target": chosen, "percent": percent}

    def heal(self, scene: Scene) -> None:
        self.bitten += sum(self._waits(name) > before for name, before in self._starved.items())
        self._starved.clear()
        for name in scene.names:
            self._set(name, self.sign, -1)


class MemoryLimit(Scarcity):
    """A daemon has little more memory than it uses.

    If that is not enough the kernel kills it, and it is started again. Its journal
    counts, too, as far as it is in the cache; so the kernel has work to do all the time.
    """

    name = "memory-limit"
    kind, sign = "memory", "memory.limit_in_bytes"
    lasts_s = (3.0, 8.0)
    ends_with = frozenset({-signal.SIGKILL})

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node, spare = scene.leader_or_any(rng), rng.choice([0, 1 << 20, 8 << 20])
        if node is None:
            return None
        used = int((self._group(node) / "memory.usage_in_bytes").read_text())
        try:
            self._set(node, self.sign, used + spare)
        except OSError:
            return None  # it could not be brought down to that
        return {"target": node, "spare": spare, "used": used}

    def heal(self, scene: Scene) -> None:
        for name in scene.names:
            self._set(name, self.sign, 1 << 40)
            if not scene.cluster.is_running(name):
                scene.cluster.restart(name, wait=False)
