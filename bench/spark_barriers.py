"""Barriers inside of Spark tasks: eight tasks of one stage wait for each other, by ours and by Spark's own.

It is a barrier stage, so that the same tasks can do both, one after the other. Spark's barrier looks once a second
whether the others have come; ours is told. All times of all tasks count, and in no round of either may a task go before
all have come. Before each series they meet at ours: tasks leave Spark's barrier up to two seconds apart.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from groupsvc.spark import barrier_task
from groupsvc.testing import LocalDomain

from .row import Effort, Row, at_least, at_most, not_measured
from .spark_session import environment, session, why_not

TASKS = 8
PAYLOAD = b"x" * 1_000_000
WARM_UP_ROUNDS = 30

NAMES = ("barrier of 8 Spark tasks", "the same: Spark's own takes", "all-gather of 8 x 1 MB in Spark tasks")

Spans = dict[str, list[tuple[float, float]]]
"""When each call of one task began and ended, by the clock that all tasks of a machine share."""

Times = dict[str, list[float]]


def rates(effort: Effort) -> list[Row]:
    """A job for each run, in one Spark session, beside one daemon."""
    problem = why_not()
    if problem is not None:
        return [not_measured(name, problem) for name in NAMES]
    with (
        tempfile.TemporaryDirectory(prefix="groupsvc-spark-") as directory,
        LocalDomain(nodes=1) as domain,
        environment(GROUPSVC_ADDRESS=domain.address("n1")),
        session(f"local[{TASKS}]", Path(directory)) as spark,
    ):
        stage = spark.sparkContext.parallelize(range(TASKS), TASKS).barrier()
        few, many = effort.choose(5, 3), effort.choose(300, 50)
        runs = [_together(stage.mapPartitions(lambda _: series(few, many)).collect()) for _ in range(effort.runs)]
    return [
        at_most(NAMES[0], "ms", [[1000 * one for one in run["wait"]] for run in runs], median_max=2.0),
        at_least(
            NAMES[1], "x ours", [[_ratio(run, "barrier", "wait")] for run in runs], median_min=500,
            note=_note(runs, "wait", "barrier"),
        ),
        at_most(
            NAMES[2], "x Spark's", [[_ratio(run, "all_gather", "allGather")] for run in runs], median_max=1.0,
            note=_note(runs, "all_gather", "allGather"),
        ),
    ]  # fmt: skip


def series(few: int, many: int) -> Iterator[Spans]:
    """What one task does, and from when to when each call took."""
    from pyspark import BarrierTaskContext

    spark = BarrierTaskContext.get()
    text = PAYLOAD.decode()
    with barrier_task("bench", parties=TASKS) as task:
        _timed(task.wait, WARM_UP_ROUNDS)
        found = {"wait": _timed(task.wait, many)}
        for name, call in {
            "barrier": spark.barrier,
            "all_gather": lambda: task.all_gather(PAYLOAD),
            "allGather": lambda: spark.allGather(text),
        }.items():
            task.wait()
            found[name] = _timed(call, few)
        task.wait()
    yield found


def _timed(call: Callable[[], object], rounds: int) -> list[tuple[float, float]]:
    spans = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        spans.append((began, time.perf_counter()))
    return spans


def _together(tasks: list[Spans]) -> Times:
    """How long all calls took; raises if somebody left a round before all had come to it."""
    for name in tasks[0]:
        for number, spans in enumerate(zip(*(task[name] for task in tasks), strict=True)):
            if min(left for _, left in spans) < max(came for came, _ in spans):
                raise AssertionError(f"round {number} of {name} let a task go before all had come")
    return {name: [left - came for task in tasks for came, left in task[name]] for name in tasks[0]}


def _ratio(run: Times, over: str, under: str) -> float:
    return statistics.median(run[over]) / statistics.median(run[under])


def _note(runs: list[Times], ours: str, theirs: str) -> str:
    mine, its = (1000 * statistics.median(statistics.median(run[name]) for run in runs) for name in (ours, theirs))
    return f"ours {mine:.3g} ms, Spark's {its:.4g} ms (medians)"
