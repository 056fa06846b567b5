"""The event journal: what the daemon did, one line of history each, for checkers and audits.

Lines are ``groupsvc.wire.history.HistoryEvent`` as ndjson in files ``<node>.<boot>.<number>.ndjson``; ``boot`` is the
incarnation with which the process started, so a restart begins files of its own. A file is begun anew when it has
grown to its limit or is old enough. It never changes its name, and nothing is ever written into one that was left:
whoever collects files, or compacts them, can take every file that is not locked. There is place for a number of full
files, and the oldest of the node go when it is taken, whatever run they are of. A daemon that cannot start is started
again every two seconds, for a night perhaps, and each time begins a file, though a small one: these would push out what
is to be read now. So the files that are as small as these take no place from the others, and only their number is
limited. (The file that is written to has its whole place from its beginning on.)

Each file begins with a line ``journal``, which says at which level it was written, and by which clock.

Batches that follow one another in a group become one line, as long as they come within ``GATHER_S`` and no multiple of
``MERGED_ENTRIES`` lies between them: there, and before every other line, it is written. Nodes mostly deliver in the
same batches, so their lines mostly end at the same numbers, where their digests can be compared.

Nothing waits for it: lines are gathered in memory, and a thread of its own writes what has gathered twenty times a
second, as waking it costs more than a line does. So a daemon that is killed takes its last moment with it. If the
thread falls behind by more than ``WAITING_BYTES_MAX``, or the disk refuses, lines are dropped and counted; the next
line that gets through is preceded by one that says how many are missing.
"""

from __future__ import annotations

import fcntl
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from groupsvc import __version__
from groupsvc.journals.kinds import Level, is_written
from groupsvc.journals.segments import SegmentName, segments_of
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, to_line

from ..core.effects import Journal
from .log import event

WAITING_BYTES_MAX = 8 * 1024 * 1024

GATHER_S = 0.05
"""How long lines wait for others before they are written."""

log = logging.getLogger(__name__)

MERGED_ENTRIES = 1_024
"""Of one group in one line, and about so often digests can be compared while nothing but messages is delivered."""

FILE_SHARE_MIN = 1 / 256
"""Of the place for a full file each takes as much as it is large, and this at least; so their number is bounded."""

SMALL_FILE_BYTES_MAX = 16 * 1024
"""What a start that fails writes is less. No file is small that has more than ``FILE_SHARE_MIN`` of a full one."""
SMALL_FILES_MAX = 1_024
"""Six weeks of hours in which nothing happened; 16 MiB at most."""

