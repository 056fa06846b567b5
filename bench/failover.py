"""How long nobody can be asked: from the death or pause of the name server to an answer of the new one.

The clock stops when a look-up asked at a surviving node has been answered *and* that node follows another
name server in a higher epoch: an old answer that was still under way does not count.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

from groupsvc.drivers.connection import DaemonConnection
from groupsvc.errors import GroupServiceError
from groupsvc.testing import LocalDomain

from .row import Effort, Row, at_most

GROUP = "bench"
KEY = "bench.version"
ANSWER_WAIT_S = 30.0
WATCH_AFTER_WAKE_S = 1.0


def killed(effort: Effort) -> list[Row]:
    """kill -9 of the name server."""
    runs = []
    for _ in range(effort.runs):
        with LocalDomain(nodes=3) as domain:
            runs.append([kill_once(domain) for _ in range(effort.choose(20, 5))])
    return [at_most("name server killed, new one answers", "s", runs, median_max=0.3, worst_max=1.0)]


def paused(effort: Effort) -> list[Row]:
    """SIGSTOP of the name server, and what it says when it wakes."""
    runs, said = [], []
    for _ in range(effort.runs):
        with LocalDomain(nodes=3) as domain:
            run = []
            for _ in range(effort.choose(4, 1)):
                took, words = pause_once(domain)
                run.append(took)
                said += words
            runs.append(run)
    note = "; ".join(said) or "woken, it was deposed and acknowledged nothing"
    return [at_most("name server paused, new one answers", "s", runs, worst_max=2.5, note=note, also=not said)]


def kill_once(domain: LocalDomain) -> float:
    """Seconds without a name server after a kill; the domain is whole again afterwards."""
    old, survivor = _old_and_survivor(domain)
    with DaemonConnection(domain.address(survivor)) as connection:
        connection.look_up(GROUP, form=True)
        epoch = connection.status().epoch
        began = time.perf_counter()
        os.kill(domain.pid(old), signal.SIGKILL)
        _wait_for_new(connection, old, epoch)
        took = time.perf_counter() - began
    domain.kill(old)
    domain.restart(old)
    return took


def pause_once(domain: LocalDomain) -> tuple[float, list[str]]:
    """Seconds without a name server after a pause, and everything wrong that the woken one said."""
    old, survivor = _old_and_survivor(domain)
    with (
        DaemonConnection(domain.address(survivor)) as connection,
        DaemonConnection(domain.address(old)) as to_old,
        DaemonConnection(domain.address(old)) as also_to_old,
    ):
        connection.look_up(GROUP, form=True)
        before = connection.config_get(KEY)
        epoch = connection.status().epoch
        began = time.perf_counter()
        domain.pause(old)
        question = _Question(to_old, before.version)
        _wait_for_new(connection, old, epoch)
        took = time.perf_counter() - began
        after = connection.config_set(KEY, f"written under a new epoch, after {epoch}", if_version=before.version)
        domain.resume(old)
        wrong = _words_after_waking(also_to_old, epoch) + question.wrong_answers(after.version)
    domain.wait_until_up()
    return took, wrong


class _Question:
    """A read and a write laid before the name server while it stands still.

    The new name server has written meanwhile, so the woken one may hand both on or refuse them; if it
    answers from its own memory, the read is old and the write is a second success over one version.
    """

    def __init__(self, connection: DaemonConnection, version: int) -> None:
        self._connection = connection
        self._version = version
        self._wrong: list[str] = []
        self._read_version: int | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self._connection.config_set(KEY, "written by the deposed", if_version=self._version, timeout=ANSWER_WAIT_S)
            self._wrong.append("the woken name server acknowledged a write over a version that was taken")
        except GroupServiceError:
            pass
        with contextlib.suppress(GroupServiceError):
            self._read_version = self._connection.config_get(KEY, timeout=5.0).version

    def wrong_answers(self, version: int) -> list[str]:
        self._thread.join(timeout=2 * ANSWER_WAIT_S)
        if self._read_version is not None and self._read_version < version:
            self._wrong.append(f"the woken name server answered version {self._read_version} after {version}")
        return self._wrong


def _words_after_waking(connection: DaemonConnection, epoch: int) -> list[str]:
    until = time.perf_counter() + WATCH_AFTER_WAKE_S
    while time.perf_counter() < until:
        status = connection.status()
        if status.role == "name server" and status.epoch == epoch and status.lease_left > 0:
            return [f"the woken name server still claims authority in epoch {epoch}"]
    return []


def _old_and_survivor(domain: LocalDomain) -> tuple[str, str]:
    old = domain.wait_for_name_server()
    return old, next(name for name in domain.names if name != old)


def _wait_for_new(connection: DaemonConnection, old: str, epoch: int) -> None:
    until = time.perf_counter() + ANSWER_WAIT_S
    while True:
        try:
            connection.look_up(GROUP, timeout=1.0)
            status = connection.status()
            if status.epoch > epoch and status.name_server not in ("", old):
                return
        except GroupServiceError:
            pass
        if time.perf_counter() > until:
            raise TimeoutError(f"no new name server answered within {ANSWER_WAIT_S:g} s of the loss of {old}")
        time.sleep(0.002)
