"""Bad lines: packets get lost, come late, in another order; connections are reset."""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
from typing import Any

from ..nemesis import Missing, Scene
from ..wires import need
from .wire_base import WireNemesis

WORDS = 600
"""Said to see a loss: of so many it is one in 180 000 that none is lost at two in a hundred."""


class Loss(WireNemesis):
    """Of what comes to some nodes a part is lost, up to half of it."""

    name = "loss"
    lasts_s = (3.0, 8.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.randint(1, len(scene.names)))
        percent = rng.choice([2, 10, 20, 50])
        for name in chosen:
            scene.wires.lose(name, percent)
        self.seen(self._problem(scene, chosen[0]))
        return {"target": chosen, "percent": percent}

    def _problem(self, scene: Scene, node: str) -> str:
        lost = scene.wires.probes.lost(scene.others(node)[0], node, WORDS)
        return "" if 0 < lost < WORDS else f"of {WORDS} words to {node} {lost} are lost"


class Reset(WireNemesis):
    """Connections of a node with others break with a reset; new ones are refused, again and again for a moment."""

    name = "reset"
    lasts_s = (0.05, 1.5)
    gap_s = (0.3, 2.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng) or rng.choice(scene.names)
        others = rng.sample(scene.others(node), rng.randint(1, len(scene.names) - 1))
        # Both sides are told: each refuses what the other says.
        scene.wires.refuse({node: others, **{other: [node] for other in others}})
        refused = [scene.wires.probes.is_refused(*ends) for ends in ((node, others[0]), (others[0], node))]
        self.seen("" if all(refused) else f"{node} and {others[0]} do not refuse one another")
        return {"target": node, "others": others}


class Delay(WireNemesis):
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
        self.seen(self._problem(scene, chosen[0], least_s, most_s))
        return {"target": chosen, "least_s": least_s, "most_s": most_s}

    def _problem(self, scene: Scene, node: str, least_s: float, most_s: float) -> str:
        """The least of the times is kept by every word; the most is not reached by each, but some are late."""
        late_s = scene.wires.probes.late_s(scene.others(node)[0], node)
        is_late = late_s and min(late_s) >= least_s and max(late_s) >= max(least_s, most_s / 30)
        words = ", ".join(f"{seconds * 1000:.1f}" for seconds in late_s)
        return "" if is_late else f"words to {node} took {words or 'for ever, and not'} ms"

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
