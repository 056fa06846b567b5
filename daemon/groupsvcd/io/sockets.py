"""ZeroMQ sockets with every option said aloud, and the few things done with each of them.

The defaults of libzmq suit nobody in particular: queues of 1000 messages, no limit on a message's size, a close
that waits for ever. A socket of the daemon is made here or not at all, so that each number below is the one
place where it is decided.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterator

import zmq

from groupsvc.addresses import IPC
from groupsvc.drivers.dead_links import end_dead_links
from groupsvc.errors import Failed
from groupsvc.wire.limits import FRAME_BYTES_MAX

from ..core.peer_messages import TOPIC_BYTES

HANDSHAKE_MS = 3_000
"""Who connects and says nothing sensible within this is cut off."""
RECONNECT_MS = 50
RECONNECT_MAX_MS = 200
"""A peer that starts is connected at most this much later."""
CONNECT_TIMEOUT_MS = 1_000
BACKLOG = 512
CLIENT_RECEIVE_QUEUE_FRAMES = 64
PEER_RECEIVE_QUEUE_FRAMES = 16
"""Of each connection, unread. libzmq counts frames and not bytes, and a frame may have 8 MiB. What waits beyond these
stays in the buffers of the kernel, which count bytes, and with whoever sends it; longer queues save half a microsecond
a frame. When a connection ends whose queue is full, libzmq forgets what is in the kernel. Nodes repeat what matters. Of
a program that was killed it was the last that it said, so for those there is more room."""
SUBSCRIBER_SEND_QUEUE_FRAMES = 0
"""No limit: what goes out over a SUB is what this node itself subscribes to. With every new connection libzmq tells all
of that anew, at once, and forgets what finds no room: nothing of these groups would ever come from there. While there
is no connection there is no queue either (``IMMEDIATE``): it would have every topic that came and went meanwhile."""
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


def new_socket(context: Context, kind: int, *, send_queue: int, receive_queue: int) -> Socket:
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
        (zmq.IPV6, 1),
    ):
        made.setsockopt(option, value)
    end_dead_links(made)
    return made


def new_subscriber(context: Context) -> Socket:
    """A SUB for the multicasts of other nodes."""
    made = new_socket(
        context, zmq.SUB, send_queue=SUBSCRIBER_SEND_QUEUE_FRAMES, receive_queue=PEER_RECEIVE_QUEUE_FRAMES
    )
    made.setsockopt(zmq.IMMEDIATE, 1)
    return made


def new_dealer(context: Context, *, send_queue: int) -> Socket:
    """A DEALER for what goes to one other node; nothing comes back over it."""
    made = new_socket(context, zmq.DEALER, send_queue=send_queue, receive_queue=1)
    made.setsockopt(zmq.IMMEDIATE, 1)
    return made


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
    address = f"inproc://monitor-{fd_of(observed)}"
    observed.monitor(address, events)
    told: Socket = observed.context.socket(zmq.PAIR)
    told.setsockopt(zmq.LINGER, 0)
    told.setsockopt(zmq.RCVHWM, 0)  # if it were full, libzmq's own thread would wait for us, and disabling it for ever
    told.connect(address)
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


@contextlib.contextmanager
def borrowed(fd: int) -> Iterator[socket.socket]:
    """The socket behind a descriptor of libzmq, to be asked; ``OSError`` if there is none, or none any more.

    libzmq may have closed it, and the number may be that of something else by now: then nothing is left open. It is a
    copy, which stays the same whatever libzmq does meanwhile; where no descriptor is free for that, the thing itself.
    """
    try:
        copy = os.dup(fd)
    except OSError as problem:
        if problem.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        found = socket.socket(fileno=fd)
        try:
            yield found
        finally:
            found.detach()
        return
    try:
        mine = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
    with mine:
        yield mine
