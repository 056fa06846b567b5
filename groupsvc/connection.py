"""One blocking connection to a daemon: ask, wait for the one answer, never longer than said.

A program at node A asks the daemon of A. Whatever goes wrong (no daemon, a paused one, one that dies half-way,
one that speaks nonsense), the call ends within its time, in exactly one of three ways: the answer, a
``Failed`` (it certainly did not happen), or ``OutcomeUnknown``. Four rules make that true:

- ZeroMQ connects in the background and would wait for ever for a daemon that is not there. So a plain
  socket knocks first; only if somebody opens is the real connection made.
- Reconnecting behind our back would lose a request silently. It is switched off: a connection that broke
  is over, the call in hand ends at once, and the caller makes a new connection.
- Every request has a number. An answer with another number belongs to a call that was given up earlier
  and is thrown away.
- The daemon is told the caller's time and answers within it. This side waits ``REPLY_SLACK_S`` longer, so
  that the daemon's own explanation wins over "no answer".

A connection belongs to one thread at a time and to the process that made it. Sessions, which are shared
between threads and survive a broken connection, stand on top of this.
"""

from __future__ import annotations

import errno
import math
import os
import socket
import stat
import sys
import time
from types import TracebackType
from typing import Self, TypeVar

import zmq

from .addresses import default_address, problem_with_address, socket_path
from .errors import (
    DaemonUnreachable,
    Failed,
    GroupServiceError,
    NoSuchGroup,
    OutcomeUnknown,
    PeerProtocolError,
    StaleVersion,
    TimedOut,
    UsageError,
)
from .wire import frames
from .wire.client_messages import (
    CLIENT_PROTOCOL_VERSION,
    REPLY_CODEC,
    REQUEST_CODEC,
    AnyClientReply,
    AnyClientRequest,
    AnyTelling,
    ConfigAsk,
    ConfigSet,
    ConfigValue,
    Done,
    GroupRecord,
    HandOverAsk,
    Hello,
    LookUpAsk,
    Problem,
    Status,
    StatusAsk,
    Welcome,
)
from .wire.kinds import FrameKind
from .wire.limits import FRAME_BYTES_MAX, TIMEOUT_S_MAX

TIMEOUT_S = 10.0
"""How long a call waits if the caller says nothing: several elections fit into it."""

REPLY_SLACK_S = 0.5
"""How much longer than the daemon's own limit we wait for it to say that the limit has passed."""

HOW_TO_START = (
    "start one with `groupsvcd --config FILE`, or try a whole domain on this machine with `groupsvc dev`"
    " and set GROUPSVC_ADDRESS to an address it prints"
)

_NO_DOMAIN = bytes(frames.DOMAIN_ID_BYTES)
_SENDER = b"client"
_CONNECTION_ENDED = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
_FAILED_BY_CODE: dict[str, type[Failed]] = {
    "no such group": NoSuchGroup,
    "stale": StaleVersion,
    "timed out": TimedOut,
}

R = TypeVar("R", bound=AnyClientReply)


