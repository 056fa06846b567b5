"""Four programs that never rest, with the same priority: the domain must not lose its name server over it."""

from __future__ import annotations

import subprocess
import sys
import time

from groupsvc.testing import LocalDomain
from groupsvc.wire.client_messages import Status

from .row import Effort, Row, at_most

BUSY_PROCESSES = 4


def measure(effort: Effort) -> list[Row]:
    """Elections and changes of the node list under load; each must be none."""
    elections, changes = [], []
    for _ in range(effort.runs):
        with LocalDomain(nodes=3) as domain:
            before = _settled(domain)
            _keep_busy(effort.choose(60, 10))
            after = _settled(domain)
        elections.append([float(after.epoch != before.epoch)])
        changes.append([float(after.list_version - before.list_version)])
    beside = f"{BUSY_PROCESSES} busy processes beside it"
    return [
        at_most(f"elections, {beside}", "in all", elections, worst_max=0),
        at_most(f"node list changes, {beside}", "in all", changes, worst_max=0),
    ]


def _settled(domain: LocalDomain) -> Status:
    status = domain.status(domain.wait_for_name_server())
    if status is None:
        raise TimeoutError("the name server does not answer")
    return status


def _keep_busy(seconds: float) -> None:
    endless = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(endless) for _ in range(BUSY_PROCESSES)]
    try:
        time.sleep(seconds)
    finally:
        for process in busy:
            process.kill()
            process.wait()
