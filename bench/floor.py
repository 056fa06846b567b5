"""The floor: ordered multicast to three processes with nothing around it.

How fast could this machine do it without an engine, epochs, checksums or recovery? A is the leader, B and C follow, in
the pattern of the daemons: B and C push what they submit and hold through a DEALER into A's ROUTER, A publishes the
order through an XPUB. Batches are lists of bytes, put together from whatever has come meanwhile; A and one more
(k = 2 of 3) must hold a message before anybody delivers it. Every process looks at every message and checks that none
is missing, doubled or out of order.

What it leaves out makes it no service: a lost frame or a dead process is the end of it. It is what our own rates are
divided by.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import msgspec
import zmq

from groupsvc.testing.loopback_ports import PortBlock

from .load import LOADS, WARM_UP_S, Load, Notes, Outcome, Program, outcome_of
from .row import Effort, Row, at_least, at_most

LEADER, FOLLOWERS = 0, (1, 2)
TOPIC = b"group\0\0\0\0\0\0\0\1"
FRAMES_PER_ROUND = 256
POLL_MS = 50
START_WAIT_S = 20
AFTER_S = 0.3
"""The processes go on for so long after what is measured, so that nobody measures how the others end."""

SNDMORE, NOBLOCK = int(zmq.SNDMORE), int(zmq.NOBLOCK)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, int, list[bytes]]).decode
"""To the leader: (who, held up to, submitted). From it: (number of the first, stable up to, ordered)."""

Socket = zmq.Socket[bytes]


def run(load: Load) -> Outcome:
    """Three processes under ``load``."""
    context = multiprocessing.get_context("spawn")
    block = PortBlock()
    ours: list[Connection] = []
    processes = []
    try:
        for me in (LEADER, *FOLLOWERS):
            here, there = context.Pipe()
            processes.append(context.Process(target=_process, args=(me, block.port, load, there), daemon=True))
            processes[-1].start()
            ours.append(here)
        for connection in ours:
            _received(connection, START_WAIT_S)
        begin = time.monotonic() + 0.1
        for connection in ours:
            connection.send(begin)
        whole = WARM_UP_S + load.seconds + AFTER_S
        notes = [msgspec.msgpack.decode(_received(each, whole + START_WAIT_S), type=Notes) for each in ours]
        return outcome_of(load, begin, notes)
    finally:
        for process in processes:
            process.kill()
            process.join()
        block.close()


def measure(effort: Effort) -> list[Row]:
    """The floor alone, without a promise: what this machine can do."""
    rows = []
    for name, load in LOADS.items():
        load = msgspec.structs.replace(load, seconds=effort.choose(2, 1))
        outcomes = [run(load) for _ in range(effort.runs)]
        if load.window == 1:
            rows.append(at_most(f"floor, {name}", "ms", [[1000 * each.latency] for each in outcomes]))
        else:
            rows.append(at_least(f"floor, {name}", "per s", [[each.rate] for each in outcomes]))
    return rows


def _received(connection: Connection, wait_s: float) -> bytes:
    if not connection.poll(wait_s):
        raise TimeoutError("a process of the floor does not answer")
    received: bytes = connection.recv_bytes()
    return received


def _process(me: int, port: int, load: Load, connection: Connection) -> None:
    context: zmq.Context[Socket] = zmq.Context(io_threads=1)
    program = Program(me, load)
    turn = (_Leader if me == LEADER else _Follower)(me, context, port, program).turn
    connection.send_bytes(b"ready")
    begin: float = connection.recv()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    time.sleep(max(0.0, begin - time.monotonic()))
    end = begin + WARM_UP_S + load.seconds + AFTER_S
    while time.monotonic() < end:
        turn()
    connection.send_bytes(msgspec.msgpack.encode(program.notes))
    connection.recv_bytes()  # stay until all have said what they have


class _Log:
    """Messages in their order; what is stable is delivered and forgotten."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._waiting: list[bytes] = []
        self._delivered = 0
        self.last = 0

    def append(self, messages: list[bytes]) -> None:
        self._waiting += messages
        self.last += len(messages)

    def deliver(self, stable: int) -> None:
        count = min(stable, self.last) - self._delivered
        if count > 0:
            self._program.deliver(self._waiting[:count])
            del self._waiting[:count]
            self._delivered += count


