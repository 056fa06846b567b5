"""A standalone cluster whose two workers play two nodes, each with a daemon of its own: deaths, retries, copies."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groupsvc.errors import UsageError
from groupsvc.spark import Fenced, Via, barrier_task, embedded
from groupsvc.spark.audit import audit
from groupsvc.spark.rendezvous import own_host
from groupsvc.testing import LocalDomain
from groupsvc.testing.made_journals import Shape, make_journals

from .spark_sessions import environment, needs_spark, session

pytestmark = needs_spark

SETTINGS = {
    "spark.executor.cores": "2",
    "spark.executor.memory": "512m",
    "spark.speculation": "true",  # for all tests here: a copy that Spark starts must not disturb anybody
    "spark.speculation.quantile": "0.5",
    "spark.speculation.interval": "200ms",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",  # executors are still on their way
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "60",
}


@pytest.fixture(scope="module")
def spark(two_nodes: LocalDomain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two executors of two cores, one on each node."""
    from .standalone import Standalone

    directory = tmp_path_factory.mktemp("standalone")
    with (
        environment(),
        Standalone(two_nodes, directory, cores=2) as cluster,
        session(cluster.master, directory, **SETTINGS) as spark,
    ):
        yield spark


def wait_until_left(domain: LocalDomain) -> None:
    def nobody() -> bool:
        with domain.connect("n1") as asked:
            return not [one for one in asked.groups() if one.name.startswith("_spark/")]

    domain.wait_until(nobody, "all tasks have left")


def test_fifty_rounds_over_two_nodes(spark: Any, two_nodes: LocalDomain) -> None:
    """SPK-01, SPK-03, SPK-04: every task finds the daemon of its node, and all synchronise."""

    def work(rows: Any) -> Any:
        with barrier_task("rounds", parties=4) as task:
            for _ in range(50):
                parts = task.all_gather(os.environ["GROUPSVC_ADDRESS"].encode())
            yield task.rank, task.round, sorted({part.decode() for part in parts.values()})

    rdd = spark.sparkContext.parallelize(range(4), 4).barrier().mapPartitions(work)
    both = [two_nodes.address("n1"), two_nodes.address("n2")]
    assert [(rank, 50, both) for rank in range(4)] == sorted(rdd.collect())
    wait_until_left(two_nodes)


def test_a_megabyte_from_each_over_two_nodes(spark: Any, two_nodes: LocalDomain) -> None:
    """SPK-02: half of what each task gets comes from the other node."""

    def work(rows: Any) -> Any:
        with barrier_task("large", parties=4) as task:
            for _ in range(2):
                payloads = task.all_gather(bytes([task.rank]) * 1_000_000)
            parts = [(len(part), part[:1], part == part[:1] * len(part)) for part in payloads.values()]
            yield os.environ["GROUPSVC_ADDRESS"], parts

    found = spark.sparkContext.parallelize(range(4), 4).barrier().mapPartitions(work).collect()
    assert {two_nodes.address("n1"), two_nodes.address("n2")} == {address for address, _ in found}
    assert [[(1_000_000, bytes([rank]), True) for rank in range(4)]] * 4 == [parts for _, parts in found]
    wait_until_left(two_nodes)


def test_tasks_meet_where_the_rendezvous_says_and_reduce_to_the_same(spark: Any, two_nodes: LocalDomain) -> None:
    """SPK-02: each connects to the leader, at an address that machines outside would reach, too, if there are any."""

    def work(rows: Any) -> Any:
        with socket.create_server(("", 0)) as listener, barrier_task("meet", parties=4) as task:
            listener.settimeout(30)
            where = task.rendezvous(listener.getsockname()[1])
            met = []
            for _ in range(3 if where.leads else 0):
                with listener.accept()[0] as other:
                    met.append(other.recv(1)[0])
            if not where.leads:
                host, port = where.leader.rsplit(":", 1)
                with socket.create_connection((host, int(port)), timeout=30) as leader:
                    leader.sendall(bytes([task.rank]))
            yield task.rank, sorted(met), task.reduce(bytes([task.rank]), lambda a, b: a + b), where.leader

    found = sorted(spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect())
    leader = found[0][3]
    assert [(rank, [] if rank else [1, 2, 3], b"\0\1\2\3", leader) for rank in range(4)] == found
    assert own_host() == leader.rsplit(":", 1)[0]
    wait_until_left(two_nodes)


def test_the_error_names_address_and_host_on_a_cluster(spark: Any) -> None:
    """SPK-04: an executor that cannot reach a daemon."""
    way = Via("tcp://127.0.0.1:1")

    def work(rows: Any) -> Any:
        with barrier_task("nowhere", parties=1, via=way) as task:
            yield task.wait().round

    with pytest.raises(Exception, match=rf"tried tcp://127\.0\.0\.1:1 from host {socket.gethostname()}") as found:
        spark.sparkContext.parallelize(range(1), 1).mapPartitions(work).collect()
    assert "open to the executors" in str(found.value)


