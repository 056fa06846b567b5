"""How attempts of tasks meet, replace each other and begin anew: real daemons, and threads in the place of tasks.

What Spark does (when it starts an attempt, and where) is played here, because it cannot be told to do it at a certain
moment; ``test_local.py`` and ``test_cluster.py`` have real Spark.
"""

from __future__ import annotations

import itertools
import re
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from groupsvc import BarrierBroken, DaemonUnreachable, Missing, UsageError
from groupsvc.spark import BarrierTask, Fenced, NotKept, NotStarted, TaskReleased, TasksBroken, Via
from groupsvc.spark.attempts import Attempt
from groupsvc.spark.runs import OnFailure, Terms
from groupsvc.testing import LocalDomain

PATIENCE_S = 30.0

_stages = itertools.count(1)
_attempts = itertools.count(100)

Body = Callable[[BarrierTask], Any]


class Stage:
    """A stage of so many partitions; its attempts run in threads."""

    def __init__(
        self, domain: LocalDomain, parties: int | None, on_failure: OnFailure, start_timeout: float = 20.0,
        name: str | None = None,
    ) -> None:  # fmt: skip
        self.domain = domain
        self.stage = next(_stages)
        self.name = name or f"test-{self.stage}"
        self.terms = Terms(parties, on_failure)
        self.start_timeout = start_timeout
        self._pool = ThreadPoolExecutor(20)

    def task(self, partition: int, *, attempt: int | None = None, host: str = "here") -> BarrierTask:
        """One more attempt of this partition."""
        number = next(_attempts) if attempt is None else attempt
        made = Attempt("app", self.stage, partition, number, host)
        via = Via(self.domain.address(("n1", "n2")[partition % 2]))
        return BarrierTask(made, self.name, self.terms, via, None, self.start_timeout, PATIENCE_S)

    def start(self, partition: int, body: Body, *, attempt: int | None = None) -> Future[Any]:
        """Run one as Spark would."""
        task = self.task(partition, attempt=attempt)

        def run() -> Any:
            with task:
                return body(task)

        return self._pool.submit(run)


def gather(task: BarrierTask) -> TaskReleased:
    return task.wait(f"part of {task.rank}".encode())


def test_all_tasks_get_what_each_brought_in_every_round(two_nodes: LocalDomain) -> None:
    """SPK-01, SPK-02: many rounds, payloads by rank, the same for all."""

    def body(task: BarrierTask) -> list[TaskReleased]:
        assert (4, 0) == (task.world, task.round)
        return [task.wait(f"{task.rank}/{task.round}".encode()) for _ in range(50)]

    stage = Stage(two_nodes, 4, "break")
    ends = [one.result(PATIENCE_S) for one in [stage.start(partition, body) for partition in range(4)]]
    expected = [TaskReleased(n + 1, {rank: f"{rank}/{n}".encode() for rank in range(4)}) for n in range(50)]
    assert [expected] * 4 == ends


def test_collectives(two_nodes: LocalDomain) -> None:
    """SPK-02: broadcast, reduce, vote, and who listens where."""

    def body(task: BarrierTask) -> list[Any]:
        where = task.rendezvous(7000 + task.rank, host="host")
        return [
            task.broadcast(f"from {task.rank}".encode(), root=1), task.reduce(bytes([task.rank]), lambda a, b: a + b),
            task.vote(True), task.vote(task.rank != 2), where.leader, where.leads, where.addresses[2],
        ]  # fmt: skip

    stage = Stage(two_nodes, 3, "break")
    ends = [one.result(PATIENCE_S) for one in [stage.start(partition, body) for partition in range(3)]]
    common = [b"from 1", b"\0\1\2", True, False, "host:7000"]
    assert [[*common, rank == 0, "host:7002"] for rank in range(3)] == ends


def test_loopback_addresses_of_several_machines_are_an_error_for_all(two_nodes: LocalDomain) -> None:
    """SPK-02: they lead nowhere, and until now nobody said so."""
    stage = Stage(two_nodes, 2, "break")
    tasks = [stage.task(0, host="a"), stage.task(1, host="b")]

    def meet(task: BarrierTask) -> Any:
        with task:
            return task.rendezvous(7000, host="127.0.1.1")

    for one in [stage._pool.submit(meet, task) for task in tasks]:
        with pytest.raises(UsageError, match=r"0 on a \(127\.0\.1\.1\), 1 on b \(127\.0\.1\.1\); say host="):
            one.result(PATIENCE_S)


