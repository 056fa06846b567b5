"""Three processes under a load, started together, measured, ended: what our rates are divided by, and our clients."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

import msgspec
import zmq

from .companions import process_context
from .load import AFTER_S, WARM_UP_S, Load, Notes, Outcome, Program, measured_time, outcome_of
from .processor import spent_between

PROCESSES = 3
FRAMES_PER_ROUND = 256
POLL_MS = 50
START_WAIT_S = 20

SNDMORE, NOBLOCK = int(zmq.SNDMORE), int(zmq.NOBLOCK)

Socket = zmq.Socket[bytes]


class Role(Protocol):
    """What one of the processes is."""

    program: Program

    def submit(self, payload: bytes, /) -> object:
        """A message of this process's program."""

    def turn(self) -> None:
        """One round of its loop."""


NewRole = Callable[[int, Any], Role]
"""From its number (0, 1, 2) and whatever tells it where the others are."""

NewProgram = Callable[[int, Load, Callable[[bytes], object]], Program]


def run_beside(
    load: Load,
    new_role: NewRole,
    where: Any,
    *,
    also: Sequence[int] = (),
    new_program: NewProgram = Program,
    noted: type[Notes] = Notes,
    check: Callable[[Sequence[Any]], object] = len,
) -> Outcome:
    """Three processes under ``load``; ``new_role`` is called in each of them.

    The processor time is theirs and that of the processes ``also``. Another program than that of ``load`` may keep
    other notes (``noted``), which are looked at by ``check``.
    """
    context = process_context()
    ours: list[Connection] = []
    processes = []
    try:
        for me in range(PROCESSES):
            here, there = context.Pipe()
            processes.append(
                context.Process(target=_process, args=(me, where, load, new_role, new_program, there), daemon=True)
            )
            processes[-1].start()
            ours.append(here)
        for connection in ours:
            _received(connection, START_WAIT_S)
        begin = time.monotonic() + 0.1
        for connection in ours:
            connection.send(begin)
        pids = [*also, *(process.pid for process in processes if process.pid is not None)]
        spent_s = spent_between(pids, *measured_time(load, begin))
        notes = [msgspec.msgpack.decode(_received(each, AFTER_S + START_WAIT_S), type=noted) for each in ours]
        check(notes)
        return outcome_of(load, begin, notes, spent_s)
    finally:
        for process in processes:
            process.kill()
            process.join()


def _received(connection: Connection, wait_s: float) -> bytes:
    if not connection.poll(wait_s):
        raise TimeoutError("a process does not answer")
    received: bytes = connection.recv_bytes()
    return received


def _process(
    me: int, where: Any, load: Load, new_role: NewRole, new_program: NewProgram, connection: Connection
) -> None:
    role = new_role(me, where)
    program = new_program(me, load, role.submit)
    role.program = program
    connection.send_bytes(b"ready")
    begin: float = connection.recv()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    time.sleep(max(0.0, begin - time.monotonic()))
    end = begin + WARM_UP_S + load.seconds + AFTER_S
    program.is_sending = load.sends(me)
    program.fill()
    while time.monotonic() < end:
        role.turn()
    connection.send_bytes(msgspec.msgpack.encode(program.notes))
    connection.recv_bytes()  # stay until all have said what they have


def new_socket(context: zmq.Context[Socket], kind: int) -> Socket:
    """One that drops nothing, as nothing would repair it."""
    made = context.socket(kind)
    made.set_hwm(0)
    made.setsockopt(zmq.LINGER, 0)
    return made
