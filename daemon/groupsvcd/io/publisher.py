"""Multicasts of this node: the endpoint to which others subscribe, and how somebody is put out who is there already.

B and C subscribe to A's XPUB, and with keys libzmq asks once, when the connection is made, whether the key may come in.
Then the key of C is revoked. Nothing that C says is heard any more; but as long as its connection stands, it hears
what A says to all. ZeroMQ cannot cut one connection of a socket that listens. What it can is to stop listening, which
ends *all* connections that came in there, and to listen again: everybody connects anew, is asked for its key anew, and
C stays out.

What that costs: what A multicasts before B is back, some 50 to 200 ms later, B gets by repair, as if it had been lost.
Keys are revoked rarely. Only a key that goes is a reason, not one that comes.

Listening ends in libzmq's own thread, a moment after it was asked for. Until then the address is taken, so listening
again may not succeed at once, and is tried in every round until it does: nothing waits here.
"""

from __future__ import annotations

from collections.abc import Callable

import zmq

from groupsvc.wire.limits import FRAME_BYTES_USUAL

from . import sockets
from .complaints import Complaints
from .large_frames import LargeFrames
from .sockets import NOBLOCK, Context

SHUT_S = 1.0
"""If it cannot listen again after so long, somebody else has taken the address, and that is told."""


class Publisher:
    """The XPUB of a daemon."""

    def __init__(
        self, context: Context, *, address: str, send_queue: int, clock: Callable[[], float], complaints: Complaints
    ) -> None:
        self._address = address
        self._clock = clock
        self._complaints = complaints
        self._endpoint = ""  # where it listens, in the words of libzmq; "" if nowhere
        self._shut_at = 0.0
        self.is_shut = False  # it is to listen again
        self.sent = self.dropped = self.sent_bytes = 0
        self.socket = sockets.new_socket(context, zmq.XPUB, send_queue=send_queue)
        self.socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._large = LargeFrames(self.socket)

    def bind(self) -> None:
        """Listen."""
        sockets.bind(self.socket, self._address)
        self._endpoint = self.socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")

    def cut_all(self) -> None:
        """End all connections; who may come in is back in a moment."""
        if self._endpoint:
            self.socket.unbind(self._endpoint)
            self._endpoint, self.is_shut, self._shut_at = "", True, self._clock()
        self.listen_again()

    def listen_again(self) -> None:
        """If it is to and can by now."""
        if not self.is_shut:
            return
        try:
            self.bind()
            self.is_shut = False
        except sockets.CannotBind as problem:
            if self._clock() >= self._shut_at + SHUT_S:
                self._complaints.note("no multicasts", f"{problem}; it is tried again")

    def multicast(self, frame: bytes) -> None:
        """Send to everybody who subscribes to the topic that stands before the frame; slow ones miss it."""
        if len(frame) > FRAME_BYTES_USUAL:
            if not self._large.send(frame):
                self.dropped += 1
                return
        else:
            self.socket.send(frame, NOBLOCK)
        self.sent += 1
        self.sent_bytes += len(frame)

    def read_subscriptions(self) -> None:
        """Read and forget who subscribes and unsubscribes; unread they would pile up."""
        try:
            while True:
                self.socket.recv(NOBLOCK)
        except zmq.Again:
            pass

    def close(self, linger_ms: int) -> None:
        """Multicast no more."""
        self.socket.close(linger=linger_ms)