def test_whoever_fails_between_two_rounds_breaks_it_for_all_and_the_next_attempts_begin_anew(
    two_nodes: LocalDomain,
) -> None:
    """SPK-03: an exception in one task, "break"; then Spark runs all of them again."""
    stage = Stage(two_nodes, 3, "break")

    def body(task: BarrierTask) -> TaskReleased:
        gather(task)
        if task.rank == 1:
            raise RuntimeError("bad row")
        gather(task)
        raise AssertionError("released without partition 1")

    ends = [one.exception(PATIENCE_S) for one in [stage.start(partition, body) for partition in range(3)]]
    assert isinstance(ends[1], RuntimeError)
    for broken in (ends[0], ends[2]):
        assert isinstance(broken, TasksBroken), broken
        assert 2 == broken.round
        assert "partition 1" in str(broken)

    again = [stage.start(partition, lambda task: (task.round, gather(task).round)) for partition in range(3)]
    assert [(0, 1)] * 3 == [one.result(PATIENCE_S) for one in again]


def test_a_replacement_does_not_meet_those_who_have_not_seen_the_break_yet(two_nodes: LocalDomain) -> None:
    """SPK-03: attempt 2 of partition 1 comes while partition 0 still works; it waits for its next attempt."""
    stage = Stage(two_nodes, 2, "break")
    may_come = threading.Event()

    def slow(task: BarrierTask) -> None:
        gather(task)
        may_come.wait(PATIENCE_S)
        gather(task)

    def fails(task: BarrierTask) -> None:
        gather(task)
        raise RuntimeError

    first = [stage.start(0, slow), stage.start(1, fails)]
    assert isinstance(first[1].exception(PATIENCE_S), RuntimeError)
    second = stage.start(1, gather)
    may_come.set()
    assert isinstance(first[0].exception(PATIENCE_S), TasksBroken)
    other = stage.start(0, gather)
    expected = TaskReleased(1, {0: b"part of 0", 1: b"part of 1"})
    assert [expected, expected] == [second.result(PATIENCE_S), other.result(PATIENCE_S)]


def test_with_wait_the_round_is_held_for_the_replacement(two_nodes: LocalDomain) -> None:
    """SPK-03: partition 1 fails after two rounds; its next attempt knows how far the others are, who notice nothing."""
    stage = Stage(two_nodes, 3, "wait")

    def body(task: BarrierTask) -> list[int]:
        return [gather(task).round for _ in range(task.round, 5)]

    def fails(task: BarrierTask) -> None:
        gather(task), gather(task)
        raise RuntimeError

    living = [stage.start(0, body), stage.start(2, body)]
    assert isinstance(stage.start(1, fails).exception(PATIENCE_S), RuntimeError)
    assert [3, 4, 5] == stage.start(1, body).result(PATIENCE_S)
    assert [[1, 2, 3, 4, 5]] * 2 == [one.result(PATIENCE_S) for one in living]


@pytest.mark.parametrize("size", [10, 100_000], ids=["little", "much"])
def test_the_replacement_reads_what_came_out_of_the_rounds_before(two_nodes: LocalDomain, size: int) -> None:
    """SPK-03: everything, or what came after a round that it knows; the same as the others got."""
    stage = Stage(two_nodes, 2, "wait")

    def body(task: BarrierTask) -> list[TaskReleased]:
        known = list(task.results())
        assert task.results(1) == tuple(known[1:])
        known += [task.wait(f"{task.rank}/{n}".encode() * size) for n in range(task.round, 6)]
        assert known == list(task.results())
        return known

    def fails(task: BarrierTask) -> None:
        for n in range(3):
            task.wait(f"{task.rank}/{n}".encode() * size)
        raise RuntimeError

    living = stage.start(0, body)
    assert isinstance(stage.start(1, fails).exception(PATIENCE_S), RuntimeError)
    replacement = stage.start(1, body)
    expected = [TaskReleased(n + 1, {rank: f"{rank}/{n}".encode() * size for rank in (0, 1)}) for n in range(6)]
    assert expected == living.result(PATIENCE_S) == replacement.result(PATIENCE_S)


