"""Somebody who ends the command if we are killed.

SIGKILL cannot be passed on. If it hits ``groupsvc lock``, or the kernel is out of memory and takes us, the daemon frees
the lock at once and the next one has it, while our command still runs. So we fork before anything else: the guardian
waits for the end of a pipe whose other end only we have, and knows which command runs. It does nothing, and has nothing
open, but that. It hears no signals and is in a session of its own; it ends when we do.

The kernel's own "signal me when my parent dies" was rejected: it means the parent's thread, is forgotten by programs
that change their user, and reaches the command itself but nothing that it has started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import TracebackType
from typing import Self

from . import process_tree

NOBODY = 0


class Guardian:
    """In the process that is watched over; a context manager that ends it."""

    def __init__(self, *, kills: bool) -> None:
        read, self._pipe = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # it may have been closed by who started us
                stream.flush()
        self._pid = os.fork()
        if not self._pid:
            try:
                _guard(read, kills=kills)
            finally:
                os._exit(0)
        os.close(read)

    def watches(self, pid: int) -> None:
        """This command runs now, or nobody."""
        with contextlib.suppress(OSError):  # the guardian was killed: the command goes on without one
            os.write(self._pipe, b"%d\n" % pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.watches(NOBODY)
        os.close(self._pipe)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _guard(read: int, *, kills: bool) -> None:
    os.setsid()
    os.chdir("/")
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd not in (read, 2):
            with contextlib.suppress(OSError):
                os.close(fd)
    told = b""
    while part := os.read(read, 1024):
        told = (told + part)[-1024:]
    numbers = told.split()
    pid = int(numbers[-1]) if numbers else NOBODY
    if pid == NOBODY:
        return
    if kills:
        process_tree.kill(pid)
    what = "so is its command" if kills else "its command goes on without the lock"
    with contextlib.suppress(OSError):
        os.write(2, f"groupsvc: was killed; {what}, process {pid}\n".encode())