class _Leader:
    """Gives the numbers."""

    def __init__(self, me: int, context: zmq.Context[Socket], port: int, program: Program) -> None:
        self._program = program
        self._log = _Log(program)
        self._held = [0, 0, 0]
        self._submitted: list[bytes] = []
        self._told = 0
        self._router = _socket(context, zmq.ROUTER)
        self._router.bind(f"tcp://127.0.0.1:{port}")
        self._publisher = _socket(context, zmq.XPUB)
        self._publisher.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._publisher.bind(f"tcp://127.0.0.1:{port + 1}")
        self._poller = zmq.Poller()
        self._poller.register(self._router, zmq.POLLIN)
        for _ in FOLLOWERS:
            for listening in (self._publisher, self._router):
                if not listening.poll(1000 * START_WAIT_S):
                    raise TimeoutError("a follower does not come")
                listening.recv_multipart()

    def turn(self) -> None:
        """Read all there is, order it in one go, deliver what is stable."""
        if self._poller.poll(0 if self._program.room else POLL_MS):
            _drain(self._router, self._pushed)
        batch = [*self._submitted, *self._program.fresh()]
        self._submitted.clear()
        log, first = self._log, self._log.last + 1
        log.append(batch)
        stable = max(self._held)  # with the leader itself these are two
        if batch or stable > self._told:
            self._told = stable
            self._publisher.send(TOPIC, SNDMORE)
            self._publisher.send(_encode((first, stable, batch)))
        log.deliver(stable)

    def _pushed(self, frame: bytes) -> None:
        who, held, messages = _decode(frame)
        self._held[who] = held
        self._submitted += messages


class _Follower:
    """Holds what is ordered."""

    def __init__(self, me: int, context: zmq.Context[Socket], port: int, program: Program) -> None:
        self._me = me
        self._program = program
        self._log = _Log(program)
        self._stable = 0
        self._held_told = 0
        self._subscriber = _socket(context, zmq.SUB)
        self._subscriber.setsockopt(zmq.SUBSCRIBE, TOPIC)
        self._subscriber.connect(f"tcp://127.0.0.1:{port + 1}")
        self._dealer = _socket(context, zmq.DEALER)
        self._dealer.connect(f"tcp://127.0.0.1:{port}")
        self._dealer.send(b"here")
        self._poller = zmq.Poller()
        self._poller.register(self._subscriber, zmq.POLLIN)

    def turn(self) -> None:
        """Read all there is, deliver what is stable, and say what is held and what is to be ordered."""
        if self._poller.poll(0 if self._program.room else POLL_MS):
            _drain(self._subscriber, self._ordered)
        log = self._log
        log.deliver(self._stable)
        fresh = self._program.fresh()
        if fresh or log.last > self._held_told:
            self._held_told = log.last
            self._dealer.send(_encode((self._me, log.last, fresh)))

    def _ordered(self, frame: bytes) -> None:
        first, self._stable, messages = _decode(frame)
        if first != self._log.last + 1:
            raise AssertionError(f"entry {first} came after {self._log.last}")
        self._log.append(messages)


def _drain(receiving: Socket, take: Callable[[bytes], None]) -> None:
    """Every message has two parts, of which the second is the content."""
    receive = receiving.recv
    try:
        for _ in range(FRAMES_PER_ROUND):
            receive(NOBLOCK)
            take(receive(NOBLOCK))
    except zmq.Again:
        pass


def _socket(context: zmq.Context[Socket], kind: int) -> Socket:
    made = context.socket(kind)
    made.set_hwm(0)  # nothing may be lost, as nothing would repair it
    made.setsockopt(zmq.LINGER, 0)
    return made
