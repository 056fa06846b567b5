"""Multicasts of nodes with keys: a subscriber for each node, so that it is proven whose a frame is.

Without keys one socket hears the multicasts of everybody. Node B connects it to A's publisher and to C's; over which of
the two a frame came, libzmq does not tell. With keys that must be known: B expects A's key where it connects to A, so
what comes over *that* connection is A's, whatever it says of itself. So B has one socket for A and another one for C.

In the reactor's poll each of them would cost a microsecond every time around. They are in the ``Watch`` instead, which
tells by the descriptor of the socket that something *may* have come, once; so whoever was named there is read until it
is empty. A socket that is used for anything else may swallow the sign, and is looked at as well.

The monitor of one socket for all would name the descriptor and the address of each connection, and a frame has its
descriptor. But of a connection that was made anew it gives the address as a number, not the name that was connected to.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
import zmq

from groupsvc.drivers import curve
from groupsvc.keys import Keys

from . import sockets
from .sockets import NOBLOCK, Context, Socket
from .watch import Watch


@attrs.frozen
class _Heard:
    socket: Socket
    fd: int


class Subscribers:
    """The multicasts of each node, heard over a socket of its own that expects its key."""

    def __init__(self, context: Context, *, own: Keys, watch: Watch, first_topic: bytes) -> None:
        self._context = context
        self._own = own
        self._watch = watch
        self._topics = [first_topic]
        self._heard: dict[str, _Heard] = {}
        self._unread: set[str] = set()

    @property
    def has_unread(self) -> bool:
        """Whether something may be left to be read, of which no descriptor tells any more."""
        return bool(self._unread)

    def listen(self, node: str, endpoint: str, key: str) -> None:
        """Hear ``node`` from ``endpoint``, where it must show ``key``, and from nowhere else."""
        self.forget(node)
        subscriber = sockets.new_subscriber(self._context)
        curve.show(subscriber, self._own)
        curve.expect(subscriber, key)
        for topic in self._topics:
            subscriber.setsockopt(zmq.SUBSCRIBE, topic)
        subscriber.connect(endpoint)
        fd = sockets.fd_of(subscriber)
        self._heard[node] = _Heard(subscriber, fd)
        self._watch.add(fd, lambda: self._unread.add(node))
        self._unread.add(node)

    def forget(self, node: str) -> None:
        """Hear ``node`` no longer."""
        heard = self._heard.pop(node, None)
        if heard is not None:
            self._unread.discard(node)
            self._watch.remove(heard.fd)
            heard.socket.close(linger=0)

    def subscribe(self, topic: bytes) -> None:
        """Hear multicasts on ``topic`` from everybody."""
        self._topics.append(topic)
        for node, heard in self._heard.items():
            heard.socket.setsockopt(zmq.SUBSCRIBE, topic)
            self._unread.add(node)

    def unsubscribe(self, topic: bytes) -> None:
        """Hear them no longer."""
        self._topics.remove(topic)
        for node, heard in self._heard.items():
            heard.socket.setsockopt(zmq.UNSUBSCRIBE, topic)
            self._unread.add(node)

    def receive(
        self, frames_max: int, bytes_max: int, take: Callable[[str, zmq.Frame, Socket], bool], *, all_of_them: bool
    ) -> None:
        """Give ``take`` what has come, with the node it is from, of each to a limit, or until it says: no more now."""
        if all_of_them:
            self._unread.update(self._heard)
        for node in list(self._unread):
            receiving, left = self._heard[node].socket, bytes_max
            try:
                for _ in range(frames_max):
                    part = receiving.recv(NOBLOCK, copy=False)
                    left -= len(part)
                    if not take(node, part, receiving) or left <= 0:
                        break
            except zmq.Again:
                self._unread.discard(node)

    def close(self) -> None:
        """Hear nobody any more."""
        for node in list(self._heard):
            self.forget(node)
