"""groupsvc for Spark: tasks that wait for each other, without a job per step.

    from groupsvc.spark import barrier_task

Nothing here imports pyspark until it is used.
"""

from __future__ import annotations

from .driver_daemon import Embedded, embedded
from .errors import Fenced, NotKept, NotStarted, TasksBroken
from .reaching import Via
from .rendezvous import Rendezvous
from .tasks import BarrierTask, TaskReleased, barrier_task

__all__ = [
    "BarrierTask",
    "Embedded",
    "Fenced",
    "NotKept",
    "NotStarted",
    "Rendezvous",
    "TaskReleased",
    "TasksBroken",
    "Via",
    "barrier_task",
    "embedded",
]
