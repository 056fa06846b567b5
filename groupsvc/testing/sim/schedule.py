"""When which nemesis works: drawn from the seed, one after the other, sometimes two or three at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .nemeses import BY_NAME
from .nemesis import Nemesis

if TYPE_CHECKING:
    from .world import World


class Schedule:
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
