"""Who a task is, without Spark: of which application, and how many are spoken of."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import attrs
import pytest

from groupsvc import PeerProtocolError, UsageError
from groupsvc.spark import Via, barrier_task
from groupsvc.spark.attempts import application_of, driver_host_of
from groupsvc.spark.members import Member, encoded, member_of, parts_of, ranges, with_header
from groupsvc.spark.runs import Scope, Terms
from groupsvc.views import Provider

JAVA = "/usr/lib/jvm/java-17/bin/java"
EXECUTOR = [JAVA, "-Xmx1g", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--driver-url",
            "spark://CoarseGrainedScheduler@driver.example:34567", "--executor-id", "0", "--cores",
            "1", "--app-id", "app-20260730120000-0003", "--worker-url", "spark://Worker@127.0.0.2:1"]  # fmt: skip
DRIVER = [JAVA, "-Xmx1g", "org.apache.spark.deploy.SparkSubmit", "--conf", "spark.master=local[8]", "pyspark-shell"]
WORKER = ["python3", "-m", "pyspark.daemon", "pyspark.worker"]


def processes(directory: Path, *commands: list[str]) -> Path:
    """Files as the kernel shows them: process 100 is the child of 101, that one of 102, and so on."""
    for number, command in enumerate(commands):
        pid = 100 + number
        place = directory / str(pid)
        place.mkdir(parents=True)
        (place / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in command))
        fields = ["S", str(pid + 1 if number + 1 < len(commands) else 1), *["0"] * 17, f"77{pid}", "0"]
        (place / "stat").write_text(f"{pid} (a ) b) {' '.join(fields)}\n")
    return directory


def test_an_executor_has_the_application_on_its_command_line(tmp_path: Path) -> None:
    proc = processes(tmp_path, WORKER, WORKER, EXECUTOR, [JAVA, "org.apache.spark.deploy.worker.Worker"])
    assert "app-20260730120000-0003" == application_of(100, proc)


def test_an_executor_knows_where_its_driver_is(tmp_path: Path) -> None:
    assert "driver.example" == driver_host_of(100, processes(tmp_path, WORKER, WORKER, EXECUTOR))
    assert driver_host_of(100, processes(tmp_path / "local", WORKER, WORKER, DRIVER)) is None
    older = processes(tmp_path / "v6", WORKER, [*EXECUTOR[:3], "--driver-url", "spark://Scheduler@[2001:db8::7]:1"])
    assert "2001:db8::7" == driver_host_of(100, older)


def test_in_local_mode_the_jvm_of_the_driver_is_the_application(tmp_path: Path) -> None:
    proc = processes(tmp_path, WORKER, WORKER, DRIVER, ["python3", "program.py"])
    assert f"{socket.gethostname()}-102-77102" == application_of(100, proc)


def test_without_a_jvm_nothing_is_guessed(tmp_path: Path) -> None:
    assert application_of(100, processes(tmp_path, WORKER, WORKER, ["bash"])) is None
    assert application_of(4711, tmp_path) is None


def test_of_this_process_it_can_be_asked() -> None:
    assert application_of(os.getpid()) is None or application_of(os.getpid())


def test_outside_of_a_task_it_says_where_it_belongs() -> None:
    with pytest.raises(UsageError, match=r"mapPartitions|pip install"):
        barrier_task("load", parties=2)


def test_a_member_shows_itself_and_strangers_are_nobody() -> None:
    provider = Provider("n1/1/1", "n1", "", encoded(Member(3, 17, "host", 5)), 1)
    assert Member(3, 17, "host", 5) == member_of(provider)
    assert member_of(attrs.evolve(provider, data=b"")) is None
    assert member_of(attrs.evolve(provider, data=b"\x93\x01")) is None


def test_what_is_brought_has_rank_and_round_before_it() -> None:
    assert (3, 57, b"part") == parts_of(with_header(3, 57, b"part"))
    with pytest.raises(PeerProtocolError):
        parts_of(b"short")


@pytest.mark.parametrize(
    "ranks, text",
    [([3], "partition 3"), ([2, 3, 4, 7], "partitions 2–4, 7"), ([1, 0], "partitions 0–1"), ([], "partitions ")],
)
def test_many_partitions_are_named_in_few_words(ranks: list[int], text: str) -> None:
    assert text == ranges(ranks)


@pytest.mark.parametrize("name", ["", "/a", "a/", "a b", "é", "x" * 81, 5])
def test_a_name_that_cannot_be_in_a_group_is_refused(name: object) -> None:
    with pytest.raises(UsageError, match="cannot name"):
        Scope("app", name)  # type: ignore[arg-type]


def test_names_of_groups_do_not_meet() -> None:
    one, other = Scope("app", "a"), Scope("app", "a/1.2.3")
    assert len({one.lobby, one.run("1.2.3"), other.lobby, other.run("1.2.3"), Scope("app2", "a").lobby}) == 5
    longest = Scope("application_1700000000000_000001", "x" * 80).run(f"{10**6}.{10**12}.12345")
    assert len(longest) <= 200


@pytest.mark.parametrize(
    "parties, on_failure", [(0, "break"), (True, "break"), ("8", "break"), (8, "stop"), (None, "wait")]
)
def test_terms_that_mean_nothing_are_refused(parties: object, on_failure: object) -> None:
    with pytest.raises(UsageError):
        Terms(parties, on_failure)  # type: ignore[arg-type]


def test_a_way_is_checked_where_it_is_made() -> None:
    with pytest.raises(UsageError):
        Via("http://host")


def test_whatever_another_shows_of_itself_is_no_task_and_no_error() -> None:
    """Anybody who may join shows bytes of its own choice, also such as are no text."""
    for data in (b"", b"\xff", b"\x94\x01\x01\xa2\xff\xfe\x01", b"\x93\x01\x01\x01", b"\x94" * 5000):
        assert member_of(Provider("n/1/1", "n", "", data, 1)) is None
