"""One thread for all sessions of the process: it pumps those that nobody pumps.

A thread of the program that waits for something reads the socket itself; that saves two changes of threads per call.
But while the program computes, proposals must be voted on, events queued and the daemon told that we live. This thread
does it. It is started with the first session, sleeps in one ``epoll``, and ends with the process.

A session whose socket is being read by a waiting thread is *paused* here: its descriptor stays registered and reports
nothing. The kernel takes care of the hand-over: switched on again, it reports what is still there. The other descriptor
of a socket, which tells that its connection has ended, is never paused: that happens once, and either may notice it.

After a fork the child has no such thread and must not touch the parent's: it starts from nothing. When the interpreter
ends, every session says goodbye, within a bounded time, and nobody is woken for it: threads that still wait are part of
what ends.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import select
import threading
import weakref
from typing import Protocol

from .. import clock
from . import interrupts

_log = logging.getLogger("groupsvc.client")

PAUSE_S_MAX = 0.5
"""No sleep is longer than a session's silence may be."""


class Pumped(Protocol):
    """A session, as this thread sees it."""

    deadline: float
    is_foreign: bool

    def pump_from_background(self, fds: frozenset[int]) -> None:
        """These descriptors are readable, or time has passed."""

    def end_with_the_process(self) -> None:
        """The interpreter ends."""


class Background:
    """The thread, and what it watches."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._sessions: dict[Pumped, None] = {}
        self._by_fd: dict[int, Pumped] = {}
        self._thread: threading.Thread | None = None
        self._stops = False

    def add(self, session: Pumped) -> None:
        """Look after it from now on."""
        with self._lock:
            self._sessions[session] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="groupsvc", daemon=True)
                self._thread.start()
        self.wake()

    def remove(self, session: Pumped) -> None:
        """It is over."""
        with self._lock:
            self._sessions.pop(session, None)

    def watch(self, session: Pumped, fds: tuple[int, ...]) -> None:
        """Its socket: the first descriptor, which tells that something came, is paused."""
        with self._lock:
            for fd in fds:
                self._by_fd[fd] = session
                self._epoll.register(fd, 0 if fd == fds[0] else select.EPOLLIN)

    def unwatch(self, fds: tuple[int, ...]) -> None:
        """The socket is about to be closed."""
        with self._lock:
            for fd in fds:
                if self._by_fd.pop(fd, None) is not None:
                    with contextlib.suppress(OSError):
                        self._epoll.unregister(fd)

    def pause(self, fd: int) -> None:
        """Somebody else reads what comes there."""
        self._epoll.modify(fd, 0)

    def resume(self, fd: int) -> None:
        """Nobody does any more."""
        self._epoll.modify(fd, select.EPOLLIN)

    def wake(self) -> None:
        """Something changed that it should look at."""
        os.eventfd_write(self._wake, 1)

    def stop(self) -> None:
        """End the thread."""
        self._stops = True
        self.wake()

    def sessions(self) -> list[Pumped]:
        """Those it looks after."""
        with self._lock:
            return list(self._sessions)

    def _run(self) -> None:
        while not self._stops:
            sessions = self.sessions()
            now = clock.now()
            earliest = min((one.deadline for one in sessions), default=math.inf)
            ready = self._epoll.poll(max(0.0, min(earliest - now, PAUSE_S_MAX)))
            fds = {fd for fd, _ in ready}
            if self._wake in fds:
                fds.discard(self._wake)
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
            readable: dict[Pumped, set[int]] = {}
            with self._lock:
                for fd in fds:
                    if fd in self._by_fd:
                        readable.setdefault(self._by_fd[fd], set()).add(fd)
            now = clock.now()
            for session in sessions:
                if session in readable or session.deadline <= now:
                    self._pump(session, frozenset(readable.get(session, ())))

    def _pump(self, session: Pumped, fds: frozenset[int]) -> None:
        try:
            session.pump_from_background(fds)
        except Exception:  # no thread can be started, for example; the others must not suffer for it
            _log.exception("a session broke in the background; it is looked after no longer, and so it is suspended")
            self.remove(session)


_background: Background | None = None
_starting = threading.Lock()
_everybody: weakref.WeakSet[Pumped] = weakref.WeakSet()


def background(session: Pumped) -> Background:
    """The one of this process, for a session that begins."""
    global _background
    with _starting:
        if _background is None:
            _background = Background()
        _everybody.add(session)
        return _background


def _after_fork_in_child() -> None:
    global _background, _starting, _everybody
    interrupts.after_fork_in_child()
    for session in list(_everybody):
        session.is_foreign = True
    _background = None
    _starting = threading.Lock()
    _everybody = weakref.WeakSet()


def _at_exit() -> None:
    found = _background
    if found is None:
        return
    for session in found.sessions():
        session.end_with_the_process()
    found.stop()
    if found._thread is not None:
        found._thread.join(timeout=1.0)


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
