"""The thread on which a session runs the application's callbacks, one at a time.

Not on the thread that reads the socket: a callback may call the API, and that call needs somebody to read. Not on a new
thread for each: two votes of one member would overtake each other. It is started when the first callback is due.

While a callback runs, the machine knows since when; a program whose callback hangs is announced to its groups as
unresponsive, not as dead. Its errors go to ``threading.excepthook``, as those of any thread, and the next is run. That
holds for ``sys.exit()`` as well: in a thread it ends no program, only the thread, and nobody would vote here any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue

from ..errors import UsageError

_log = logging.getLogger("groupsvc.client")

Task = Callable[[], None]


def report(error: BaseException) -> None:
    """An error in code of the application, shown as one that ends a thread: the log alone may have no reader."""
    if isinstance(error, SystemExit):  # which ``excepthook`` passes over in silence
        exits, error = error, UsageError("a callback cannot end the program with sys.exit(); tell the main thread to")
        error.__cause__ = exits
    found = (type(error), error, error.__traceback__, threading.current_thread())
    try:
        threading.excepthook(threading.ExceptHookArgs(found))
    except Exception:  # it is the application's code, too; the vote is cast all the same
        _log.exception("threading.excepthook raised an error")


class Callbacks:
    """A queue of things to run, and the thread that runs them."""

    def __init__(self, name: str, busy: Callable[[bool], None]) -> None:
        self._name = name
        self._busy = busy
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self.thread_id: int | None = None  # of the thread, once there is one
        self._is_over = False

    @property
    def is_here(self) -> bool:
        """Whether the caller *is* a callback."""
        return threading.get_ident() == self.thread_id

    def put(self, task: Task) -> None:
        """Run this after those before it. Called by one thread at a time."""
        if self._is_over:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
            self.thread_id = self._thread.ident
        self._tasks.put(task)

    def end(self) -> None:
        """Nothing more is run after what was put before."""
        if not self._is_over:
            self._is_over = True
            self._tasks.put(None)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._busy(True)
            try:
                task()
            except BaseException as error:
                _log.exception("a callback of the application raised an error")
                report(error)
            finally:
                self._busy(False)
