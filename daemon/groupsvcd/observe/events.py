"""The event journal: what the daemon did, one line of history each, for checkers and audits.

Lines are ``groupsvc.wire.history.HistoryEvent`` as ndjson in ``<node>.<boot>.ndjson``; ``boot`` is the
incarnation with which the process started. A file that has grown to its limit is renamed to ``<node>.<boot>.1.ndjson``,
older ones move up, the oldest goes.

Nothing waits for it: lines are gathered in memory during a round of the reactor, a thread of its own writes them,
and if that thread falls behind by more than ``WAITING_BYTES_MAX``, or the disk refuses, lines are dropped and
counted; the next line that gets through is preceded by one that says how many are missing.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, to_line

from ..core.effects import Journal
from .log import event

WAITING_BYTES_MAX = 8 * 1024 * 1024

log = logging.getLogger(__name__)


class EventWriter:
    """Writes ``Journal`` effects as lines of history."""

    def __init__(
        self,
        directory: Path,
        node: str,
        boot: int,
        *,
        clock: Callable[[], float],
        wall_ns: Callable[[], int],
        file_bytes_max: int,
        files_max: int,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / f"{node}.{boot:x}.ndjson"
        self._node = node
        self._boot = f"{boot:x}"
        self._clock = clock
        self._wall_ns = wall_ns
        self._file_bytes_max = file_bytes_max
        self._files_max = files_max
        self._position = 0
        self._lines: list[bytes] = []
        self._lost = 0
        self.lines_lost = 0  # ever
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._put_bytes = 0
        self._written_bytes = 0
        self._fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def write(self, effect: Journal, incarnation: int) -> None:
        """Take down one event; it is written some time after the next ``flush``."""
        if self._put_bytes - self._written_bytes > WAITING_BYTES_MAX:
            self._lost += 1
            self.lines_lost += 1
            return
        if self._lost:
            lost, self._lost = self._lost, 0
            self._take(Journal(op="journal_lost", args={"lines": lost}), incarnation)
        self._take(effect, incarnation)

    @property
    def lines_written(self) -> int:
        """Lines that were taken down so far."""
        return self._position

    @property
    def bytes_waiting(self) -> int:
        """What is not on the disk yet."""
        return self._put_bytes - self._written_bytes

    def flush(self) -> None:
        """Hand everything taken down to the thread."""
        if self._lines:
            chunk = b"".join(self._lines)
            self._lines.clear()
            self._put_bytes += len(chunk)
            self._queue.put(chunk)

    def resize(self, file_bytes_max: int, files_max: int) -> None:
        """From now on files are so large and so many; those beyond that many go when the next one begins."""
        self._file_bytes_max, self._files_max = file_bytes_max, files_max

    def close(self, timeout: float = 2.0) -> None:
        """Write what is waiting and end; a disk that hangs is not waited for."""
        self.flush()
        self._queue.put(None)
        self._thread.join(timeout)
        if not self._thread.is_alive():
            os.close(self._fd)

    def _take(self, effect: Journal, incarnation: int) -> None:
        self._position += 1
        event = HistoryEvent(
            v=SCHEMA_VERSION,
            i=self._position,
            boot=self._boot,
            t=self._clock(),
            wall_ns=self._wall_ns(),
            node=self._node,
            inc=incarnation,
            op=effect.op,
            group=effect.group,
            epoch=effect.epoch,
            seq=effect.seq,
            origin=effect.origin,
            n=effect.n,
            crc=effect.crc,
            args=effect.args,
        )
        self._lines.append(to_line(event))

    # --- In the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        size = os.fstat(self._fd).st_size
        while True:
            chunk = self._queue.get()
            if chunk is None:
                return
            try:
                if size and size + len(chunk) > self._file_bytes_max:
                    self._rotate()
                    size = 0
                size += self._write_whole(chunk)
                self._failing = False
            except OSError as error:
                self._lost += chunk.count(b"\n")
                self.lines_lost += chunk.count(b"\n")
                if not self._failing:
                    self._failing = True
                    text = "the event journal %s cannot be written: %s; lines are lost"
                    about = event("journal_failed", path=str(self.path), reason=error.strerror)
                    log.error(text, self.path, error.strerror, extra=about)
            self._written_bytes += len(chunk)

    def _write_whole(self, chunk: bytes) -> int:
        view = memoryview(chunk)
        while view:
            view = view[os.write(self._fd, view) :]
        return len(chunk)

    def _rotate(self) -> None:
        older = [self.path.with_suffix(f".{number}.ndjson") for number in range(1, self._files_max)]
        for newer, file in reversed(list(zip([self.path, *older], older, strict=False))):
            if newer.exists():
                newer.rename(file)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o640)
        os.close(self._fd)
        self._fd = fd
