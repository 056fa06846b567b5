"""One file descriptor for all the small ones.

The reactor polls a handful of ZeroMQ sockets; each further entry in that poll costs about a microsecond
every time around. Pidfds of clients, monitors of connections, probes, the journal's wake-up and the signals are
many and rarely speak, so they share one epoll object, and only its descriptor is in the reactor's poll.
"""

from __future__ import annotations

import select
from collections.abc import Callable

EVENTS_PER_ROUND = 64


class Watch:
    """Calls what was registered for a descriptor when it becomes ready (level-triggered)."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}

    def fileno(self) -> int:
        """The descriptor that is readable while any of ours is ready."""
        return self._epoll.fileno()

    def add(self, fd: int, callback: Callable[[], None], *, writable: bool = False) -> None:
        """Call ``callback`` whenever ``fd`` is readable (or ``writable``)."""
        self._epoll.register(fd, select.EPOLLOUT if writable else select.EPOLLIN)
        self._callbacks[fd] = callback

    def remove(self, fd: int) -> None:
        """Forget ``fd``; must come before it is closed."""
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def run(self) -> None:
        """Call everybody who is ready, without waiting."""
        for fd, _ in self._epoll.poll(0, EVENTS_PER_ROUND):
            callback = self._callbacks.get(fd)
            if callback is not None:  # an earlier callback of this round may have removed it
                callback()

    def close(self) -> None:
        """Stop watching; the descriptors stay open."""
        self._callbacks.clear()
        self._epoll.close()