def test_what_is_not_kept_is_said(two_nodes: LocalDomain) -> None:
    """SPK-03: more than the group keeps; and barriers that keep nothing."""
    with Stage(two_nodes, 1, "wait").task(0) as task:
        for number in range(12):
            task.wait(bytes([number]) * 3_500_000)
        with pytest.raises(NotKept, match="round 1 is not kept any more, and 12 are over"):
            task.results()
        assert [11, 12] == [one.round for one in task.results(10)]
        with pytest.raises(UsageError, match="since"):
            task.results(-1)
    with Stage(two_nodes, 1, "break").task(0) as task, pytest.raises(UsageError, match="on_failure='wait'"):
        task.results()


def test_with_continue_the_others_go_on_without_it(two_nodes: LocalDomain) -> None:
    """SPK-01: progress without the dead; whoever comes back is waited for again."""
    stage = Stage(two_nodes, 3, "continue")
    back = threading.Event()

    def body(task: BarrierTask) -> list[tuple[int, ...]]:
        seen = [tuple(gather(task).payloads) for _ in range(3)]
        back.wait(PATIENCE_S)
        return [*seen, tuple(gather(task).payloads)]

    def fails(task: BarrierTask) -> None:
        gather(task)
        raise RuntimeError

    living = [stage.start(0, body), stage.start(1, body)]
    assert isinstance(stage.start(2, fails).exception(PATIENCE_S), RuntimeError)
    came = threading.Event()

    def returns(task: BarrierTask) -> tuple[int, tuple[int, ...]]:
        came.set()
        return task.round, tuple(gather(task).payloads)

    again = stage.start(2, returns)
    assert came.wait(PATIENCE_S)
    back.set()
    round_, seen = again.result(PATIENCE_S)
    assert (0, 1, 2) == seen
    ends = [one.result(PATIENCE_S) for one in living]
    assert ends[0] == ends[1]
    assert (0, 1, 2) == ends[0][0]
    assert {(0, 1), (0, 1, 2)} >= set(ends[0][1:])
    assert (0, 1, 2) == ends[0][round_]


def test_an_older_attempt_that_still_lives_is_fenced(two_nodes: LocalDomain) -> None:
    """SPK-03: a zombie, or the slow original of a speculative copy: the newer one takes its place, in every mode."""
    stage = Stage(two_nodes, 2, "wait")
    replaced = threading.Event()

    def zombie(task: BarrierTask) -> None:
        gather(task)
        assert replaced.wait(PATIENCE_S)
        gather(task)

    def body(task: BarrierTask) -> list[int]:
        return [gather(task).round for _ in range(task.round, 3)]

    def copy(task: BarrierTask) -> list[int]:
        replaced.set()
        return body(task)

    other, old = stage.start(0, body), stage.start(1, zombie)
    two_nodes.wait_until(lambda: other.running() and old.running(), "both run")
    new = stage.start(1, copy)
    assert 3 == new.result(PATIENCE_S)[-1]
    assert [1, 2, 3] == other.result(PATIENCE_S)
    fenced = old.exception(PATIENCE_S)
    assert isinstance(fenced, Fenced), fenced
    assert "partition 1 (task attempt" in str(fenced)


def test_an_older_attempt_that_comes_late_gives_up(two_nodes: LocalDomain) -> None:
    stage = Stage(two_nodes, 2, "wait")
    new = stage.start(1, gather, attempt=10_000)
    two_nodes.wait_until(lambda: _is_in_run(stage, two_nodes), "the newer one is there")
    with pytest.raises(Fenced, match="attempt 10000 on here"):
        stage.start(1, gather, attempt=9_000).result(PATIENCE_S)
    assert gather_all(stage, 0) == new.result(PATIENCE_S)


@pytest.mark.parametrize("on_failure", ["break", "continue", "wait"])
def test_a_later_job_of_the_same_name_takes_nothing_over_and_fences_the_earlier_one(
    two_nodes: LocalDomain, on_failure: OnFailure
) -> None:
    """SPK-03: a job was cancelled, and all its tasks still live when the next one begins: it must not end its round."""
    earlier = Stage(two_nodes, 2, on_failure, name=f"jobs-{on_failure}")
    replaced, both = threading.Event(), threading.Barrier(3)

    def zombie(task: BarrierTask) -> None:
        gather(task)
        both.wait(PATIENCE_S)
        assert replaced.wait(PATIENCE_S)
        gather(task)

    old = [earlier.start(partition, zombie) for partition in range(2)]
    both.wait(PATIENCE_S)
    later = Stage(two_nodes, 2, on_failure, name=earlier.name)
    new = [later.start(partition, lambda task: (task.round, gather(task).round)) for partition in range(2)]
    assert [(0, 1), (0, 1)] == [one.result(PATIENCE_S) for one in new]
    replaced.set()
    for one in old:
        fenced = one.exception(PATIENCE_S)
        assert isinstance(fenced, Fenced), fenced


