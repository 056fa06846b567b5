"""Which attempt of which task this process runs: who a member is.

Partition 3 runs as task attempt 17. Its executor dies, and Spark runs it again as attempt 25, elsewhere; or attempt 17
is slow, and 25 is a copy that Spark runs beside it. Both are partition 3, and the one with the higher number is the one
that counts. Spark gives these numbers once per application, over all its jobs; what Python calls ``attemptNumber``
begins anew when a stage is run again, and says nothing.

An attempt knows all of that by its ``TaskContext``, except of which application it is. That is known to the JVM that
started it: an executor has it on its command line (``--app-id``), with every cluster manager. In local mode there is no
executor, and the JVM is that of the driver: it runs one application at a time, so host, process id and the time when it
was started are as good a name. Whoever finds neither says it with ``via=`` (``reaching.py``).
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from ..errors import UsageError

PROC = Path("/proc")

PARENTS_MAX = 8
"""A worker is the child of a Python daemon, which is the child of the JVM; wrappers may stand between."""

EXECUTOR = re.compile(r"[\w.]*ExecutorBackend")
"""The main class of an executor, of whatever cluster manager."""

DRIVER = re.compile(r"spark://[^@]+@(.+):[0-9]+")
"""``--driver-url`` of an executor."""

_not_in_names = re.compile(r"[^A-Za-z0-9._-]+")


@attrs.frozen
class Attempt:
    """One attempt of one task. ``id`` is never given twice in an application, and a later attempt has a higher one."""

    application: str
    stage: int
    partition: int
    id: int
    host: str

    def __str__(self) -> str:
        return f"partition {self.partition} (task attempt {self.id} on {self.host})"


def current_attempt(application: str | None = None) -> Attempt:
    """The one that this process runs now; ``application`` stands in for what is found out here."""
    context = _task_context()
    if context is None:
        text = "there is no Spark task in this process: barrier_task is called in the function that Spark runs"
        raise UsageError(f"{text} for a partition (mapPartitions, mapInPandas, mapInArrow), not in the driver")
    named = application or application_of(os.getpid())
    if named is None:
        text = "it cannot be seen here of which Spark application this task is; make a groupsvc.spark.Via in the driver"
        raise UsageError(f"{text}, with application=spark.sparkContext.applicationId, and give it as via=")
    return Attempt(named, context.stageId(), context.partitionId(), context.taskAttemptId(), socket.gethostname())


def _task_context() -> Any:
    try:
        from pyspark import TaskContext
    except ImportError as problem:
        text = f"pyspark is needed here, and cannot be imported ({problem}): pip install '.[spark]' in a clone"
        raise UsageError(text) from None
    return TaskContext.get()  # in a barrier stage it is that one


def application_of(pid: int, proc: Path = PROC) -> str | None:
    """The application whose JVM has started this process, as part of a group's name; None if there is no JVM."""
    for parent, command in _ancestors(pid, proc):
        if not command or Path(command[0]).name != "java":
            continue
        if any(EXECUTOR.fullmatch(word) for word in command):
            application = _value_after("--app-id", command)
            return None if application is None else as_name(application)
        return f"{as_name(socket.gethostname())}-{parent}-{_started(parent, proc)}"
    return None


def driver_host_of(pid: int, proc: Path = PROC) -> str | None:
    """Where the driver is of the executor that has started this process, as it was told that; None in local mode."""
    for _, command in _ancestors(pid, proc):
        if any(EXECUTOR.fullmatch(word) for word in command):
            at = DRIVER.fullmatch(_value_after("--driver-url", command) or "")
            return None if at is None else at[1].strip("[]")
    return None


def as_name(text: str) -> str:
    """What may stand in the name of a group."""
    return _not_in_names.sub("-", text).strip("-") or "none"


def _ancestors(pid: int, proc: Path) -> Iterator[tuple[int, list[str]]]:
    for _ in range(PARENTS_MAX):
        try:
            pid = int(_status_fields(pid, proc)[1])
            if pid <= 1:
                return
            yield pid, (proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except (OSError, ValueError, IndexError):
            return


def _started(pid: int, proc: Path) -> str:
    """When the kernel started it, in its own ticks: with the number it is a process that never comes again."""
    return _status_fields(pid, proc)[19]


def _status_fields(pid: int, proc: Path) -> list[str]:
    """From the third one on; the second one is a name, and may have anything in it."""
    return (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()


def _value_after(option: str, command: list[str]) -> str | None:
    if option not in command[:-1]:
        return None
    return command[command.index(option) + 1]
