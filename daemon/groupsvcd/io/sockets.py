"""ZeroMQ sockets with every option said aloud, and the few things done with each of them.

The defaults of libzmq suit nobody in particular: queues of 1000 messages, no limit on a message's size, a close
that waits for ever. A socket of the daemon is made here or not at all, so that each number below is the one
place where it is decided.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterator

import zmq

from groupsvc.addresses import IPC
from groupsvc.errors import Failed
from groupsvc.wire.limits import FRAME_BYTES_MAX, HEARTBEAT_MS, HEARTBEAT_TIMEOUT_MS

from ..core.peer_messages import TOPIC_BYTES

HANDSHAKE_MS = 3_000
"""Who connects and says nothing sensible within this is cut off."""
RECONNECT_MS = 50
RECONNECT_MAX_MS = 200
"""A peer that starts is connected at most this much later."""
CONNECT_TIMEOUT_MS = 1_000
BACKLOG = 512
RECEIVE_QUEUE_FRAMES = 1_000
GOODBYE_LINGER_MS = 200
"""How long a clean stop waits for the last frames to leave."""

Socket = zmq.Socket[bytes]
Context = zmq.Context[zmq.Socket[bytes]]

_monitor_event = struct.Struct("=HI")
"""As libzmq documents it. pyzmq has a parser, in a module that brings all of asyncio and ssl into memory."""

EVENTS = int(zmq.EVENTS)
POLLIN = int(zmq.POLLIN)
RCVMORE = int(zmq.RCVMORE)
SNDMORE = int(zmq.SNDMORE)
NOBLOCK = int(zmq.NOBLOCK)
SNDMORE_NOBLOCK = SNDMORE | NOBLOCK


class CannotBind(Failed):
    """An address cannot be listened at; the text says which and why."""


def new_context() -> Context:
    """The context of a daemon: one I/O thread carries far more than one Python thread can use.

    libzmq numbers the connections of a ROUTER from ``rand()`` on and never seeds it, so in every process they would be
    the same numbers; and who knows one can take it for its own connection.
    """
    ctypes.CDLL(None).srand(int.from_bytes(os.urandom(4), sys.byteorder))
    context: Context = zmq.Context(io_threads=1)
    context.setsockopt(zmq.MAX_SOCKETS, 16_384)
    return context


def new_socket(context: Context, kind: int, *, send_queue: int, receive_queue: int = RECEIVE_QUEUE_FRAMES) -> Socket:
    """A socket of ``kind`` with the options that all have in common."""
    made: Socket = context.socket(kind)
    for option, value in (
        (zmq.LINGER, 0),
        (zmq.SNDHWM, send_queue),
        (zmq.RCVHWM, receive_queue),
        (zmq.MAXMSGSIZE, FRAME_BYTES_MAX + TOPIC_BYTES),
        (zmq.HANDSHAKE_IVL, HANDSHAKE_MS),
        (zmq.BACKLOG, BACKLOG),
        (zmq.RECONNECT_IVL, RECONNECT_MS),
        (zmq.RECONNECT_IVL_MAX, RECONNECT_MAX_MS),
        (zmq.CONNECT_TIMEOUT, CONNECT_TIMEOUT_MS),
        (zmq.TCP_KEEPALIVE, 1),
        (zmq.IPV6, 1),
    ):
        made.setsockopt(option, value)
    return made


def set_heartbeat(connecting: Socket) -> None:
    """Let both ends notice when the connection no longer carries anything."""
    connecting.setsockopt(zmq.HEARTBEAT_IVL, HEARTBEAT_MS)
    connecting.setsockopt(zmq.HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS)
    connecting.setsockopt(zmq.HEARTBEAT_TTL, HEARTBEAT_TIMEOUT_MS)


def bind(listening: Socket, address: str, *, mode: int = 0o600) -> None:
    """Listen at ``address``; for ipc only if nobody else does, with a socket file of ``mode``.

    libzmq removes whatever is at the path before it binds, so a second daemon would silently take over the
    socket of a running one. We look first.
    """
    try:
        if not address.startswith(IPC) or address.startswith(IPC + "@"):
            listening.bind(address)
            return
        path = address.removeprefix(IPC)
        _refuse_occupied(path)
        before = os.umask(0o777 & ~mode)
        try:
            listening.bind(address)
        finally:
            os.umask(before)
    except (zmq.ZMQError, OSError) as error:
        raise CannotBind(f"cannot listen at {address}: {error.strerror}") from None


def remove_socket_file(address: str) -> None:
    """Remove what ``bind`` made, so that whoever looks for us finds that we are not there; libzmq leaves it."""
    if address.startswith(IPC) and not address.startswith(IPC + "@"):
        quietly(lambda: os.unlink(address.removeprefix(IPC)))


def _refuse_occupied(path: str) -> None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise CannotBind(f"cannot listen at {path}: there is something there that is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as knocking:
        try:
            knocking.connect(path)
        except ConnectionRefusedError:
            return  # left behind by a process that was killed
        except BlockingIOError:
            pass  # somebody listens and is slow
    raise CannotBind(f"cannot listen at {path}: another process does already")


def monitor(observed: Socket, events: int) -> Socket:
    """The socket on which ``events`` in the life of the connections of ``observed`` are told.

    Must be made before ``observed`` binds or connects. A pipe of libzmq wakes only a reader that has once
    found it empty, so it is read once; else its descriptor would never become readable.
    """
    told: Socket = observed.get_monitor_socket(events)
    told.setsockopt(zmq.LINGER, 0)
    for _ in monitor_events(told):
        pass
    return told


def monitor_events(told: Socket) -> Iterator[tuple[int, int]]:
    """Every waiting (event, value) of a monitor; ``value`` is mostly a file descriptor."""
    while True:
        try:
            first = told.recv(NOBLOCK)
        except zmq.Again:
            return
        drop_rest(told)  # the endpoint
        yield _monitor_event.unpack(first)


def fd_of(observed: Socket) -> int:
    """The descriptor that is readable when something may have happened on the socket."""
    fd = observed.getsockopt(zmq.FD)
    assert isinstance(fd, int)
    return fd


def has_more(receiving: Socket) -> bool:
    """Whether another message waits. Half as dear as finding out by ``Again``: worth it where mostly one waits."""
    events = receiving.getsockopt(EVENTS)
    assert isinstance(events, int)
    return bool(events & POLLIN)


def drop_rest(receiving: Socket) -> int:
    """Read and forget the remaining parts of a message; how many there were."""
    parts = 0
    while receiving.getsockopt(RCVMORE):
        receiving.recv(NOBLOCK)
        parts += 1
    return parts


def quietly(action: Callable[[], object]) -> None:
    """Do ``action`` while closing down, where an error of a socket changes nothing any more."""
    with contextlib.suppress(zmq.ZMQError, OSError):
        action()


def borrowed(fd: int) -> socket.socket:
    """The socket behind a descriptor of libzmq, to be asked and closed; ``OSError`` if there is none, or none any more.

    libzmq may have closed it, and the number may be that of something else by now: then nothing is left open.
    """
    copy = os.dup(fd)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
