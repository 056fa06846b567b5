"""Nobody: a run without harm, by which the harness itself is tried."""

from __future__ import annotations

import random
from typing import Any

from ..nemesis import Nemesis, Scene


class Calm(Nemesis):
    """Does nothing."""

    name = "none"
    nodes_min = 1

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        return None
