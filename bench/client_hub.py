"""A bare pyzmq hub with client processes: the floor for what applications see of us.

The hub is a process of its own, as our daemon is. A, B and C connect to its Unix socket. Each message is one frame: its
sender pushes it, the hub gives it the next number and sends it to everybody, and each delivers it to the program of
``load``. Nothing is held by anybody but the hub, nobody acknowledges, and nobody is told when somebody dies.
"""

from __future__ import annotations

import multiprocessing
import struct
import tempfile
from pathlib import Path

import zmq

from .beside import FRAMES_PER_ROUND, NOBLOCK, POLL_MS, PROCESSES, SNDMORE, new_socket, run_beside
from .load import Load, Outcome, Program

_stamp = struct.Struct("!QB")
"""What the hub puts before a payload: its number, and who sent it."""


def run(load: Load) -> Outcome:
    """A hub and three clients under ``load``."""
    with tempfile.TemporaryDirectory(prefix="groupsvc-hub-") as directory:
        address = f"ipc://{Path(directory) / 'hub.sock'}"
        hub = multiprocessing.get_context("spawn").Process(target=_hub, args=(address,), daemon=True)
        hub.start()
        try:
            assert hub.pid is not None
            return run_beside(load, _Client, address, also=(hub.pid,))
        finally:
            hub.kill()
            hub.join()


def _hub(address: str) -> None:
    router = new_socket(zmq.Context(io_threads=1), zmq.ROUTER)
    router.bind(address)
    receive, send, pack = router.recv, router.send, _stamp.pack
    clients: set[bytes] = set()
    while len(clients) < PROCESSES:  # everybody says that it is there
        clients.add(receive())
        receive()
    for client in clients:
        send(client, SNDMORE)
        send(b"go")
    seq = 0
    while True:
        router.poll()
        try:
            for _ in range(FRAMES_PER_ROUND):
                sender = receive(NOBLOCK)
                seq += 1
                frame = pack(seq, sender[0]) + receive(NOBLOCK)
                for client in clients:
                    send(client, SNDMORE)
                    send(frame)
        except zmq.Again:
            pass


class _Client:
    """Sends and receives."""

    program: Program

    def __init__(self, me: int, address: str) -> None:
        self._dealer = new_socket(zmq.Context(io_threads=1), zmq.DEALER)
        self._dealer.setsockopt(zmq.ROUTING_ID, bytes((me + 1,)))  # none begins with a zero
        self._dealer.connect(address)
        self._dealer.send(b"here")
        self._dealer.recv()
        self.submit = self._dealer.send

    def turn(self) -> None:
        """Deliver all that has come."""
        if self._dealer.poll(POLL_MS):
            receive, deliver = self._dealer.recv, self.program.deliver
            try:
                for _ in range(FRAMES_PER_ROUND):
                    frame = receive(NOBLOCK)
                    seq, sender = _stamp.unpack_from(frame)
                    deliver(seq, sender, frame[_stamp.size :])
            except zmq.Again:
                pass
            self.program.note()
            self.program.fill()