class DaemonConnection:
    """A connection to the daemon at ``address`` (default: the one of this node)."""

    def __init__(self, address: str | None = None, timeout: float = TIMEOUT_S, *, client: str | None = None) -> None:
        self.address = default_address() if address is None else address
        self._timeout = _checked(timeout)
        problem = problem_with_address(self.address)
        if problem is not None:
            raise UsageError(problem)
        self._pid = os.getpid()
        self._last_id = 0
        self._ended = ""
        until = time.monotonic() + self._timeout
        _knock(self.address, self._timeout)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self._socket: zmq.Socket[bytes] = context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RECONNECT_IVL, -1)
        self._socket.setsockopt(zmq.MAXMSGSIZE, FRAME_BYTES_MAX)
        self._monitor: zmq.Socket[bytes] = self._socket.get_monitor_socket(_CONNECTION_ENDED)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)
        try:
            self._socket.connect(self.address)
            self.welcome = self._greet(client or _program(), until)
        except BaseException:
            self.close()
            raise

    # --- What can be asked ------------------------------------------------------------------------------

    def status(self, *, timeout: float | None = None) -> Status:
        """What this daemon knows of its domain; answered from its memory, also while it is suspended."""
        return self._call(StatusAsk(self._next_id()), Status, "ask for the status", timeout, harmless=True)

    def look_up(self, name: str, *, form: bool = False, timeout: float | None = None) -> GroupRecord:
        """Who leads group ``name``. With ``form`` this node becomes its leader if there is no such group."""
        wait = self._wait(timeout)
        ask = LookUpAsk(self._next_id(), name, form, wait)
        return self._call(ask, GroupRecord, f"look up group {name!r}", wait, harmless=not form)

    def config_get(self, key: str, *, timeout: float | None = None) -> ConfigValue:
        """The domain-wide value of ``key`` as of now; version 0 if it was never set."""
        wait = self._wait(timeout)
        ask = ConfigAsk(self._next_id(), key, wait)
        return self._call(ask, ConfigValue, f"read setting {key!r}", wait, harmless=True)

    def config_set(self, key: str, value: str, *, if_version: int, timeout: float | None = None) -> ConfigValue:
        """Set ``key`` if its version is ``if_version`` (0: not set yet), else ``StaleVersion``."""
        wait = self._wait(timeout)
        ask = ConfigSet(self._next_id(), key, value, if_version, wait)
        return self._call(ask, ConfigValue, f"set {key!r} over version {if_version}", wait, harmless=False)

    def hand_over(self, to: str, *, timeout: float | None = None) -> None:
        """Make the voter ``to`` name server; returns when it has happened."""
        wait = self._wait(timeout)
        self._call(HandOverAsk(self._next_id(), to, wait), Done, f"make {to!r} name server", wait, harmless=False)

    # --- Its life ---------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the connection; may be called again."""
        self._ended = self._ended or "it was closed"
        if os.getpid() == self._pid and not self._socket.closed:  # in a forked child the sockets are the parent's
            # In this order: libzmq's own thread waits for ever on a monitor whose reader went away first.
            self._socket.disable_monitor()
            self._socket.close(linger=0)
            self._monitor.close(linger=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- One request, one reply -------------------------------------------------------------------------

    def _greet(self, client: str, until: float) -> Welcome:
        hello = Hello(self._next_id(), CLIENT_PROTOCOL_VERSION, CLIENT_PROTOCOL_VERSION, client)
        self._send(hello)
        try:
            return self._receive(hello.id, Welcome, "say hello", until, harmless=True)
        except TimedOut:
            raise DaemonUnreachable(
                f"the process behind {self.address} accepts connections but did not answer within"
                f" {self._timeout:g} s: it is stopped, overloaded, or no groupsvcd"
            ) from None

    def _call(
        self, request: AnyClientRequest, expected: type[R], what: str, timeout: float | None, *, harmless: bool
    ) -> R:
        """``harmless``: no answer means that nothing happened, because the request changes nothing."""
        if os.getpid() != self._pid:
            raise UsageError(f"this connection belongs to process {self._pid}; a forked child makes its own")
        if self._ended:
            raise UsageError(f"could not {what}: this connection is over ({self._ended}); make a new one")
        until = time.monotonic() + self._wait(timeout) + REPLY_SLACK_S
        self._send(request)
        return self._receive(request.id, expected, what, until, harmless=harmless)

    def _send(self, request: AnyClientRequest) -> None:
        body = REQUEST_CODEC.encode([request])
        if len(body) > FRAME_BYTES_MAX - 128:
            raise UsageError(f"a request of {len(body)} bytes is larger than the {FRAME_BYTES_MAX} a frame may have")
        frame = frames.pack(FrameKind.CLIENT_REQUEST, _NO_DOMAIN, _SENDER, self._pid, body)
        try:
            self._socket.send(frame, zmq.NOBLOCK)
        except zmq.Again:
            self._ended = "the daemon takes no more requests"
            raise DaemonUnreachable(f"the daemon at {self.address} takes no requests; {HOW_TO_START}") from None

    def _receive(self, number: int, expected: type[R], what: str, until: float, *, harmless: bool) -> R:
        while True:
            left = until - time.monotonic()
            ready = dict(self._poller.poll(max(0, math.ceil(left * 1000)))) if left > 0 else {}
            if self._socket in ready:
                reply = self._answer_to(number)
                if reply is not None:
                    return _judged(reply, expected, what)
            elif self._monitor in ready:
                self._ended = "the daemon closed it or died"
                text = f"the daemon at {self.address} closed the connection or died before it answered"
                raise _no_answer(DaemonUnreachable, what, f"{text}; {HOW_TO_START}", harmless)
            elif not ready and time.monotonic() >= until:
                raise _no_answer(TimedOut, what, f"the daemon at {self.address} did not answer in time", harmless)

    def _answer_to(self, number: int) -> AnyClientReply | None:
        raw = self._socket.recv(zmq.NOBLOCK)
        if self._socket.getsockopt(zmq.RCVMORE):
            while self._socket.getsockopt(zmq.RCVMORE):
                self._socket.recv(zmq.NOBLOCK)
            raise PeerProtocolError(f"{self.address} answered in several parts: it is no groupsvcd of this version")
        frame = frames.unpack(raw)
        if frame.kind is not FrameKind.CLIENT_REPLY:
            raise PeerProtocolError(f"{self.address} answered with a frame of kind {frame.kind.name}")
        for reply in REPLY_CODEC.decode(frame.body):
            if isinstance(reply, AnyTelling):
                continue  # a connection without a session is told nothing
            if reply.id == number or (reply.id == 0 and isinstance(reply, Problem)):  # 0: the frame was refused whole
                return reply
        return None

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _wait(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else _checked(timeout)


def _judged(reply: AnyClientReply, expected: type[R], what: str) -> R:
    """``reply`` if it is what was asked for, else the error it stands for."""
    if isinstance(reply, expected):
        return reply
    if isinstance(reply, Problem):
        raise _error_of(reply, what)
    raise PeerProtocolError(f"could not {what}: the daemon answered with {type(reply).__name__}")


def _error_of(problem: Problem, what: str) -> GroupServiceError:
    text = f"could not {what}: {problem.text}"
    match problem.family:
        case "usage":
            return UsageError(text)
        case "unknown":
            return OutcomeUnknown(f"it is not known whether it was possible to {what}: {problem.text}")
        case "failed":
            return _FAILED_BY_CODE.get(problem.code.replace("-", " ").replace("_", " "), Failed)(text)


def _no_answer(family: type[Failed], what: str, why: str, harmless: bool) -> GroupServiceError:
    if harmless:
        return family(f"could not {what}: {why}")
    return OutcomeUnknown(f"it is not known whether it was possible to {what}: {why}")


def _knock(address: str, timeout: float) -> None:
    """Open and close a plain connection; ``DaemonUnreachable`` if nobody opens."""
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


def _reason(error: OSError, path: str) -> str:
    if isinstance(error, TimeoutError) or error.errno == errno.EAGAIN:
        return "its queue of connections is full, it is stopped or overloaded"
    if isinstance(error, FileNotFoundError):
        return "there is no such socket"
    if isinstance(error, ConnectionRefusedError):
        return _why_refused(path)
    return error.strerror or str(error)


def _why_refused(path: str) -> str:
    try:
        if not path.startswith("\0") and not stat.S_ISSOCK(os.stat(path).st_mode):
            return "that file is no socket"
    except OSError:  # a daemon that starts again takes the old socket away first
        return "its daemon has ended, and its socket is gone"
    return "the socket is there but nobody listens, its daemon has ended"


def _checked(timeout: float) -> float:
    if not 0 < timeout <= TIMEOUT_S_MAX:
        raise UsageError(f"timeout is {timeout!r}; it must be above 0 and at most {TIMEOUT_S_MAX:g} s")
    return timeout


def _program() -> str:
    return f"{os.path.basename(sys.argv[0]) or 'python'}[{os.getpid()}]"
