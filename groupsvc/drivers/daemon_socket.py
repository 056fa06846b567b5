"""The socket to a daemon: knock, connect, greet, frames out and in, and the news that it is over.

Both the plain connection (``connection.py``) and sessions stand on this. Four rules:

- ZeroMQ connects in the background and would wait for ever for a daemon that is not there. So a plain
  socket knocks first; only if somebody opens is the real connection made.
- Reconnecting behind our back would lose a request silently. It is switched off: a connection that broke
  is over, and whoever owns it makes a new one and says what must be said again.
- On the way to another machine keys are shown (``curve.py``). Who has the wrong ones is told so, as far as one can
  tell: a daemon says that it does not know a key, but one that is not whom we expect just hangs up.
- Nothing here waits. ``send`` and ``receive`` take what goes; who wants to wait polls ``fds``.

The descriptors are ZeroMQ's: readable means "something may have changed", once. So whoever wakes up must read until
nothing is left, and who *sends* may swallow the news that something came: it receives afterwards, until nothing comes.
Polling the descriptor itself needs no lock; everything else does, if the socket is shared between threads.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import zmq

from ..addresses import TCP, socket_path, tcp_host_and_port
from ..errors import DaemonUnreachable, PeerProtocolError, UsageError
from ..keys import Keys
from ..program import program_name
from ..wire import frames
from ..wire.client_messages import (
    CLIENT_PROTOCOL_VERSION,
    REPLY_CODEC,
    REQUEST_CODEC,
    AnyClientReply,
    AnyClientRequest,
    Hello,
)
from ..wire.kinds import FrameKind
from ..wire.limits import FRAME_BYTES_MAX, FRAME_BYTES_USUAL
from . import curve
from .dead_links import end_dead_links

HOW_TO_START = (
    "start one with `groupsvcd --config FILE`, or try a whole domain on this machine with `groupsvc dev`"
    " and set GROUPSVC_ADDRESS to an address it prints"
)

QUEUE_FRAMES = 1000
"""Frames in ZeroMQ's own queue, each way; more wait on our side, where they can be counted."""

_NO_DOMAIN = bytes(frames.DOMAIN_ID_BYTES)
_SENDER = b"client"
_ENDED = int(zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED) | curve.HANDSHAKE_FAILED

# Plain ints: combining pyzmq's own flags costs more than the call they are for.
_NOBLOCK = int(zmq.NOBLOCK)
_RCVMORE = int(zmq.RCVMORE)
_EVENTS = int(zmq.EVENTS)
_FD = int(zmq.FD)
_POLLIN = int(zmq.POLLIN)


class NotItsKey(DaemonUnreachable):
    """Whoever listens at the address seems to have another key than the one that was expected."""


class AsksForKeys(DaemonUnreachable):
    """Whoever listens at the address seems to want keys, and none were shown."""


class NotListed(DaemonUnreachable):
    """The daemon does not know the key that was shown."""


class DaemonSocket:
    """A connection to the daemon at ``address``, made by somebody who knocked and was ``opened`` there.

    With ``keys`` the daemon must have the secret of the public key ``server``.
    """

    def __init__(self, address: str, opened: str, keys: Keys | None = None, server: str | None = None) -> None:
        self.address = address
        self._keys = keys
        self._pid = os.getpid()
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._socket: zmq.Socket[bytes] = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, -1)
        self._socket.setsockopt(zmq.MAXMSGSIZE, FRAME_BYTES_MAX)
        self._socket.setsockopt(zmq.SNDHWM, QUEUE_FRAMES)
        self._socket.setsockopt(zmq.RCVHWM, QUEUE_FRAMES)
        if address.startswith(TCP):
            self._socket.setsockopt(zmq.IPV6, 1)
            end_dead_links(self._socket)
        if keys is not None and server is not None:
            curve.show(self._socket, keys)
            curve.expect(self._socket, server)
        self._monitor: zmq.Socket[bytes] = self._socket.get_monitor_socket(_ENDED)
        self._option: Callable[[int], Any] = self._socket.getsockopt
        self.unsent: deque[bytes] = deque()  # frames that wait on our side
        self.last_size = 0  # bytes of the frame that was received last
        self.fds = (_number(self._socket, _FD), _number(self._monitor, _FD))
        try:
            self._socket.connect(opened)
        except BaseException:
            self.close()
            raise

    # --- Out ---

    def send(self, requests: Sequence[AnyClientRequest]) -> None:
        """Send these, as few frames as fit; what ZeroMQ does not take now goes first the next time."""
        if len(requests) == 1:
            self._pack(REQUEST_CODEC.encode(requests))
        else:
            self._pack_all(requests)
        self.flush()

    def _pack_all(self, requests: Sequence[AnyClientRequest]) -> None:
        body: list[bytes] = []
        size = 0
        for request in requests:
            encoded = REQUEST_CODEC.encode_one(request)
            if body and size + len(encoded) > FRAME_BYTES_USUAL:
                self._pack(REQUEST_CODEC.joined(body))
                body, size = [], 0
            body.append(encoded)
            size += len(encoded)
        if body:
            self._pack(REQUEST_CODEC.joined(body))

    def _pack(self, body: bytes) -> None:
        if len(body) > FRAME_BYTES_MAX - 128:
            raise UsageError(f"a request of {len(body)} bytes is larger than the {FRAME_BYTES_MAX} a frame may have")
        self.unsent.append(frames.pack(FrameKind.CLIENT_REQUEST, _NO_DOMAIN, _SENDER, self._pid, body))

    def flush(self) -> bool:
        """Send what could not be sent before; whether all is out."""
        unsent = self.unsent
        try:
            while unsent:
                self._socket.send(unsent[0], _NOBLOCK)
                unsent.popleft()
        except zmq.Again:
            return False
        return True

    # --- In ---

    def receive(self) -> tuple[AnyClientReply, ...] | None:
        """The messages of the next frame; None if none has come."""
        if not self._option(_EVENTS) & _POLLIN:  # half as dear as to find it out by ``Again``
            return None
        raw = self._socket.recv(_NOBLOCK)
        if self._option(_RCVMORE):
            while self._option(_RCVMORE):
                self._socket.recv(_NOBLOCK)
            raise PeerProtocolError(f"{self.address} answered in several parts: it is no groupsvcd of this version")
        self.last_size = len(raw)
        frame = frames.unpack(raw)
        if frame.kind is not FrameKind.CLIENT_REPLY:
            raise PeerProtocolError(f"{self.address} answered with a frame of kind {frame.kind.name}")
        return REPLY_CODEC.decode(frame.body)

    @property
    def is_over(self) -> bool:
        """Whether the other end has gone; frames it sent before may still be there."""
        return bool(_number(self._monitor, _EVENTS) & _POLLIN)

    def raise_if_not_let_in(self) -> None:
        """It is over before it began: say so, if that was because of keys."""
        events = 0
        while _number(self._monitor, _EVENTS) & _POLLIN:
            events |= int.from_bytes(self._monitor.recv(_NOBLOCK)[:2], sys.byteorder)
            while self._monitor.getsockopt(_RCVMORE):
                self._monitor.recv(_NOBLOCK)
        if not self.address.startswith(TCP) or not events & curve.HANDSHAKE_FAILED:
            return
        if self._keys is None:
            text = f"the daemon at {self.address} hung up at once: it asks for keys, or is no groupsvcd"
            raise AsksForKeys(text, advice="give keys=, the path of a key file")
        if events & zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            text = f"the daemon at {self.address} does not know the key {self._keys.public}"
            where = "it must stand in [client_keys] of its configuration, and this must be its listen_clients"
            raise NotListed(f"{text}: {where}; at other ports it hears nodes only")
        text = f"who listens at {self.address} hung up at once: the server key may be wrong ({_listed(self._keys)}),"
        raise NotItsKey(f"{text} or it is no groupsvcd with keys")

    def close(self) -> None:
        """End it; may be called again. In a forked child the socket is the parent's, and stays."""
        if os.getpid() == self._pid and not self._socket.closed:
            # In this order: libzmq's own thread waits for ever on a monitor whose reader went away first.
            self._socket.disable_monitor()
            self._socket.close(linger=0)
            self._monitor.close(linger=0)


