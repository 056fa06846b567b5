"""Tasks of real Spark in local mode: RDDs, DataFrames, ordinary and barrier stages, failures, kills, cancellation."""

from __future__ import annotations

import os
import runpy
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import groupsvc
from groupsvc.spark import TasksBroken, Via, barrier_task, embedded
from groupsvc.testing import LocalDomain
from tests.interop.guide_pages import MARK, blocks_of, program_of
from tests.interop.programs import Program

from .spark_sessions import environment, needs_spark, session

pytestmark = needs_spark


@pytest.fixture(scope="module")
def spark(two_nodes: LocalDomain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """local[8], whose workers find the daemon n1 as the one of their node."""
    with (
        environment(GROUPSVC_ADDRESS=two_nodes.address("n1")),
        session("local[8,4]", tmp_path_factory.mktemp("spark")) as spark,
    ):
        yield spark


ROOT = Path(__file__).parents[2]


def test_the_guide_prints_what_its_page_says(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Its Spark session is the one that is there, and its functions travel to the workers as those of a program do."""
    page = ROOT / "docs/guides/spark.md"
    blocks = blocks_of(page.read_text())
    exec(compile(program_of(blocks), page, "exec"), {"__name__": "guide"})
    printed = [piece.removeprefix("\n") for piece in capfd.readouterr().out.split(MARK)]
    for block, piece in zip(blocks, printed, strict=False):
        assert (block.line, block.prints) == (block.line, piece)


EXAMPLES = {
    "bulk_load.py": [
        "with a bad row: committed 0 of 4 partitions, files there: 0",
        "with good rows: committed 4 of 4 partitions, files there: 4",
    ],
    "kmeans.py": ["all tasks have the same centres: True", "both ways come to the same centres: True"],
    "service.py": [
        "numbers 1 to 30, each once: True", "leaders: 2, each with a higher fence: True",
        "the second one went on after number 10",
    ],
    "training.py": [
        "task 0 began with round 0 and has y = 3.0 x + 1.0", "task 2 began with round 40 and has y = 3.0 x + 1.0",
        "all have the same model: True",
    ],
}  # fmt: skip


@pytest.mark.parametrize("example", sorted(path.name for path in (ROOT / "examples/spark").glob("*.py")))
def test_the_example_tells_its_story(spark: Any, capfd: pytest.CaptureFixture[str], example: str) -> None:
    """With the session that is there: a program of its own would need a quarter of a minute for its Spark."""
    runpy.run_path(str(ROOT / "examples/spark" / example), run_name="example")["run"](spark)
    printed = capfd.readouterr().out
    for words in EXAMPLES[example]:
        assert words in printed


def groups_left(domain: LocalDomain) -> list[str]:
    with domain.connect("n1") as asked:
        return [one.name for one in asked.groups() if one.name.startswith("_spark/")]


def wait_until_left(domain: LocalDomain) -> None:
    domain.wait_until(lambda: not groups_left(domain), "all tasks have left")


def test_fifty_rounds_in_an_ordinary_stage(spark: Any, two_nodes: LocalDomain) -> None:
    """SPK-01, SPK-02, SPK-03: eight partitions, fifty rounds, what each brought in every round; then nobody is left."""

    def work(rows: Any) -> Any:
        with barrier_task("rounds", parties=8) as task:
            total = 0
            for _ in range(50):
                released = task.wait(str(task.rank * task.round).encode())
                total += sum(int(part) for part in released.payloads.values())
            yield task.rank, task.world, task.round, total

    found = sorted(spark.sparkContext.parallelize(range(8), 8).mapPartitions(work).collect())
    assert [(rank, 8, 50, 28 * sum(range(50))) for rank in range(8)] == found
    wait_until_left(two_nodes)


def test_a_second_job_under_the_same_name_begins_anew_in_the_same_workers(spark: Any) -> None:
    """SPK-03: workers are used again, and nothing of the first job is left in them."""

    def work(rows: Any) -> Any:
        with barrier_task("again", parties=8) as task:
            yield os.getpid(), task.round, task.wait().round

    rdd = spark.sparkContext.parallelize(range(8), 8)
    first, second = rdd.mapPartitions(work).collect(), rdd.mapPartitions(work).collect()
    assert {(0, 1)} == {one[1:] for one in first + second}
    assert {one[0] for one in first} & {one[0] for one in second}


def test_a_megabyte_from_each(spark: Any) -> None:
    """SPK-02: eight payloads of 1 MB."""

    def work(rows: Any) -> Any:
        with barrier_task("large", parties=8) as task:
            for _ in range(2):
                payloads = task.all_gather(bytes([task.rank]) * 1_000_000)
            yield [(len(part), part[0], part[-1]) for part in payloads.values()]

    found = spark.sparkContext.parallelize(range(8), 8).mapPartitions(work).collect()
    assert [[(1_000_000, rank, rank) for rank in range(8)]] * 8 == found


@pytest.mark.parametrize("barrier", [False, True], ids=["ordinary stage", "barrier stage"])
def test_data_frames(spark: Any, two_nodes: LocalDomain, barrier: bool) -> None:
    """SPK-03: generators of mapInPandas and mapInArrow, in both kinds of stages."""

    def in_pandas(frames: Any) -> Any:
        import pandas

        with barrier_task("pandas", parties=4) as task:
            rows = sum(len(frame) for frame in frames)
            parts = task.all_gather(str(rows).encode())
            yield pandas.DataFrame({"rank": [task.rank], "total": [sum(int(part) for part in parts.values())]})

    def in_arrow(batches: Any) -> Any:
        import pyarrow

        with barrier_task("arrow", parties=4) as task:
            rows = sum(batch.num_rows for batch in batches)
            total = sum(int(part) for part in task.all_gather(str(rows).encode()).values())
            columns = [pyarrow.array([task.rank], pyarrow.int64()), pyarrow.array([total], pyarrow.int64())]
            yield pyarrow.RecordBatch.from_arrays(columns, ["rank", "total"])

    frame = spark.range(1000).repartition(4)
    for made in (frame.mapInPandas, frame.mapInArrow):
        function = in_pandas if made == frame.mapInPandas else in_arrow
        found = made(function, "rank long, total long", barrier=barrier).collect()
        assert [(rank, 1000) for rank in range(4)] == sorted((row.rank, row.total) for row in found)
    wait_until_left(two_nodes)


@pytest.mark.parametrize("kind", ["mapInPandas", "mapInArrow"])
def test_a_generator_that_raises_is_named_to_the_other_which_fails_with_it(
    spark: Any, two_nodes: LocalDomain, tmp_path: Path, kind: str
) -> None:
    """SPK-01, SPK-03: behind its frames or batches; then Spark runs both again, in workers that import pandas anew."""
    once, told = str(tmp_path / "once"), tmp_path / "told"
    path = str(told)

    def work(pieces: Any) -> Any:
        with barrier_task(f"raises/{kind}", parties=2) as task:
            task.wait()
            yield from pieces
            if task.rank == 1 and not os.path.exists(once):
                with open(once, "w"):
                    raise RuntimeError("bad row")
            try:
                task.wait()
            except TasksBroken as broken:
                with open(path, "a") as file:
                    print(task.rank, broken.partitions, broken, file=file)
                raise

    assert 1000 == getattr(spark.range(0, 1000, 1, 2), kind)(work, "id long").count()
    (line,) = told.read_text().splitlines()
    assert line.startswith("0 (1,) barrier "), line
    assert "partition 1" in line.removeprefix("0 (1,)"), line
    wait_until_left(two_nodes)


def test_with_continue_the_others_go_on_without_the_task_that_failed(
    spark: Any, two_nodes: LocalDomain, tmp_path: Path
) -> None:
    """SPK-01: it is missing in what they get, and when Spark runs it again it is waited for as before."""
    went_on = str(tmp_path / "the others went on")

    def work(rows: Any) -> Any:
        from pyspark import TaskContext

        is_second = TaskContext.get().attemptNumber() > 0
        for _ in range(600 if is_second else 0):
            if os.path.exists(went_on) or threading.Event().wait(0.1):
                break
        with barrier_task("continue", parties=4, on_failure="continue") as task:
            came_later, seen = task.round > 0, [sorted(task.wait().payloads)]
            if task.rank == 1 and not is_second:
                raise RuntimeError("bad row")
            while not is_second and (len(seen) == 1 or seen[-1] != [0, 1, 2, 3]):
                seen.append(sorted(task.wait().payloads))
                if seen[-1] == [0, 2, 3]:
                    open(went_on, "w").close()
                    threading.Event().wait(0.02)
            yield task.rank, came_later, seen[:2], seen[-1]

    found = sorted(spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect())
    everybody, living = [0, 1, 2, 3], [0, 2, 3]
    expected = [(rank, False, [everybody, living], everybody) for rank in living]
    assert sorted([*expected, (1, True, [everybody], everybody)]) == found
    wait_until_left(two_nodes)


def test_a_task_that_raises_makes_all_begin_again(spark: Any, two_nodes: LocalDomain, tmp_path: Path) -> None:
    """SPK-03: "break" in an ordinary stage: the others fail, Spark runs all again, and the second run ends well."""
    once = str(tmp_path / "once")

    def work(rows: Any) -> Any:
        with barrier_task("raises", parties=4) as task:
            for step in range(6):
                task.wait()
                if step == 2 and task.rank == 1 and not os.path.exists(once):
                    with open(once, "w"):
                        raise RuntimeError("bad row")
                yield task.rank, step

    found = spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect()
    assert [(rank, step) for rank in range(4) for step in range(6)] == sorted(found)
    wait_until_left(two_nodes)


def test_without_another_try_the_job_fails_and_says_who(spark: Any, two_nodes: LocalDomain) -> None:
    """SPK-01: every attempt of partition 2 raises inside the generator; nobody hangs."""

    def work(rows: Any) -> Any:
        with barrier_task("hopeless", parties=4) as task:
            task.wait()
            if task.rank == 2:
                raise RuntimeError("always")
            task.wait()
            yield 1

    with pytest.raises(Exception, match=r"always|partition 2"):
        spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect()
    wait_until_left(two_nodes)


def test_a_worker_that_is_killed_is_replaced_and_the_others_wait(
    spark: Any, two_nodes: LocalDomain, tmp_path: Path
) -> None:
    """SPK-03: SIGKILL in the middle, "wait": the survivors do each round once, and the next attempt the rest."""
    once = str(tmp_path / "once")

    def work(rows: Any) -> Any:
        with barrier_task("killed", parties=4, on_failure="wait") as task:
            began = task.round
            for step in range(task.round, 10):
                if step == 5 and task.rank == 3 and not os.path.exists(once):
                    open(once, "w").close()
                    os.kill(os.getpid(), signal.SIGKILL)
                task.wait(str(step).encode())
            yield task.rank, began, task.round

    found = sorted(spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect())
    assert [(0, 0, 10), (1, 0, 10), (2, 0, 10), (3, 5, 10)] == found
    wait_until_left(two_nodes)


def test_rows_that_nobody_wants_any_more(spark: Any, two_nodes: LocalDomain) -> None:
    """SPK-01: Spark closes a generator before its end; the task leaves."""

    def work(rows: Any) -> Any:
        with barrier_task("closed", parties=1) as task:
            yield from range(task.wait().round, 10_000_000)

    assert [1, 2, 3] == spark.sparkContext.parallelize(range(1), 1).mapPartitions(work).take(3)
    wait_until_left(two_nodes)


def test_a_cancelled_job_leaves_and_the_next_one_is_not_disturbed(spark: Any, two_nodes: LocalDomain) -> None:
    """SPK-03: tasks that wait in a round are killed by Spark; a job of the same name begins anew at once."""

    def work(rows: Any) -> Any:
        with barrier_task("cancelled", parties=2) as task:
            task.wait()
            if task.rank == 0:
                threading.Event().wait(60)  # the other one waits for it
            task.wait()
            yield 1

    def short(rows: Any) -> Any:
        with barrier_task("cancelled", parties=2) as task:
            yield task.wait().round

    context = spark.sparkContext
    ended: list[BaseException] = []

    def job() -> None:
        context.setJobGroup("to cancel", "a job that is cancelled")
        try:
            context.parallelize(range(2), 2).mapPartitions(work).collect()
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=job)
    thread.start()
    two_nodes.wait_until(lambda: any("/run/" in name for name in groups_left(two_nodes)), "the tasks run")
    context.cancelJobGroup("to cancel")
    assert [1, 1] == context.parallelize(range(2), 2).mapPartitions(short).collect()
    thread.join(30)
    assert ended
    wait_until_left(two_nodes)


def test_a_daemon_beside_the_driver(spark: Any) -> None:
    """SPK-04: tasks reach it with its key; who has none does not; it ends with the block."""
    with embedded(spark) as service:
        assert service.address.startswith("tcp://127.0.0.1:")
        way = service.via

        def work(rows: Any) -> Any:
            with barrier_task("embedded", parties=4, via=way) as task:
                yield task.wait(b"x").round, sorted(task.all_gather(str(task.rank).encode()))

        found = spark.sparkContext.parallelize(range(4), 4).mapPartitions(work).collect()
        assert [(1, [0, 1, 2, 3])] * 4 == found

        def refers(rows: Any) -> Any:
            with barrier_task("embedded", parties=2, via=service) as task:  # it travels as its way
                yield task.wait().round

        assert [1, 1] == spark.sparkContext.parallelize(range(2), 2).mapPartitions(refers).collect()
        with pytest.raises(groupsvc.GroupServiceError):
            groupsvc.connect(service.address, keys=False, timeout=1.0)
        pid = service.pid
        assert pid is not None
    assert service.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_task_finds_the_daemon_at_the_socket_of_its_node(spark: Any, two_nodes: LocalDomain, tmp_path: Path) -> None:
    """SPK-04: no GROUPSVC_ADDRESS, as on nodes that run groupsvcd as a service."""
    path = tmp_path / "client.sock"
    path.symlink_to(two_nodes.address("n1").removeprefix("ipc://"))
    here = str(path)

    def work(rows: Any) -> Any:
        from groupsvc import addresses

        named, place = os.environ.pop("GROUPSVC_ADDRESS"), addresses.SYSTEM_SOCKET
        addresses.SYSTEM_SOCKET = Path(here)  # type: ignore[misc]
        try:
            with barrier_task("socket", parties=2) as task:
                yield addresses.default_address(), task.vote(True)
        finally:
            os.environ["GROUPSVC_ADDRESS"], addresses.SYSTEM_SOCKET = named, place  # type: ignore[misc]

    found = spark.sparkContext.parallelize(range(2), 2).mapPartitions(work).collect()
    assert [(f"ipc://{path}", True)] * 2 == found


def test_the_error_names_address_and_host(spark: Any) -> None:
    """SPK-04: executors that cannot reach a daemon."""
    way = Via("tcp://127.0.0.1:1")

    def work(rows: Any) -> Any:
        with barrier_task("nowhere", parties=1, via=way) as task:
            yield task.wait().round

    with pytest.raises(Exception, match=r"tried tcp://127.0.0.1:1 from host") as found:
        spark.sparkContext.parallelize(range(1), 1).mapPartitions(work).collect()
    assert "open to the executors" in str(found.value)


DRIVER = """
from bench.spark_session import QUIET
from groupsvc.spark import embedded
from pyspark.sql import SparkSession

def application():
    builder = SparkSession.builder.master("local[1]")
    for key, value in QUIET.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    print(embedded(spark).pid, flush=True)
    return spark

spark = application()
sys.stdin.readline()
spark.stop()
print("stopped", flush=True)
sys.stdin.readline()
spark = application()
threading.Event().wait()
"""


SESSION_S = 120.0
"""For a Spark session to start on a machine that has much to do; on a quiet one it takes seven seconds."""


def runs(pid: int) -> bool:
    """Whether that process is still there; one that nobody has waited for yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_daemon_ends_with_the_application(two_nodes: LocalDomain) -> None:
    """SPK-04: nobody has to close it: it goes when a real session is stopped, and when its program is killed."""
    with environment(), Program(DRIVER, "address", "name") as driver:
        daemon = int(driver.says(SESSION_S))
        assert runs(daemon)
        driver.tell("stop the session")
        assert "stopped" == driver.says(SESSION_S)
        two_nodes.wait_until(lambda: not runs(daemon), "the daemon has ended with the session")
        driver.tell("another session")
        daemon = int(driver.says(SESSION_S))
        assert runs(daemon)
        driver.kill()
        two_nodes.wait_until(lambda: not runs(daemon), "the daemon has ended with its killed driver", timeout=5.0)
