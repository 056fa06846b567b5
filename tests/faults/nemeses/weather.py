"""Bad lines: packets get lost, come late, in another order; connections are reset."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from typing import Any

from ..nemesis import Missing, Nemesis, Scene
from ..wires import need


class Loss(Nemesis):
    """Of what comes to some nodes a part is lost, up to half of it."""

    name = "loss"
    lasts_s = (3.0, 8.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.randint(1, len(scene.names)))
        percent = rng.choice([2, 10, 20, 50])
        for name in chosen:
            scene.wires.rules(name, f"add rule inet faults input iif wire numgen random mod 100 < {percent} drop\n")
        return {"target": chosen, "percent": percent}

    def heal(self, scene: Scene) -> None:
        scene.wires.heal()


class Reset(Nemesis):
    """Connections of a node with others break with a reset; new ones are refused, again and again for a moment."""

    name = "reset"
    lasts_s = (0.05, 1.5)
    gap_s = (0.3, 2.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng) or rng.choice(scene.names)
        others = rng.sample(scene.others(node), rng.randint(1, len(scene.names) - 1))
        # Both sides are told: each refuses what the other says.
        refusing = "meta l4proto tcp reject with tcp reset"
        scene.wires.cut({node: others, **{other: [node] for other in others}}, refusing)
        return {"target": node, "others": others}

    def heal(self, scene: Scene) -> None:
        scene.wires.heal()


class Delay(Nemesis):
    """What comes to some nodes is late: by some time, or each packet by its own, and so in another order."""

    name = "delay"
    lasts_s = (4.0, 9.0)
    needs = ("iptables-legacy",)

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[subprocess.Popen[bytes]] = []

    def look(self) -> None:
        need(*self.needs)
        if importlib.util.find_spec("netfilterqueue") is None:
            raise Missing("there is no NetfilterQueue here: pip install '.[faults]'")

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.randint(1, len(scene.names)))
        least_s, most_s = rng.choice([(0.02, 0.02), (0.1, 0.1), (0.005, 0.07), (0.0, 0.3)])
        for name in chosen:
            told = {"least_s": least_s, "most_s": most_s, "seed": rng.random()}
            line = subprocess.Popen(
                [*scene.wires.inside(name), sys.executable, "-m", "tests.faults.late_packets", json.dumps(told)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=scene.cluster.root,
            )  # fmt: skip
            self._lines.append(line)
        for line in self._lines:
            assert line.stdout is not None
            assert line.stderr is not None
            if line.stdout.readline() != b"late\n":
                words = line.stderr.read().decode().strip()
                self.heal(scene)
                raise Missing(f"packets cannot be delayed here: {words[-300:]}")
        return {"target": chosen, "least_s": least_s, "most_s": most_s}

    def heal(self, scene: Scene) -> None:
        lines, self._lines = self._lines, []
        for line in lines:
            for pipe in (line.stdin, line.stdout, line.stderr):
                assert pipe is not None
                pipe.close()
        for line in lines:
            line.wait(timeout=10.0)

    def close(self, scene: Scene) -> None:
        self.heal(scene)