def _number(of: zmq.Socket[bytes], option: int) -> int:
    found = of.getsockopt(option)
    assert isinstance(found, int)
    return found


def hello(id: int, client: str | None) -> Hello:
    """The first request of a connection."""
    return Hello(id, CLIENT_PROTOCOL_VERSION, CLIENT_PROTOCOL_VERSION, client or program_name())


def _listed(keys: Keys) -> str:
    return keys.servers[0] if len(keys.servers) == 1 else f"{len(keys.servers)} were tried"


def knock(address: str, timeout: float) -> str:
    """Open and close a plain connection; where it was opened, or ``DaemonUnreachable`` if nobody opens."""
    if address.startswith(TCP):
        return _knock_elsewhere(address, timeout)
    path = socket_path(address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knocker:
        knocker.settimeout(timeout)
        try:
            knocker.connect(path)
        except PermissionError:
            text = f"this user may not open {address}; ask as the user of the daemon, or change the socket's group"
            raise DaemonUnreachable(text) from None
        except OSError as error:
            raise DaemonUnreachable(f"no daemon at {address}: {_reason(error, path)}; {HOW_TO_START}") from None
    return address


def _knock_elsewhere(address: str, timeout: float) -> str:
    """A name may have several addresses; the one that opened is the one to connect to."""
    try:
        with socket.create_connection(tcp_host_and_port(address), timeout) as knocker:
            host, port = knocker.getpeername()[:2]
            return f"{TCP}[{host}]:{port}" if ":" in host else f"{TCP}{host}:{port}"
    except TimeoutError:
        reason = f"nobody answered within {timeout:g} s"
    except ConnectionRefusedError:
        reason = "nobody listens there"
    except OSError as error:
        reason = error.strerror or str(error)
    text = f"no daemon at {address}: {reason}"
    raise DaemonUnreachable(f"{text}; it must run there, with this address as listen_clients in its configuration")


def does_not_answer(address: str, timeout: float) -> DaemonUnreachable:
    """Somebody opened the door and says nothing."""
    return DaemonUnreachable(
        f"the process behind {address} accepts connections but did not answer within"
        f" {timeout:g} s: it is stopped, overloaded, or no groupsvcd"
    )


def _reason(error: OSError, path: str) -> str:
    if isinstance(error, TimeoutError) or error.errno == errno.EAGAIN:
        return "its queue of connections is full, it is stopped or overloaded"
    if isinstance(error, FileNotFoundError):
        return "there is no such socket"
    if isinstance(error, ConnectionRefusedError):
        return why_refused(path)
    return error.strerror or str(error)


def why_refused(path: str) -> str:
    """What a refused connection to this path means."""
    try:
        if not path.startswith("\0") and not stat.S_ISSOCK(os.stat(path).st_mode):
            return "that file is no socket"
    except OSError:  # a daemon that starts again takes the old socket away first
        return "its daemon has ended, and its socket is gone"
    return "the socket is there but nobody listens, its daemon has ended"
