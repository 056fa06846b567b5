"""Is anybody there? Knocking at the address of a peer whose connection broke.

A process that died and one that is merely silent look alike for seconds, unless one asks the kernel of its
machine: a connection to a port where nobody listens is refused at once, while a paused process still accepts.
So when the connection from A to B breaks (or cannot be made), A knocks with a plain connect ``FIRST_S`` later. A
refusal is an event for the engine; as long as it is refused, A knocks again, often at first, then rarely. An
accepted or unanswered knock says nothing and ends it until the next connection breaks.

The knock carries no byte. The peer's ZeroMQ sees a connection that closes before its greeting.
"""

from __future__ import annotations

import errno
import math
import socket
from collections.abc import Callable

import attrs

from groupsvc.addresses import IPC, tcp_host_and_port

from .watch import Watch

FIRST_S = 0.03
"""After the connection broke: long enough for a kernel to close all sockets of a dead process."""
AGAIN_S = 0.1
OFTEN_S = 2.0
"""How long refusals are asked for every ``AGAIN_S``; after that every ``RARELY_S``."""
RARELY_S = 1.0
ANSWER_S = 1.0
"""A knock that has no answer by then tells nothing (packets are lost, or the machine is gone)."""

_NOBODY = frozenset({errno.ECONNREFUSED, errno.ENOENT})


@attrs.define
class _Suspicion:
    address: str
    next_knock: float
    refused_since: float = math.inf
    knocking: socket.socket | None = None
    give_up: float = math.inf


class Probes:
    """Knocks at the addresses of broken peers; ``refused(node)`` is called for every refusal."""

    def __init__(self, watch: Watch, clock: Callable[[], float], refused: Callable[[str], None]) -> None:
        self._watch = watch
        self._clock = clock
        self._refused = refused
        self._suspicions: dict[str, _Suspicion] = {}

    @property
    def deadline(self) -> float:
        """When ``run`` has something to do."""
        if not self._suspicions:  # almost always, and asked in every round
            return math.inf
        return min(min(suspicion.next_knock, suspicion.give_up) for suspicion in self._suspicions.values())

    def connection_broke(self, node: str, address: str) -> None:
        """The connection to ``node`` at ``address`` ended or could not be made."""
        suspicion = self._suspicions.get(node)
        if suspicion is None or suspicion.address != address:
            self.forget(node)
            self._suspicions[node] = _Suspicion(address, self._clock() + FIRST_S)

    def forget(self, node: str) -> None:
        """Stop knocking at ``node``: it is connected, or of no interest any more."""
        suspicion = self._suspicions.pop(node, None)
        if suspicion is not None:
            self._end_knock(suspicion)

    def run(self) -> None:
        """Knock where it is time to."""
        if not self._suspicions:
            return
        now = self._clock()
        for node, suspicion in list(self._suspicions.items()):
            if suspicion.give_up <= now:
                self.forget(node)
            elif suspicion.next_knock <= now:
                self._knock(node, suspicion)

    def close(self) -> None:
        """Forget everybody."""
        for node in list(self._suspicions):
            self.forget(node)

    def _knock(self, node: str, suspicion: _Suspicion) -> None:
        try:
            family, target = _socket_address(suspicion.address)
            knocking = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError:  # no descriptor left, or a name that means nothing now
            self.forget(node)
            return
        error = knocking.connect_ex(target)
        if error == errno.EINPROGRESS:
            suspicion.knocking = knocking
            suspicion.next_knock = math.inf
            suspicion.give_up = self._clock() + ANSWER_S
            self._watch.add(knocking.fileno(), lambda: self._answered(node, suspicion), writable=True)
            return
        knocking.close()
        self._judge(node, suspicion, error)

    def _answered(self, node: str, suspicion: _Suspicion) -> None:
        if suspicion.knocking is None:
            return
        error = suspicion.knocking.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self._end_knock(suspicion)
        self._judge(node, suspicion, error)

    def _judge(self, node: str, suspicion: _Suspicion, error: int) -> None:
        if error not in _NOBODY:
            self.forget(node)
            return
        now = self._clock()
        suspicion.refused_since = min(suspicion.refused_since, now)
        suspicion.next_knock = now + (AGAIN_S if now - suspicion.refused_since < OFTEN_S else RARELY_S)
        self._refused(node)

    def _end_knock(self, suspicion: _Suspicion) -> None:
        suspicion.give_up = math.inf
        if suspicion.knocking is not None:
            self._watch.remove(suspicion.knocking.fileno())
            suspicion.knocking.close()
            suspicion.knocking = None


def _socket_address(address: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    if address.startswith(IPC):
        path = address.removeprefix(IPC)
        return socket.AF_UNIX, "\0" + path[1:] if path.startswith("@") else path
    host, port = tcp_host_and_port(address)
    return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host, port)
