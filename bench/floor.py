"""The floor: ordered multicast to three processes, in batches and held by two, with nothing around it.

How fast could this machine do what we promise, as long as nothing fails, with bare pyzmq? A is the leader, B and C
follow, in the pattern of the daemons: B and C push what they submit and hold through a DEALER into A's ROUTER, A
publishes the order through an XPUB.

What it does, because every ordered multicast with an interface for single messages has to:

- a message is submitted by a call of its own and gets the next number of its sender;
- what was submitted in one round of the poll loop leaves in one frame; nothing is put together beforehand;
- the leader looks at (sender, number) of every message, and gives the next number to what it has not seen;
- an entry carries its sender, its number there and its payload;
- A and one more (k = 2 of 3) hold an entry before anybody delivers it;
- every message is handed up by a call of its own, with number, sender and payload, to the program of ``load``, which
  checks that none is missing, doubled or out of order.

What it leaves out makes it no service: epochs, leases, checksums, a log that somebody could be repaired from, memory
that is bounded, views, several groups, an engine without I/O. A lost frame or a dead process is the end of it. It is
what our own rates are divided by.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec
import zmq

from groupsvc.testing.loopback_ports import PortBlock

from .beside import FRAMES_PER_ROUND, NOBLOCK, POLL_MS, SNDMORE, START_WAIT_S, Role, Socket, new_socket, run_beside
from .load import Load, Outcome, Program

LEADER, FOLLOWERS = 0, (1, 2)
TOPIC = b"group\0\0\0\0\0\0\0\1"
Entry = tuple[int, int, bytes]
"""Sender, number there, payload."""

_encode = msgspec.msgpack.Encoder().encode
_decode_pushed = msgspec.msgpack.Decoder(tuple[int, int, int, list[bytes]]).decode
"""To the leader: (who, held up to, number of the first, payloads)."""
_decode_ordered = msgspec.msgpack.Decoder(tuple[int, int, list[Entry]]).decode
"""From the leader: (number of the first, stable up to, entries)."""


def run(load: Load) -> Outcome:
    """Three processes under ``load``."""
    with contextlib.closing(PortBlock()) as block:
        return run_beside(load, _role, block.port)


def _role(me: int, port: int) -> Role:
    context: zmq.Context[Socket] = zmq.Context(io_threads=1)
    return _Leader(context, port) if me == LEADER else _Follower(me, context, port)


class _Log:
    """Entries in their order; what is stable is handed up and forgotten."""

    def __init__(self) -> None:
        self._waiting: list[Entry] = []
        self._delivered = 0
        self.last = 0

    def append(self, entries: list[Entry]) -> None:
        self._waiting += entries
        self.last += len(entries)

    def deliver(self, stable: int, program: Program) -> None:
        count = min(stable, self.last) - self._delivered
        if count > 0:
            deliver, seq = program.deliver, self._delivered
            for sender, _, payload in self._waiting[:count]:
                seq += 1
                deliver(seq, sender, payload)
            del self._waiting[:count]
            self._delivered = seq
            program.note()
            program.fill()


class _Leader:
    """Gives the numbers."""

    program: Program

    def __init__(self, context: zmq.Context[Socket], port: int) -> None:
        self.log = _Log()
        self._held = [0, 0, 0]
        self._newest = [0, 0, 0]
        self._fresh: list[Entry] = []
        self._told = 0
        self._router = new_socket(context, zmq.ROUTER)
        self._router.bind(f"tcp://127.0.0.1:{port}")
        self._publisher = new_socket(context, zmq.XPUB)
        self._publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._publisher.bind(f"tcp://127.0.0.1:{port + 1}")
        self._poller = zmq.Poller()
        self._poller.register(self._router, zmq.POLLIN)
        for _ in FOLLOWERS:
            for listening in (self._publisher, self._router):
                if not listening.poll(1000 * START_WAIT_S):
                    raise TimeoutError("a follower does not come")
                listening.recv_multipart()

    def submit(self, payload: bytes) -> None:
        """A message of the leader's own."""
        self._order(LEADER, self._newest[LEADER] + 1, payload)

    def _order(self, sender: int, n: int, payload: bytes) -> None:
        newest = self._newest[sender]
        if n <= newest:
            return  # a duplicate
        if n != newest + 1:
            raise AssertionError(f"number {n} of {sender} came after {newest}")
        self._newest[sender] = n
        self._fresh.append((sender, n, payload))

    def turn(self) -> None:
        """Read all there is, publish what was ordered in one frame, deliver what is stable."""
        if self._poller.poll(0 if self._fresh else POLL_MS):
            _drain(self._router, self._pushed)
        log, fresh, first = self.log, self._fresh, self.log.last + 1
        stable = max(self._held)  # with the leader itself these are two
        if fresh or stable > self._told:
            self._fresh = []
            log.append(fresh)
            self._told = stable
            self._publisher.send(TOPIC, SNDMORE)
            self._publisher.send(_encode((first, stable, fresh)))
        log.deliver(stable, self.program)

    def _pushed(self, frame: bytes) -> None:
        who, held, n, payloads = _decode_pushed(frame)
        self._held[who] = held
        for payload in payloads:
            self._order(who, n, payload)
            n += 1


class _Follower:
    """Holds what is ordered."""

    program: Program

    def __init__(self, me: int, context: zmq.Context[Socket], port: int) -> None:
        self.log = _Log()
        self._me = me
        self._n = 0
        self._fresh: list[bytes] = []
        self._stable = 0
        self._held_told = 0
        self._subscriber = new_socket(context, zmq.SUB)
        self._subscriber.setsockopt(zmq.SUBSCRIBE, TOPIC)
        self._subscriber.connect(f"tcp://127.0.0.1:{port + 1}")
        self._dealer = new_socket(context, zmq.DEALER)
        self._dealer.connect(f"tcp://127.0.0.1:{port}")
        self._dealer.send(b"here")
        self._poller = zmq.Poller()
        self._poller.register(self._subscriber, zmq.POLLIN)

    def submit(self, payload: bytes) -> None:
        """One message; it leaves at the end of this round."""
        self._n += 1
        self._fresh.append(payload)

    def turn(self) -> None:
        """Read all there is, deliver what is stable, and say what is held and what is to be ordered."""
        if self._poller.poll(0 if self._fresh else POLL_MS):
            _drain(self._subscriber, self._ordered)
        log = self.log
        log.deliver(self._stable, self.program)
        fresh = self._fresh
        if fresh or log.last > self._held_told:
            self._fresh = []
            self._held_told = log.last
            self._dealer.send(_encode((self._me, log.last, self._n - len(fresh) + 1, fresh)))

    def _ordered(self, frame: bytes) -> None:
        first, self._stable, entries = _decode_ordered(frame)
        if first != self.log.last + 1:
            raise AssertionError(f"entry {first} came after {self.log.last}")
        self.log.append(entries)


def _drain(receiving: Socket, take: Callable[[bytes], None]) -> None:
    """Every message has two parts, of which the second is the content."""
    receive = receiving.recv
    try:
        for _ in range(FRAMES_PER_ROUND):
            receive(NOBLOCK)
            take(receive(NOBLOCK))
    except zmq.Again:
        pass
