"""Four processes train one model together: each has a part of the data, and all average their steps in every round.

The data lie on a line with some noise. In each round every worker computes the step that its own part asks for, brings
it to a barrier, and goes on with the average of all: an all-reduce. When one of them is killed the others are told
at once who it was, make the barrier whole again, and go on without it from the model that they all have.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import random
import signal
import struct
import time

import groupsvc
from groupsvc.testing import LocalDomain

GROUP = "training"
WORKERS = 4
ROUNDS = 300
RATE = 0.1
SPAWN = multiprocessing.get_context("spawn")
STEP = struct.Struct("!ddi")
"""A worker's step for both coefficients, and how many steps were added up in it."""


def main() -> None:
    """Four workers on three nodes; one of them dies in round 100."""
    with LocalDomain(nodes=3) as domain:
        workers = [
            SPAWN.Process(target=work, args=(number, domain.address(domain.names[number % 3])))
            for number in range(WORKERS)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(50)


def work(number: int, address: str) -> None:
    """One worker, from its first step to its last."""
    draw = random.Random(number)
    points = [(x, 3 * x + 1 + draw.gauss(0, 0.1)) for x in (draw.uniform(-1, 1) for _ in range(200))]
    slope = offset = 0.0
    with groupsvc.connect(address) as session, session.join(GROUP, name=f"worker-{number}") as group:
        group.barrier("start", parties=WORKERS).wait(timeout=20)
        barrier = group.barrier("step")  # of all who are there
        for step in range(ROUNDS):
            if (number, step) == (2, 100):
                time.sleep(1.0)  # the others wait by now
                os.kill(os.getpid(), signal.SIGKILL)
            mine = gradient(points, slope, offset)
            try:
                added = barrier.reduce(mine, add, timeout=20)
            except groupsvc.BarrierBroken as broken:
                dead = ", ".join(provider.name for provider in broken.who)
                say(f"worker-{number}: step {step} did not happen, {dead} is gone ({broken.why})")
                barrier.reset(timeout=20)
                added = barrier.reduce(mine, add, timeout=20)
            d_slope, d_offset, count = STEP.unpack(added)
            slope, offset = slope - RATE * d_slope / count, offset - RATE * d_offset / count
        models = set(barrier.all_gather(struct.pack("!dd", slope, offset), timeout=20).values())
        if group.is_oldest:
            say(f"{count} workers are left, and all have the same model: {len(models) == 1}")
            say(f"y = {slope:.1f} x + {offset:.1f}")
        barrier.wait(timeout=20)  # nobody leaves before the oldest has spoken


def gradient(points: list[tuple[float, float]], slope: float, offset: float) -> bytes:
    """The step that these points ask for."""
    errors = [(x, slope * x + offset - y) for x, y in points]
    count = len(points)
    return STEP.pack(sum(x * error for x, error in errors) / count, sum(error for _, error in errors) / count, 1)


def add(one: bytes, other: bytes) -> bytes:
    """Two steps in one; everybody adds them in the same order, so all have the same sum to the last bit."""
    return STEP.pack(*(a + b for a, b in zip(STEP.unpack(one), STEP.unpack(other), strict=True)))


say = functools.partial(print, flush=True)

if __name__ == "__main__":
    main()
