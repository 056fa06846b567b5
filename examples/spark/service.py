"""A service that stays up inside of a Spark job: three tasks want to lead it, one does, and that one is killed.

The service gives out numbers. Each task stands in line for the lead (an election); the first serves, the others wait.
When the leader's process is killed the next in line leads at once, reads in the ledger how far it was, and goes on.
Spark starts the killed task again; it comes to the end of the line. What they write has the fence of their lead with
it, which is higher for every next leader, and the ledger takes nothing with a lower one than it has seen.

    python examples/spark/service.py
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import groupsvc
from groupsvc.spark import Via, embedded

TASKS = 3
NUMBERS = 30
KILLED_AT = 10


def main() -> None:
    """A Spark of its own; local tasks are tried again if it is told so."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers need what this program needs
    spark = SparkSession.builder.master(f"local[{TASKS},4]").appName("service").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        run(spark)
    finally:
        spark.stop()


def run(spark: Any) -> None:
    """The job, and what stands in the ledger after it."""
    with tempfile.TemporaryDirectory() as directory, embedded(spark) as service:
        way, ledger = service.via, Ledger(Path(directory) / "ledger")
        rdd = spark.sparkContext.parallelize(range(TASKS), TASKS)
        rdd.foreachPartition(lambda _: serve(way, ledger))
        lines = ledger.lines()
    fences = [fence for fence, _ in lines]
    print(f"numbers 1 to {NUMBERS}, each once: {[number for _, number in lines] == list(range(1, NUMBERS + 1))}")
    print(f"leaders: {len(set(fences))}, each with a higher fence: {fences == sorted(fences)}")
    print(f"the second one went on after number {fences.count(fences[0])}")


def serve(way: Via, ledger: Ledger) -> None:
    """One task: wait for the lead, and serve until there is nothing left to do."""

    def lead(leadership: groupsvc.HeldInTurn[Any]) -> None:
        for number in range(len(ledger.lines()) + 1, NUMBERS + 1):
            leadership.check()  # by its own clock: raises if nobody vouches for the lead any more
            ledger.write(leadership.fence, number)
            if number == KILLED_AT:
                os.kill(os.getpid(), signal.SIGKILL)

    with groupsvc.connect(way.address, keys=way.keys) as session:
        session.election("numbers").run(lead, timeout=60)


class Ledger:
    """A file that takes no line whose fence is lower than one that it has."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[tuple[int, int]]:
        """Fence and number of each, in their order."""
        text = self.path.read_text() if self.path.exists() else ""
        return [(int(fence), int(number)) for fence, number in (line.split() for line in text.splitlines())]

    def write(self, fence: int, number: int) -> None:
        """One line more."""
        if any(fence < other for other, _ in self.lines()):
            raise PermissionError(f"somebody leads with a higher fence than {fence}")
        with self.path.open("a") as file:
            file.write(f"{fence} {number}\n")


if __name__ == "__main__":
    main()
