"""A bare pyzmq hub, without replication: the simplest way to give messages one order, shown beside the floor.

How fast does this machine order messages with ZeroMQ and nothing else? A is the hub. B and C push each message into its
ROUTER as it is submitted, A gives it the next number and publishes it, and all three deliver it to the program of
``load``, which checks that none is missing, doubled or out of order. One message is one frame: nothing is held by
anybody but the hub, nobody acknowledges, and with the hub everything ends.

``floor`` is the measure for us: the same guarantee as ours for as long as nothing fails, and everything in batches.
"""

from __future__ import annotations

import contextlib
import struct

import zmq

from groupsvc.testing.loopback_ports import PortBlock

from .beside import FRAMES_PER_ROUND, NOBLOCK, POLL_MS, START_WAIT_S, Role, Socket, new_socket, run_beside
from .load import Load, Outcome, Program

HUB, CLIENTS = 0, (1, 2)

_stamp = struct.Struct("!QB")
"""What the hub puts before a payload: its number, and who sent it."""


def run(load: Load) -> Outcome:
    """Three processes under ``load``."""
    with contextlib.closing(PortBlock()) as block:
        return run_beside(load, _role, block.port)


def _role(me: int, port: int) -> Role:
    context: zmq.Context[Socket] = zmq.Context(io_threads=1)
    return _Hub(context, port) if me == HUB else _Client(me, context, port)


class _Hub:
    """Gives the numbers."""

    program: Program

    def __init__(self, context: zmq.Context[Socket], port: int) -> None:
        self._seq = 0
        self._own: list[bytes] = []
        self._router = new_socket(context, zmq.ROUTER)
        self._router.bind(f"tcp://127.0.0.1:{port}")
        self._publisher = new_socket(context, zmq.XPUB)
        self._publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._publisher.bind(f"tcp://127.0.0.1:{port + 1}")
        self._poller = zmq.Poller()
        self._poller.register(self._router, zmq.POLLIN)
        for _ in CLIENTS:
            for listening in (self._publisher, self._router):
                if not listening.poll(1000 * START_WAIT_S):
                    raise TimeoutError("a client does not come")
                listening.recv_multipart()

    def submit(self, payload: bytes) -> None:
        """A message of the hub's own program: in its turn, as the others'."""
        self._own.append(payload)

    def turn(self) -> None:
        """Number and publish all that has come, one by one."""
        if self._poller.poll(0 if self._own else POLL_MS):
            receive = self._router.recv
            try:
                for _ in range(FRAMES_PER_ROUND):
                    sender = receive(NOBLOCK)[0]
                    self._publish(sender, receive(NOBLOCK))
            except zmq.Again:
                pass
        own, self._own = self._own, []
        for payload in own:
            self._publish(HUB, payload)
        self.program.note()
        self.program.fill()

    def _publish(self, sender: int, payload: bytes) -> None:
        self._seq += 1
        self._publisher.send(_stamp.pack(self._seq, sender) + payload)
        self.program.deliver(self._seq, sender, payload)


class _Client:
    """Sends and receives."""

    program: Program

    def __init__(self, me: int, context: zmq.Context[Socket], port: int) -> None:
        self._subscriber = new_socket(context, zmq.SUB)
        self._subscriber.setsockopt(zmq.SUBSCRIBE, b"")
        self._subscriber.connect(f"tcp://127.0.0.1:{port + 1}")
        self._dealer = new_socket(context, zmq.DEALER)
        self._dealer.setsockopt(zmq.ROUTING_ID, bytes((me,)))
        self._dealer.connect(f"tcp://127.0.0.1:{port}")
        self._dealer.send(b"here")
        self._poller = zmq.Poller()
        self._poller.register(self._subscriber, zmq.POLLIN)
        self.submit = self._dealer.send

    def turn(self) -> None:
        """Deliver all that has come."""
        if self._poller.poll(POLL_MS):
            receive, deliver = self._subscriber.recv, self.program.deliver
            try:
                for _ in range(FRAMES_PER_ROUND):
                    frame = receive(NOBLOCK)
                    seq, sender = _stamp.unpack_from(frame)
                    deliver(seq, sender, frame[_stamp.size :])
            except zmq.Again:
                pass
            self.program.note()
            self.program.fill()
