"""k-means on Spark, twice: with a job for every iteration, and with one job whose tasks meet at a barrier.

The points lie around eight centres in the plane, made on the spot, a part of them in each partition. An iteration
assigns every point to its nearest centre and moves each centre to the mean of its points. Plain Spark does that as one
job per iteration: plan it, send tasks, collect sums, broadcast the new centres. With ``barrier_task`` the tasks start
once, keep their points, and exchange sums in an all-gather; nothing comes back to the driver before the last iteration.

    python examples/spark/kmeans.py
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from groupsvc.spark import Via, barrier_task, embedded

PARTITIONS = 4
POINTS = 20_000
CENTRES = 8
ITERATIONS = 30


def main() -> None:
    """A Spark of its own, on this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need what this program needs
    spark = SparkSession.builder.master(f"local[{PARTITIONS}]").appName("k-means").getOrCreate()
    try:
        run(spark)
    finally:
        spark.stop()


def run(spark: Any) -> None:
    """Both ways, and whether they come to the same."""
    parts = spark.sparkContext.parallelize(range(PARTITIONS), PARTITIONS).map(points_of).cache()
    parts.count()  # workers are started, the points are made
    began = time.monotonic()
    plain = with_jobs(spark, parts)
    after_jobs = time.monotonic()
    with embedded(spark) as service:
        way = service.via
        started = time.monotonic()
        together = parts.mapPartitions(lambda rows: with_barrier(rows, way)).collect()
        ended = time.monotonic()
    jobs_s, barrier_s = after_jobs - began, ended - started
    print(f"{ITERATIONS} iterations over {PARTITIONS * POINTS} points in {PARTITIONS} partitions")
    print(f"a job per iteration: {jobs_s:.2f} s")
    print(f"one job and a barrier: {barrier_s:.2f} s, {jobs_s / barrier_s:.1f} times as fast")
    print("all tasks have the same centres:", all(np.array_equal(one, together[0]) for one in together))
    print("both ways come to the same centres:", np.allclose(np.sort(plain, axis=0), np.sort(together[0], axis=0)))


def points_of(partition: int) -> np.ndarray:
    """Points around their centres."""
    draw = np.random.default_rng(partition)
    return true_centres()[draw.integers(CENTRES, size=POINTS)] + draw.normal(scale=0.3, size=(POINTS, 2))


def true_centres() -> np.ndarray:
    """On a circle."""
    angles = np.arange(CENTRES) * 2 * np.pi / CENTRES
    return np.stack([4 * np.cos(angles), 4 * np.sin(angles)], axis=1)


def first_centres() -> np.ndarray:
    """Where the search begins: somewhere near."""
    return true_centres() * 0.5 + np.random.default_rng(1).normal(scale=0.2, size=(CENTRES, 2))


def sums(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """For each centre the sum of the points that are nearest to it, and their number."""
    nearest = np.argmin(((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2), axis=1)
    found = np.zeros((CENTRES, 3))
    np.add.at(found, nearest, np.column_stack([points, np.ones(len(points))]))
    return found


def moved(centres: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Each centre in the middle of its points; one without points stays."""
    return np.where(total[:, 2:] > 0, total[:, :2] / np.maximum(total[:, 2:], 1), centres)


def with_jobs(spark: Any, parts: Any) -> np.ndarray:
    """As it is usually done."""
    centres = first_centres()
    for _ in range(ITERATIONS):
        known = spark.sparkContext.broadcast(centres)
        total = parts.map(lambda points, known=known: sums(points, known.value)).reduce(lambda a, b: a + b)
        centres = moved(centres, total)
    return centres


def with_barrier(rows: Iterator[np.ndarray], way: Via) -> Iterator[np.ndarray]:
    """The same inside of one task: what others have summed up comes by an all-gather."""
    points = np.concatenate(list(rows))
    centres = first_centres()
    with barrier_task("k-means", parties=PARTITIONS, via=way) as task:
        for _ in range(ITERATIONS):
            parts = task.all_gather(sums(points, centres).tobytes())
            total = sum(np.frombuffer(part).reshape(CENTRES, 3) for part in parts.values())  # in the order of the ranks
            centres = moved(centres, total)
    yield centres


if __name__ == "__main__":
    main()
