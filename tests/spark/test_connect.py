"""Spark Connect: no RDDs and no SparkContext; tasks synchronise in mapInPandas and mapInArrow as everywhere."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from groupsvc.spark import barrier_task, embedded
from groupsvc.testing import LocalDomain

from .spark_sessions import QUIET, end_jvm, environment, needs_spark

pytestmark = [
    *needs_spark,
    pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="grpcio is missing: pip install '.[spark]'"),
]


@pytest.fixture(scope="module")
def spark(two_nodes: LocalDomain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server with four slots, and its client."""
    from pyspark.sql import SparkSession

    warehouse = {"spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("connect") / "warehouse")}
    with environment(GROUPSVC_ADDRESS=two_nodes.address("n1")):
        builder = SparkSession.builder.remote("local[4]").appName("groupsvc-tests")
        for name, value in {**QUIET, **warehouse}.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()
            end_jvm()


@pytest.mark.parametrize("barrier", [False, True], ids=["ordinary stage", "barrier stage"])
def test_rounds_in_pandas_and_arrow(spark: Any, barrier: bool) -> None:
    """SPK-03: both functions, both kinds of stages."""

    def in_pandas(frames: Any) -> Any:
        import pandas

        with barrier_task("pandas", parties=4) as task:
            rows = sum(len(frame) for frame in frames)
            for _ in range(10):
                parts = task.all_gather(str(rows).encode())
            total = sum(int(part) for part in parts.values())
            yield pandas.DataFrame({"rank": [task.rank], "total": [total], "rounds": [task.round]})

    def in_arrow(batches: Any) -> Any:
        import pyarrow

        with barrier_task("arrow", parties=4) as task:
            rows = sum(batch.num_rows for batch in batches)
            for _ in range(10):
                parts = task.all_gather(str(rows).encode())
            values = [task.rank, sum(int(part) for part in parts.values()), task.round]
            columns = [pyarrow.array([value], pyarrow.int64()) for value in values]
            yield pyarrow.RecordBatch.from_arrays(columns, ["rank", "total", "rounds"])

    frame = spark.range(1000).repartition(4)
    schema = "rank long, total long, rounds long"
    for made in (
        frame.mapInPandas(in_pandas, schema, barrier=barrier),
        frame.mapInArrow(in_arrow, schema, barrier=barrier),
    ):
        found = sorted((row["rank"], row["total"], row["rounds"]) for row in made.collect())
        assert [(rank, 1000, 10) for rank in range(4)] == found


def test_a_daemon_beside_the_client(spark: Any) -> None:
    """SPK-04: its way travels with the function."""
    with embedded(spark) as service:
        way = service.via

        def in_pandas(frames: Any) -> Any:
            import pandas

            with barrier_task("embedded", parties=4, via=way) as task:
                list(frames)
                yield pandas.DataFrame({"leader": [task.broadcast(f"rank {task.rank}".encode()).decode()]})

        found = spark.range(100).repartition(4).mapInPandas(in_pandas, "leader string").collect()
        assert ["rank 0"] * 4 == [row["leader"] for row in found]


def test_a_task_that_fails_fails_the_query_and_the_next_one_begins_anew(spark: Any, two_nodes: LocalDomain) -> None:
    """SPK-01, SPK-03: nobody hangs in the round that it does not come to, and nobody is left of it."""

    def fails(frames: Any) -> Any:
        with barrier_task("fails", parties=2) as task:
            task.wait()
            yield from frames
            if task.rank == 1:
                raise RuntimeError("bad row")
            task.wait()

    def works(frames: Any) -> Any:
        with barrier_task("fails", parties=2) as task:
            task.wait()
            yield from frames

    frame = spark.range(0, 1000, 1, 2)
    with pytest.raises(Exception, match=r"bad row|partition 1"):
        frame.mapInPandas(fails, "id long").count()
    assert 1000 == frame.mapInPandas(works, "id long").count()

    def nobody() -> bool:
        with two_nodes.connect("n1") as asked:
            return not [one for one in asked.groups() if one.name.startswith("_spark/")]

    two_nodes.wait_until(nobody, "all tasks have left")


def test_the_daemon_ends_with_the_session_of_its_client(
    spark: Any, two_nodes: LocalDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPK-04: the server goes on, and other clients with it."""
    monkeypatch.delenv("SPARK_LOCAL_REMOTE")  # else the first client that stops takes the server along
    other = spark.newSession()
    service = embedded(other)
    assert service.pid is not None
    other.stop()
    two_nodes.wait_until(lambda: service.pid is None, "it has ended")
    assert 1 == spark.range(1).count()
