"""The journal thread: everything that waits goes to the disk with one sync.

The reactor hands over ``Persist`` effects and goes on; nothing else in the daemon ever waits for a disk. While
one sync runs, more effects pile up, and the next transaction takes them all: an idle daemon syncs one by one,
a busy one in large batches. When a batch is safe its effects are handed back in their order and the reactor,
woken by an eventfd, executes their ``then``.

Two errors, two policies:

- The disk is full (S4): nothing was written, the batch is kept and tried again every ``FULL_RETRY_S``. The
  daemon stays up, says so, and goes on when there is room.
- Anything else (S3): after a failed sync nobody knows what the disk has, and a second try may succeed without
  having written anything. The thread ends, ``error`` says why, and the daemon must stop at once; the next
  start reads what is really there.
"""

from __future__ import annotations

import logging
import os
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable

import attrs

from ..core.effects import Persist
from ..core.tally import Histogram, Measured
from ..observe.log import event
from .store import Store

FULL_RETRY_S = 0.5
BATCH_EFFECTS_MAX = 4_096
"""Effects in one transaction at most, so that the first of them does not wait for ever."""

SYNC_BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Of the statistics: from a disk with a battery behind it, to one that makes a name server fall silent."""

log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class JournalStatistics:
    """What went to the disk, and what waits for it."""

    syncs: Measured  # seconds of each transaction with its sync
    writes_waiting: int
    oldest_age: float  # seconds
    is_full: bool


class Journal:
    """Writes ``Persist`` effects in their own thread and hands them back when they are safe."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._waiting: queue.SimpleQueue[Persist | None] = queue.SimpleQueue()
        self._done: deque[Persist] = deque()
        self._since: deque[float] = deque()
        self._stopping = threading.Event()
        self._event_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.error: str | None = None
        self.is_full = False
        self._syncs = Histogram(SYNC_BOUNDS_S)
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Readable when ``finished`` has something to tell."""
        return self._event_fd

    def write(self, effect: Persist) -> None:
        """Make ``effect.records`` safe, after everything that was given before."""
        self._since.append(self._clock())
        self._waiting.put(effect)

    def finished(self) -> list[Persist]:
        """The effects that have become safe since the last call, in order."""
        try:
            os.eventfd_read(self._event_fd)
        except BlockingIOError:
            return []
        done = []
        while self._done:
            done.append(self._done.popleft())
            self._since.popleft()
        return done

    def oldest_age(self) -> float:
        """How long the oldest unfinished write has been waiting, in seconds; 0 if there is none."""
        return self._clock() - self._since[0] if self._since else 0.0

    def statistics(self) -> JournalStatistics:
        """As of now."""
        return JournalStatistics(
            syncs=self._syncs.measured(),
            writes_waiting=len(self._since),
            oldest_age=self.oldest_age(),
            is_full=self.is_full,
        )

    def close(self, timeout: float = 5.0) -> None:
        """Write what is waiting, then end; a disk that hangs or is full is not waited for longer than ``timeout``."""
        self._waiting.put(None)
        self._thread.join(timeout)
        self._stopping.set()
        self._thread.join(2 * FULL_RETRY_S)
        if not self._thread.is_alive():
            self._store.close()
            os.close(self._event_fd)

    # --- In the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                batch, last = self._next_batch()
                if batch:
                    self._write_until_safe(batch)
                if last:
                    return
        except Exception as error:
            self.error = f"{type(error).__name__}: {error}"
            os.eventfd_write(self._event_fd, 1)

    def _next_batch(self) -> tuple[list[Persist], bool]:
        """What is waiting, at least one; and whether nothing comes after it."""
        batch: list[Persist] = []
        effect = self._waiting.get()
        while effect is not None:
            batch.append(effect)
            if len(batch) == BATCH_EFFECTS_MAX:
                return batch, False
            try:
                effect = self._waiting.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _write_until_safe(self, batch: list[Persist]) -> None:
        while True:
            try:
                began = self._clock()
                self._store.write(record for effect in batch for record in effect.records)
                self._syncs.observe(self._clock() - began)
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                    raise
            if not self.is_full:
                self.is_full = True
                text = "the disk of the state directory is full; nothing is acknowledged until there is room"
                log.error(text, extra=event("disk_full"))
            if self._stopping.wait(FULL_RETRY_S):
                return
        if self.is_full:
            self.is_full = False
            log.warning("the disk of the state directory has room again", extra=event("disk_has_room"))
        self._done.extend(batch)
        os.eventfd_write(self._event_fd, 1)
        try:
            self._store.tidy()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_FULL:
                raise
