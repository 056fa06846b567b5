"""One turn of a session on its socket: send, receive, let time pass. Both drivers do it with this.

Two orders matter. Nothing is sent after the last look for something to receive, because sending may swallow the only
sign that something came; so the last thing is always a look that found nothing. And time passes after everything
that has come was read: a program that was stopped for a while finds its answers, and not its deadlines.
"""

from __future__ import annotations

from .. import clock
from ..sansio.session_machine import SessionMachine
from .daemon_socket import DaemonSocket

FRAMES_PER_TURN = 64
"""So many frames are read before anybody else gets a turn."""


def exchange(machine: SessionMachine, socket: DaemonSocket) -> int:
    """How many frames were received; if ``FRAMES_PER_TURN``, there may be more, and no descriptor tells it."""
    received = 0
    _send(machine, socket)
    while received < FRAMES_PER_TURN:
        messages = socket.receive()
        if messages is not None:
            received += 1
            machine.received(messages, clock.now(), socket.last_size)
        else:
            machine.tick(clock.now())
            if not machine.outbox and not machine.has_spoken:
                return received
        if machine.outbox or machine.has_spoken or socket.unsent:
            _send(machine, socket)
    machine.tick(clock.now())
    _send(machine, socket)
    return FRAMES_PER_TURN


def _send(machine: SessionMachine, socket: DaemonSocket) -> None:
    if machine.has_spoken:
        machine.say_what_gathers()
    if machine.outbox or socket.unsent:
        socket.send(machine.outbox)
        machine.outbox.clear()
