"""A load in which all partitions commit, or none.

Each task writes its rows to a file of its own beside the target, looks whether they are good, and votes. Only if all
tasks vote for it each of them moves its file to its place; else it removes it. A task that dies before the vote is a
vote that never comes: nobody commits.

    python examples/spark/bulk_load.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groupsvc.spark import Via, barrier_task, embedded

PARTITIONS = 4


def main() -> None:
    """A Spark of its own, on this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need what this program needs
    spark = SparkSession.builder.master(f"local[{PARTITIONS}]").appName("bulk load").getOrCreate()
    try:
        run(spark)
    finally:
        spark.stop()


def run(spark: Any) -> None:
    """Two loads: one with a bad row, one without."""
    with tempfile.TemporaryDirectory() as target, embedded(spark) as service:
        for title, rows in (("with a bad row", [*range(99), -1]), ("with good rows", list(range(100)))):
            way = service.via
            rdd = spark.sparkContext.parallelize(rows, PARTITIONS)
            said = rdd.mapPartitions(lambda part, way=way: load(part, way, target)).collect()
            print(f"{title}: committed {said.count(True)} of {len(said)} partitions, files there: {files(target)}")


def load(rows: Iterator[int], way: Via, target: str) -> Iterator[bool]:
    """One partition: write, vote, and then what all have decided."""
    with barrier_task("load", parties=PARTITIONS, via=way) as task:
        draft, final = Path(target) / f".part-{task.rank}.draft", Path(target) / f"part-{task.rank}"
        good = True
        with draft.open("w") as file:
            for row in rows:
                good = good and row >= 0
                file.write(f"{row}\n")
            file.flush()
            os.fsync(file.fileno())
        committed = task.vote(good)
        if committed:
            draft.rename(final)
        else:
            draft.unlink()
        task.wait()  # whoever reads the target now sees all of it, or nothing
        yield committed


def files(target: str) -> int:
    """How many are in their place."""
    return len([name for name in os.listdir(target) if not name.startswith(".")])


if __name__ == "__main__":
    main()
