"""Connections that have not said who they are.

A ZeroMQ socket says Hello with its first frame, right behind the handshake. Who has connected and says nothing holds a
descriptor and a queue, and its routing id: libzmq numbers connections one after the other, a client may choose a number
that will come, and when it comes an assertion of libzmq stops the whole process. So whoever has not said Hello after a
while is cut off, and of very many at once the oldest. (That nobody knows which numbers will come: ``sockets.py``.)

libzmq cannot cut off one connection of a socket. But the monitor names its descriptor, and a copy of that can be shut
down; libzmq then sees what it sees when the other end hangs up. That it is still the same connection is told by a
number that the kernel gives to every socket and never again.
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Callable

from .complaints import Complaints
from .sockets import borrowed

HELLO_S = 5.0
"""From being connected on; what a handshake may take (``HANDSHAKE_MS``), and some."""

SO_COOKIE = 57
"""Since Linux 4.12; the socket module does not know it."""
COOKIE_BYTES = 8


class Strangers:
    """The connections at one socket that have not said Hello, the oldest first."""

    def __init__(self, clock: Callable[[], float], complaints: Complaints, most: int) -> None:
        self._clock, self._complaints, self._most = clock, complaints, most
        self._waiting: dict[int, tuple[float, bytes]] = {}  # by descriptor: until when, and the kernel's number

    def came(self, fd: int, known: bytes | None = None) -> None:
        """There is a connection; ``known`` is the number of one that has said Hello over this descriptor."""
        self._waiting.pop(fd, None)
        cookie = cookie_of(fd)
        if cookie and cookie != known:
            self._waiting[fd] = (self._clock() + HELLO_S, cookie)
        if len(self._waiting) > self._most:
            self._cut(next(iter(self._waiting)), f"more than {self._most} connections have not said Hello")

    def forget(self, fd: int) -> None:
        """It is over, or it has said Hello."""
        self._waiting.pop(fd, None)

    @property
    def deadline(self) -> float:
        """When the next one is late."""
        for until, _ in self._waiting.values():
            return until
        return math.inf

    def cut_late(self) -> None:
        """Cut off who has had its time; what the monitor tells must have been read."""
        now = self._clock()
        for fd in [fd for fd, (until, _) in self._waiting.items() if until <= now]:
            self._cut(fd, f"a connection has not said Hello within {HELLO_S:.0f} s")

    def _cut(self, fd: int, why: str) -> None:
        _, cookie = self._waiting.pop(fd)
        if cut_off(fd, cookie):
            self._complaints.note("silent client", f"{why}; cut off")


def cut_off(fd: int, cookie: bytes) -> bool:
    """Hang up, if ``fd`` is still the connection with this number."""
    try:
        with borrowed(fd) as connection:
            if connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, COOKIE_BYTES) != cookie:
                return False  # another's by now
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            return True
    except OSError:
        return False


def cookie_of(fd: int) -> bytes:
    """The number that the kernel has given to the connection ``fd``; empty if it is none."""
    try:
        with borrowed(fd) as connection:
            return connection.getsockopt(socket.SOL_SOCKET, SO_COOKIE, COOKIE_BYTES)
    except OSError:
        return b""
