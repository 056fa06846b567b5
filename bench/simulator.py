"""How much simulated history a core makes in a second: a calm domain with all beats at their defaults."""

from __future__ import annotations

import statistics
import time

from groupsvc.testing.sim.world import World

from .row import Effort, Row

STEPS_PER_S_MIN = 20_000


def measure(effort: Effort) -> list[Row]:
    """Engine steps and simulated seconds per second of processor time."""
    steps, seconds = [], []
    for run in range(effort.runs):
        world = World(seed=run + 1, nodes=3)
        world.run(until=5.0)
        steps_before, t_before, began = world.steps, world.t, time.process_time()
        world.run(until=world.t + effort.choose(300, 60))
        took = time.process_time() - began
        if world.failures:
            raise RuntimeError(f"the simulator found a bug instead: {world.failures[0]}")
        steps.append((world.steps - steps_before) / took)
        seconds.append((world.t - t_before) / took)
    median = statistics.median(steps)
    return [
        Row(
            name="simulator, engine steps",
            unit="per core-second",
            bound=f"median >= {STEPS_PER_S_MIN:,}",
            median=median,
            worst=min(steps),
            samples=len(steps),
            ok=median >= STEPS_PER_S_MIN,
            note=f"{statistics.median(seconds):,.0f} simulated seconds per second",
        )
    ]
