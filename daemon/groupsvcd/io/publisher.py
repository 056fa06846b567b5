"""Multicasts of this node: the endpoint to which others subscribe, and who is there.

B and C subscribe to A's XPUB, and with keys libzmq asks once, when the connection is made, whether the key may come in.
Then the key of C is revoked. Nothing that C says is heard any more; but as long as its connection stands, it would hear
what A says to all. So A knows whose each connection is, by the subscriptions that come over it, and ends those of C
(``gate.py``). Who got in a moment before and has not subscribed yet is ended when it does.

Subscriptions are read with every Tick, so for so long somebody may be here of whom A does not know.
"""

from __future__ import annotations

from collections.abc import Callable

import zmq

from groupsvc.wire.limits import FRAME_BYTES_USUAL

from ..core.domain.limits import GROUPS_MAX
from ..core.peer_messages import TOPIC_BYTES
from . import clocks, sockets
from .complaints import Complaints
from .gate import Gate
from .large_frames import LargeFrames
from .sockets import NOBLOCK, PEER_RECEIVE_QUEUE_FRAMES, Context
from .watch import Watch

SUBSCRIPTION_BYTES = 1 + TOPIC_BYTES
"""Of an honest one: whether it begins or ends, and a topic."""
RECEIVED_BYTES_MAX = 1_024
"""Of anything that comes in here. Who subscribes to a book has libzmq make a tree of it, with a node for each byte."""

BEGINS, ENDS = b"\1", b"\0"

SUBSCRIPTIONS_PER_READING = 4_096
QUEUE_REFILLED_AT = PEER_RECEIVE_QUEUE_FRAMES // 2
REFILL_MS = 1
"""The queue of a connection is short, and libzmq goes on with it when half of it was read. Then a moment is waited: who
connects anew with ten thousand topics is served at once, and not by some dozens with every Tick."""
READING_S_MAX = 0.02
"""Who sends them drop by drop keeps nobody waiting for longer."""
SUBSCRIPTIONS_MAX = GROUPS_MAX + 1_024
"""Of one connection, and that it sends without a pause: who connects anew subscribes to all that it wants at once."""


class Publisher:
    """The XPUB of a daemon."""

    def __init__(
        self,
        context: Context,
        *,
        address: str,
        send_queue: int,
        watch: Watch,
        complaints: Complaints,
        is_listed: Callable[[str], bool] | None,
    ) -> None:
        self._address = address
        self._complaints = complaints
        self.sent = self.dropped = self.sent_bytes = 0
        self.socket = sockets.new_socket(
            context, zmq.XPUB, send_queue=send_queue, receive_queue=PEER_RECEIVE_QUEUE_FRAMES
        )
        self.socket.setsockopt(zmq.XPUB_VERBOSER, 1)
        self.socket.setsockopt(zmq.MAXMSGSIZE, RECEIVED_BYTES_MAX)
        self._gate = Gate(self.socket, port=address, watch=watch, complaints=complaints, is_listed=is_listed)
        self._large = LargeFrames(self.socket)

    def bind(self) -> None:
        """Listen."""
        sockets.bind(self.socket, self._address)

    def cut(self, key: str) -> None:
        """Who came with ``key`` hears nothing any more."""
        self.read_subscriptions()
        self._gate.cut(key)

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
        """Read who subscribes and unsubscribes, some at a time; unread they would pile up.

        The gate looks when they have been received: then it has been told of everybody they are from, and their
        descriptors are nobody else's.
        """
        parts: list[zmq.Frame] = []
        until = clocks.now() + READING_S_MAX
        while len(parts) < SUBSCRIPTIONS_PER_READING and clocks.now() < until:
            before = len(parts)
            self._receive_into(parts)
            if len(parts) < before + QUEUE_REFILLED_AT or not self.socket.poll(REFILL_MS):
                self._gate.forgive()
                break
        self._gate.look()
        for part in parts:
            self._count(part)

    def _receive_into(self, parts: list[zmq.Frame]) -> None:
        try:
            while len(parts) < SUBSCRIPTIONS_PER_READING:
                parts.append(self.socket.recv(NOBLOCK, copy=False))
        except zmq.Again:
            pass

    def _count(self, part: zmq.Frame) -> None:
        connection, word, topic = self._gate.heard(part), part.bytes[:1], part.bytes[1:]
        connection.said_at_once += 1
        if word == BEGINS:
            connection.topics.add(topic)
        else:
            connection.topics.discard(topic)
        if word not in (BEGINS, ENDS):
            self._complaints.note("bad frame", "what is no subscription came over the multicasts; it is cut off")
            self._gate.cut_source(part)
        elif max(len(connection.topics), connection.said_at_once) > SUBSCRIPTIONS_MAX:
            self._complaints.note("bad frame", f"more than {SUBSCRIPTIONS_MAX} subscriptions; who sent them is cut off")
            self._gate.cut_source(part)
        elif len(part) > SUBSCRIPTION_BYTES:
            self._complaints.note("bad frame", f"a subscription of {len(part)} bytes; who wants it is cut off")
            self._gate.cut_source(part)

    def close(self, linger_ms: int) -> None:
        """Multicast no more."""
        self._gate.close()
        self.socket.close(linger=linger_ms)