_NEXT_FILE: Final = b""
"""Among the lines that wait to be written: what comes after this goes into a new file."""


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
        file_seconds_max: float = float("inf"),
        level: Level = "full",
        clock_id: str = "",
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._node = node
        self._boot = boot
        self._boot_text = f"{boot:x}"
        self._clock = clock
        self._wall_ns = wall_ns
        self._file_bytes_max = file_bytes_max
        self._file_seconds_max = file_seconds_max
        self._files_max = files_max
        self._level: Level = level
        self._clock_id = clock_id
        self._position = 0
        self._incarnation = boot
        self._number = 0  # of the file that the next line goes into
        self._size = 0  # of that file, when all that waits is written
        self._head_size = 0
        self._began = 0.0
        self._lines: deque[bytes] = deque()
        self._batches: dict[int, Journal] = {}  # by group: what was delivered last, and is not taken down yet
        self._batch_since = 0.0  # when the oldest of them came
        self._lost = 0
        self.lines_lost = 0  # ever
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._is_woken = False
        self._is_closing = threading.Event()
        self._put_bytes = 0
        self._written_bytes = 0
        self._written_number = 0  # of the file that is open; only the thread knows
        self._fd = -1
        self._open_next(_NEXT_FILE)  # here, so that a directory that cannot be written is refused at the start
        self._failing = False
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    @property
    def path(self) -> Path:
        """The file that is written to now."""
        return self._directory / str(SegmentName(self._node, self._boot, self._written_number))

    def write(self, effect: Journal, incarnation: int) -> None:
        """Take down one event; it is written some time after the next ``flush``."""
        if effect.op == "delivered" and "digest" in effect.args:
            self._merge(effect, incarnation)
        elif is_written(effect.op, effect.group, self._level):
            self._incarnation = incarnation
            if self._batches:
                self._take_batches()
            self._write(effect, incarnation)

    def _merge(self, effect: Journal, incarnation: int) -> None:
        """A batch: the line before is longer by it, if it follows on that."""
        batches, args, self._incarnation = self._batches, effect.args, incarnation
        before = batches.get(effect.group)
        if before is not None:
            if (
                args["first"] == before.seq + 1
                and args["base"] == before.args["base"]
                and effect.epoch == before.epoch
                and effect.seq // MERGED_ENTRIES == before.seq // MERGED_ENTRIES
            ):
                args["first"] = before.args["first"]
            else:
                self._write(before, incarnation)
        elif not batches:
            self._batch_since = self._clock()
        batches[effect.group] = effect

    def _take_batches(self) -> None:
        batches, self._batches = self._batches, {}
        for effect in batches.values():
            self._write(effect, self._incarnation)

    def _write(self, effect: Journal, incarnation: int) -> None:
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
        """Have everything taken down written soon."""
        if self._batches and self._clock() - self._batch_since >= GATHER_S:
            self._take_batches()
        if self._lines and not self._is_woken:
            self._is_woken = True
            self._wake.put(None)

    def resize(self, file_bytes_max: int, file_seconds_max: float, files_max: int) -> None:
        """From now on files are so large and so many; those beyond that many go when the next one begins."""
        self._file_bytes_max, self._file_seconds_max = file_bytes_max, file_seconds_max
        self._files_max = files_max

    def close(self, timeout: float = 2.0) -> None:
        """Write what is waiting and end; a disk that hangs is not waited for."""
        self._take_batches()
        self._is_closing.set()
        self._wake.put(None)
        self._thread.join(timeout)
        if not self._thread.is_alive():
            os.close(self._fd)

    def _take(self, effect: Journal, incarnation: int) -> None:
        t = self._clock()
        if t - self._began >= self._file_seconds_max and self._size:
            self._begin_file()
        if not self._size:
            self._take_head(t, incarnation)
        line = self._line(effect, t, incarnation)
        if self._size + len(line) > self._file_bytes_max and self._size > self._head_size:
            self._begin_file()
            self._position -= 1  # the head comes before it
            self._take_head(t, incarnation)
            line = self._line(effect, t, incarnation)
        self._size += len(line)
        self._put(line)

    def _take_head(self, t: float, incarnation: int) -> None:
        self._began = t
        args = {"segment": self._number + 1, "level": self._level, "clock": self._clock_id, "version": __version__}
        line = self._line(Journal("journal", args=args), t, incarnation)
        self._size = self._head_size = len(line)
        self._put(line)

    def _begin_file(self) -> None:
        self._lines.append(_NEXT_FILE)
        self._number += 1
        self._size = 0

    def _put(self, line: bytes) -> None:
        self._put_bytes += len(line)
        self._lines.append(line)

    def _line(self, effect: Journal, t: float, incarnation: int) -> bytes:
        self._position += 1
        event = HistoryEvent(
            v=SCHEMA_VERSION,
            i=self._position,
            boot=self._boot_text,
            t=t,
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
        return to_line(event)

    # --- In the thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._is_closing.is_set():
            self._wake.get()
            self._is_closing.wait(GATHER_S)
            self._is_woken = False  # before looking: for what comes after that it is woken again
            self._write_gathered()
        self._write_gathered()

    def _write_gathered(self) -> None:
        waiting = [self._lines.popleft() for _ in range(len(self._lines))]
        while waiting:
            end = next((place for place, line in enumerate(waiting) if line is _NEXT_FILE), len(waiting))
            if end:
                self._attempt(self._write_whole, b"".join(waiting[:end]))
            if end < len(waiting):
                self._attempt(self._open_next, _NEXT_FILE)
            del waiting[: end + 1]

    def _attempt(self, write: Callable[[bytes], None], chunk: bytes) -> None:
        try:
            write(chunk)
            self._failing = False
        except OSError as error:
            self._lost += chunk.count(b"\n")
            self.lines_lost += chunk.count(b"\n")
            if not self._failing:
                self._failing = True
                log.error(
                    "the event journal %s cannot be written: %s; lines are lost", self.path, error.strerror,
                    extra=event("journal_failed", path=str(self.path), reason=error.strerror),
                )  # fmt: skip
        self._written_bytes += len(chunk)

    def _write_whole(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view:
            view = view[os.write(self._fd, view) :]

    def _open_next(self, _nothing: bytes) -> None:
        """Begin the next file. It gets its name when it is locked: nobody ever takes it for one that was left."""
        name = SegmentName(self._node, self._boot, self._written_number + 1)
        hidden = self._directory / f".{name}.new"
        fd = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o640)
        fcntl.flock(fd, fcntl.LOCK_SH)
        hidden.rename(self._directory / str(name))
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._written_number = fd, name.number
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        room, small = float(self._files_max), SMALL_FILES_MAX
        small_bytes_max = min(SMALL_FILE_BYTES_MAX, self._file_bytes_max * FILE_SHARE_MIN)
        for name, path in reversed(segments_of(self._directory, self._node)):
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue  # somebody collects
            if name == SegmentName(self._node, self._boot, self._written_number):
                room -= 1.0
                continue
            if size <= small_bytes_max:
                small -= 1
                is_too_much = small < 0
            else:
                room -= max(size / self._file_bytes_max, FILE_SHARE_MIN)
                is_too_much = room < 0
            if is_too_much:
                path.unlink(missing_ok=True)
