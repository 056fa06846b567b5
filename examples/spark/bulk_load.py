"""A load that is there as a whole, or not at all.

Each task writes its part into a *staging* directory of this load, which nobody reads, looks whether its rows are good,
and votes. If all vote for it, rank 0 gives the directory its name: one rename, which is the decision for whoever reads.
Then all wait until rank 0 says which it was. What happens when a task dies:

    before the vote    a vote never comes, and nobody commits. Spark runs all tasks again, which write their parts anew
    after the vote,    nobody sees anything of the load yet. Spark runs all tasks again: the same parts are written over
    before the rename  those that are there, and voted on again
    after the rename   all of it is there. Spark runs all tasks again; rank 0 finds the directory under its name, throws
                       the new parts away, and says that the load is committed. What was decided stays

Had every task moved its own file after the vote, one that died in between would leave a part of the load. The directory
must be one that all tasks see, on a file system with an atomic rename; an object store has none.

    python examples/spark/bulk_load.py
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
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
    loads = {"with a bad row": [*range(99), -1], "with good rows": list(range(100))}
    with tempfile.TemporaryDirectory() as target, embedded(spark) as service:
        for number, (title, rows) in enumerate(loads.items()):
            way, name = service.via, f"load-{number}"
            rdd = spark.sparkContext.parallelize(rows, PARTITIONS)
            said = rdd.mapPartitions(lambda part, way=way, name=name: load(part, way, target, name)).collect()
            print(f"{title}: committed {said.count(True)} of {len(said)} partitions, files there: {files(target)}")


def load(rows: Iterator[int], way: Via, target: str, name: str) -> Iterator[bool]:
    """One partition: write, vote, and then what all have decided."""
    with barrier_task("load", parties=PARTITIONS, via=way) as task:
        good = write_part(target, name, task.rank, rows)
        approved = task.vote(good)
        is_there = task.rank == 0 and settle(target, name, approved)
        said = task.all_gather(b"there" if is_there else b"")  # whoever reads now sees all of it, or nothing
        yield said[0] == b"there"


def write_part(target: str, name: str, rank: int, rows: Iterable[int]) -> bool:
    """Put the part of this rank into the staging directory, whole and on the disk; whether its rows are good."""
    directory, draft = staging(target, name), Path(target) / f".{name}.draft-{rank}"
    directory.mkdir(exist_ok=True)
    good = True
    with draft.open("w") as file:
        for row in rows:
            good = good and row >= 0
            file.write(f"{row}\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(directory / f"part-{rank}")  # also over what an earlier attempt has left
    return good


def settle(target: str, name: str, approved: bool) -> bool:
    """What rank 0 does after the vote: one rename, unless an earlier attempt has done it. Whether the load is there."""
    directory, final = staging(target, name), Path(target) / name
    if approved and not final.exists():
        sync(directory)
        directory.rename(final)
        sync(Path(target))
    else:
        shutil.rmtree(directory)
    return final.exists()


def staging(target: str, name: str) -> Path:
    """Where the parts of a load are until it is decided."""
    return Path(target) / f".{name}.staging"


def sync(directory: Path) -> None:
    """What was put into it stays there, also without power."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def files(target: str) -> int:
    """How many parts are there for whoever reads."""
    return sum(len(os.listdir(one)) for one in Path(target).iterdir() if not one.name.startswith("."))


if __name__ == "__main__":
    main()