def test_a_task_of_an_earlier_job_that_comes_late_gives_up(two_nodes: LocalDomain) -> None:
    """SPK-03: whatever its partition; and it says which job has the name now."""
    earlier, later = (Stage(two_nodes, 2, "wait", name="late") for _ in range(2))
    new = later.start(0, gather, attempt=10_000)
    two_nodes.wait_until(lambda: _is_in_run(later, two_nodes), "the later job is there")
    with pytest.raises(Fenced, match=rf"stage {later.stage}, task attempt 10000 on here") as fenced:
        earlier.start(1, gather, attempt=9_000).result(PATIENCE_S)
    assert "different names" in str(fenced.value)
    assert later.start(1, gather, attempt=10_001).result(PATIENCE_S) == new.result(PATIENCE_S)


def gather_all(stage: Stage, partition: int) -> TaskReleased:
    return stage.start(partition, gather).result(PATIENCE_S)  # type: ignore[no-any-return]


def _is_in_run(stage: Stage, domain: LocalDomain) -> bool:
    with domain.connect("n1") as session:
        return any(f"_spark/run/app/{stage.stage}." in group.name for group in session.groups())


def test_partitions_that_never_start_are_named(two_nodes: LocalDomain) -> None:
    """SPK-01: two slots for eight tasks; and the next attempts can begin."""
    stage = Stage(two_nodes, 8, "break", start_timeout=1.5)
    ends = [one.exception(PATIENCE_S) for one in [stage.start(partition, gather) for partition in range(2)]]
    for problem in ends:
        assert isinstance(problem, NotStarted), problem
        assert (2, 3, 4, 5, 6, 7) == problem.missing
        assert "partitions 2–7 never started: 2 of 8 tasks were there" in str(problem)
        assert "slots for 8 tasks" in str(problem)
    stage.start_timeout = 20.0
    again = [stage.start(partition, gather) for partition in range(8)]
    assert {1} == {one.result(PATIENCE_S).round for one in again}


def test_a_task_that_is_stopped_is_named_as_one_that_does_not_respond(two_nodes: LocalDomain) -> None:
    """SPK-01: its time is up only because of that one, which neither died nor left."""
    stage = Stage(two_nodes, None, "break")
    with stage.task(0, host="a") as task, stage.task(1, host="b"):
        me, other = task._entered().group.providers
        error = BarrierBroken(arrived=(me,), missing=(Missing(other, False),), why="timeout", who=(me,), expected=2)
        broken = task._broken(task._entered(), error)
    assert re.search(r"partition 1 had not; partition 1 \(task attempt \d+ on b\) does not respond", str(broken))


def test_whoever_is_there_with_no_number_of_parties(two_nodes: LocalDomain) -> None:
    """SPK-01: elastic; a barrier of all who are in it."""
    stage = Stage(two_nodes, None, "continue")
    first = stage.task(0)
    with first:
        assert (1, {0: b"part of 0"}) == (first.world, gather(first).payloads)
        with stage.task(1) as second:
            ends = [stage._pool.submit(gather, one) for one in (first, second)]
            assert [{0, 1}] * 2 == [set(one.result(PATIENCE_S).payloads) for one in ends]
            assert 2 == second.world


def test_a_task_uses_a_name_once(two_nodes: LocalDomain) -> None:
    stage = Stage(two_nodes, 1, "break")
    with stage.task(0, attempt=77_777) as task:
        assert 1 == gather(task).round
    with pytest.raises(UsageError, match="uses a name once"), stage.task(0, attempt=77_777):
        pass
    with pytest.raises(UsageError, match="inside its block"):
        task.wait()


def test_no_daemon_says_which_address_was_tried_from_where(two_nodes: LocalDomain) -> None:
    """SPK-04: and what to do."""
    made = Attempt("app", 1, 0, next(_attempts), "here")
    via = Via("tcp://127.0.0.1:1")
    task = BarrierTask(made, "test", Terms(1, "break"), via, None, 1.0, 1.0)
    with pytest.raises(DaemonUnreachable, match=f"tried tcp://127.0.0.1:1 from host {socket.gethostname()}"), task:
        pass
