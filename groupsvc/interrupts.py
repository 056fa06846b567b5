"""Ctrl-C comes between two steps, not in the middle of one.

Python raises ``KeyboardInterrupt`` between any two bytecodes of the main thread. If that is while a frame has left the
socket and was not yet counted, the session is torn for ever. So what must happen whole is done under a
``Guard``: it holds the lock of the session and, in the main thread, keeps SIGINT waiting for microseconds. Waiting
itself is never done under it, so an interrupt ends a wait at once and leaves the session as it was.

Rejected: blocking the signal in the main thread's mask. The kernel gives it to another thread then, and Python still
raises in the main one.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

# Those of ``signal`` make enums of everything, which takes ten times as long as the call; both are CPython's own.
_fast: Any = sys.modules.get("_signal", signal)
_set_handler: Any = _fast.signal
_get_handler: Any = _fast.getsignal
_SIGINT = int(signal.SIGINT)
_main = threading.main_thread().ident


def this_is_the_main_thread() -> None:
    """After a fork the thread that forked is the main one."""
    global _main
    _main = threading.get_ident()


class Guard:
    """``with guard:`` holds ``lock``; an interrupt meanwhile is raised at the end. Not for nesting."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._previous: Any = None
        self._noted: FrameType | None = None
        self._is_noted = False

    def __enter__(self) -> None:
        if threading.get_ident() != _main:
            self._lock.acquire()
            return
        previous = _get_handler(_SIGINT)
        if not callable(previous):  # ignored, or not Python's: nothing is raised
            self._lock.acquire()
            return
        _set_handler(_SIGINT, self._note)
        self._lock.acquire()
        self._previous = previous

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if threading.get_ident() != _main or self._previous is None:
            self._lock.release()
            return
        previous, self._previous = self._previous, None
        self._lock.release()
        _set_handler(_SIGINT, previous)
        if self._is_noted:  # looked at last, so that none is forgotten
            self._is_noted = False
            previous(_SIGINT, self._noted)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._is_noted, self._noted = True, frame
