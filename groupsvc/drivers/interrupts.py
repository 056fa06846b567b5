"""Signals come between two steps, not in the middle of one.

Python runs handlers of signals between any two bytecodes of the main thread, and what they raise is raised there:
``KeyboardInterrupt``, the ``SystemExit`` of a service that is stopped, the error of an alarm. If that is while a frame
has left the socket and was not yet counted, the session is torn for ever. And a handler that closes the session would
wait for a lock that its own thread holds. So what must happen whole is done under a ``Guard``: it holds the lock of the
session and, in the main thread, keeps the handlers of the program waiting for microseconds. Waiting itself is never
done under it, so a signal ends a wait at once and leaves the session as it was.

It looks at the signals that programs handle. The handler of any other one, or a finalizer that the garbage collector
runs, may still come in the middle: if it uses the session then, it is told so (``UsageError``) and nothing is torn.

Rejected: blocking the signals in the main thread's mask. The kernel gives them to another thread then, and Python still
runs their handlers in the main one.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

from ..errors import UsageError

# Those of ``signal`` make enums of everything, which takes ten times as long as the call; both are CPython's own.
_fast: Any = sys.modules.get("_signal", signal)
_set_handler: Any = _fast.signal
_get_handler: Any = _fast.getsignal
_main = threading.main_thread().ident

SIGNALS = tuple(
    int(getattr(signal, name))
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCHLD")
)
"""Whose handlers are kept waiting. To look at all of them costs 1 µs per step, so it is not all there are."""

Handlers = tuple[tuple[int, Any], ...]
"""Numbers of signals, and what the program does about them."""


class Guard:
    """``with guard:`` holds ``lock``; a signal meanwhile is handled at the end. Not for nesting."""

    def __init__(self, lock: threading.RLock) -> None:
        self._lock: Any = lock
        self._is_inside = False
        self._seen: tuple[Any, ...] = ()
        self._handled: Handlers = ()  # what of it can be called
        self._replaced: Handlers | None = None  # None: not by this thread
        self._noted: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.get_ident() != _main:
            self._lock.acquire()
            if self._is_inside:
                self._refuse()
            self._is_inside = True
            return
        seen = tuple(map(_get_handler, SIGNALS))
        replaced = self._handled if seen == self._seen else self._look_again(seen)
        try:
            for number, _ in replaced:
                _set_handler(number, self._note)
            self._lock.acquire()
            if self._is_inside:
                self._refuse()
        except BaseException:  # of a handler that was not replaced yet
            _give_back(replaced)
            raise
        self._is_inside = True
        self._replaced = replaced

    def _look_again(self, seen: tuple[Any, ...]) -> Handlers:
        handled = tuple((number, one) for number, one in zip(SIGNALS, seen, strict=True) if callable(one))
        self._seen, self._handled = seen, handled
        return handled

    def _refuse(self) -> None:
        self._lock.release()
        raise UsageError(
            "this session was in the middle of a step of this very thread: a handler of a signal, or a finalizer,"
            " cannot use it there; let it note what is to be done, and do it in the program itself"
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_inside = False
        replaced, self._replaced = self._replaced, None
        self._lock.release()
        if replaced is None:
            return
        if len(replaced) == 1:
            _set_handler(*replaced[0])
        else:
            _give_back(replaced)
        if self._noted:  # looked at last, so that none is forgotten
            self._handle()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if all(number != noted for noted, _ in self._noted):
            self._noted.append((number, frame))

    def _handle(self) -> None:
        while self._noted:
            number, frame = self._noted[0]
            handler = _get_handler(number)
            if handler == self._note:
                return  # a handler was run while another step was about to begin: that one's end comes, too
            del self._noted[0]
            if callable(handler):
                handler(number, frame)

    def original(self, number: int) -> Any:
        """What the program does about a signal that is kept waiting here."""
        found = dict(self._replaced or self._handled).get(number)
        return signal.SIG_DFL if found is None or found == self._note else found


def _give_back(replaced: Handlers) -> None:
    """All of them, also if one is run, and raises, before the next is back."""
    if replaced:
        try:
            _set_handler(*replaced[0])
        finally:
            _give_back(replaced[1:])


def after_fork_in_child() -> None:
    """The thread that forked is the main one. If it was not, the other one may have been in the middle of a step."""
    global _main
    _main = threading.get_ident()
    for number in SIGNALS:
        guard = getattr(_get_handler(number), "__self__", None)
        if isinstance(guard, Guard):
            _set_handler(number, guard.original(number))
