"""A training loop on Spark whose tasks average their steps in every round, and of which one is killed.

The data lie on a line with some noise. With ``on_failure="wait"`` the others wait in their round for the task that
Spark starts in the place of the dead one. That one reads what came out of the rounds before (``results``), so it
has the model that all others have, and goes on with the step they are at. Nothing is done twice.

    python examples/spark/training.py
"""

from __future__ import annotations

import os
import random
import signal
import struct
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from groupsvc.spark import Via, barrier_task, embedded

PARTITIONS = 4
ROUNDS = 100
RATE = 0.3
STEP = "!dd"

Model = tuple[float, float]


def main() -> None:
    """A Spark of its own; local tasks are tried again if it is told so."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need what this program needs
    spark = SparkSession.builder.master(f"local[{PARTITIONS},4]").appName("training").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        run(spark)
    finally:
        spark.stop()


def run(spark: Any) -> None:
    """Four tasks; partition 2 is killed in round 40."""
    with tempfile.TemporaryDirectory() as directory, embedded(spark) as service:
        way, grave = service.via, str(Path(directory) / "partition 2 was killed")
        rdd = spark.sparkContext.parallelize(range(PARTITIONS), PARTITIONS)
        found = sorted(rdd.mapPartitions(lambda rows: train(rows, way, grave)).collect())
    for rank, first, model in found:
        print(f"task {rank} began with round {first} and has y = {model[0]:.1f} x + {model[1]:.1f}")
    print("all have the same model:", len({model for _, _, model in found}) == 1)


def train(rows: Iterator[int], way: Via, grave: str) -> Iterator[tuple[int, int, Model]]:
    """One task, from its first step to its last."""
    with barrier_task("training", parties=PARTITIONS, via=way, on_failure="wait") as task:
        first, model = task.round, (0.0, 0.0)
        for released in task.results():
            model = stepped(model, released.payloads.values())
        points = points_of(task.rank)
        for step in range(first, ROUNDS):
            if (task.rank, step) == (2, 40) and not os.path.exists(grave):
                Path(grave).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            model = stepped(model, task.all_gather(gradient(points, model)).values())
        yield task.rank, first, model


def points_of(rank: int) -> list[tuple[float, float]]:
    """A part of the data."""
    draw = random.Random(rank)
    return [(x, 3 * x + 1 + draw.gauss(0, 0.1)) for x in (draw.uniform(-1, 1) for _ in range(200))]


def gradient(points: list[tuple[float, float]], model: Model) -> bytes:
    """The step that these points ask for."""
    errors = [(x, model[0] * x + model[1] - y) for x, y in points]
    return struct.pack(
        STEP, sum(x * error for x, error in errors) / len(points), sum(e for _, e in errors) / len(points)
    )


def stepped(model: Model, steps: Iterable[bytes]) -> Model:
    """The model after the average of these steps; added in the order of the ranks, so equal to the last bit."""
    pairs = [struct.unpack(STEP, step) for step in steps]
    slope, offset = (sum(pair[n] for pair in pairs) / len(pairs) for n in (0, 1))
    return model[0] - RATE * slope, model[1] - RATE * offset


if __name__ == "__main__":
    main()