def test_an_executor_that_is_killed_is_replaced_and_the_others_wait(
    spark: Any, two_nodes: LocalDomain, tmp_path: Path
) -> None:
    """SPK-03: SIGKILL of a JVM with two tasks, "wait": the others do every round once, the new ones read the rest."""
    once = str(tmp_path / "once")

    def work(rows: Any) -> Any:
        with barrier_task("killed", parties=4, on_failure="wait") as task:
            began = task.round
            total = sum(int(part) for released in task.results() for part in released.payloads.values())
            for step in range(task.round, 10):
                if step == 5 and task.rank == 3 and not os.path.exists(once):
                    open(once, "w").close()
                    with open(f"/proc/{os.getppid()}/stat") as stat:
                        os.kill(int(stat.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
                    threading.Event().wait(60)
                total += sum(int(part) for part in task.wait(str(step).encode()).payloads.values())
            yield task.rank, began, task.round, total

    found = sorted(spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect())
    assert [(rank, 10, 180) for rank in range(4)] == [(rank, ended, total) for rank, _, ended, total in found]
    began = [first for _, first, _, _ in found]
    assert began.count(0) == 2, found
    assert {5, 6} >= set(began) - {0}, found
    wait_until_left(two_nodes)


def test_a_barrier_stage_that_spark_runs_again(spark: Any, two_nodes: LocalDomain, tmp_path: Path) -> None:
    """SPK-03: one task raises in a map stage; Spark runs all tasks of the stage again, and they begin anew."""
    once = str(tmp_path / "once")

    def work(rows: Any) -> Any:
        with barrier_task("stage", parties=4) as task:
            first = task.round
            for step in range(5):
                task.wait()
                if step == 2 and task.rank == 1 and not os.path.exists(once):
                    open(once, "w").close()
                    raise RuntimeError("bad row")
            yield task.rank % 2, first + task.round

    rdd = spark.sparkContext.parallelize(range(4), 4).barrier().mapPartitions(work)
    assert {0: 10, 1: 10} == dict(rdd.reduceByKey(lambda a, b: a + b, 2).collect())
    wait_until_left(two_nodes)


def test_a_speculative_copy_takes_the_place_of_a_slow_task_which_is_fenced(
    spark: Any, two_nodes: LocalDomain, tmp_path: Path
) -> None:
    """SPK-03: partition 3 is slow, so Spark runs a copy. Both live: the copy goes on, and the other ends no round."""
    entered, fenced = tmp_path / "the copy is in", tmp_path / "the slow one is out"

    def work(rows: Any) -> Any:
        from pyspark import TaskContext

        def wait_for(path: Path) -> None:
            for _ in range(600):
                if path.exists() or threading.Event().wait(0.1):
                    return

        with barrier_task("copy", parties=4, on_failure="wait") as task:
            attempt, began = TaskContext.get().attemptNumber(), task.round
            for _ in range(began, 3):
                task.wait()
            if task.rank == 3 and attempt == 0:
                wait_for(entered)
                try:
                    task.wait(timeout=30)
                except Fenced as problem:
                    fenced.with_suffix(".new").write_text(str(problem))
                    fenced.with_suffix(".new").rename(fenced)
                threading.Event().wait(60)  # until Spark ends it: the copy has won
            if task.rank == 3:
                entered.touch()
                wait_for(fenced)
            yield task.rank, attempt, began, task.round

    found = sorted(spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect())
    assert [(0, 3), (1, 3), (2, 3), (3, 3)] == [(rank, ended) for rank, _, _, ended in found]
    assert 3 == found[3][2], "the copy knows that three rounds are over"
    assert 0 < found[3][1]
    assert "partition 3 (task attempt" in fenced.read_text()
    wait_until_left(two_nodes)


def test_a_daemon_beside_the_driver_for_all_executors(spark: Any) -> None:
    """SPK-04: with generated keys, at the address that executors reach the driver at."""
    with embedded(spark) as service:
        way = service.via

        def work(rows: Any) -> Any:
            with barrier_task("embedded", parties=4, via=way) as task:
                yield task.vote(True), task.broadcast(b"from 0").decode()

        found = spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect()
        assert [(True, "from 0")] * 4 == found


def test_an_audit_on_workers_writes_only_where_all_of_them_reach(spark: Any, tmp_path: Path) -> None:
    """SPK-06: what each worker wrote where it runs nobody would find again, and nothing would contradict anything."""
    made = make_journals(tmp_path / "made", Shape(blocks=60, groups=1, view_every=20, level="batch"), plants=["G3"])
    for places in ({"out": tmp_path / "out"}, {"out": (tmp_path / "out").as_uri(), "work": str(tmp_path / "work")}):
        with pytest.raises(UsageError, match="name a place that all of them reach"):
            audit(spark, [made.directory], **places)
    out = (tmp_path / "out").as_uri()
    result = audit(spark, [made.directory], out, work=(tmp_path / "work").as_uri())
    assert {"G3"} == {one.invariant for one in result.violations}
    assert made.lines == result.findings.lines
    assert {"G3": 5} == json.loads((tmp_path / "out" / "summary.json").read_text())["violations"]
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
