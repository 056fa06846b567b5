"""The connections at one port for nodes: who is at the other end, how many they are, and how one is ended.

Node B comes in at A's port with one connection, and speaks. Two others are possible. C connects a thousand times and
never says a word, with a key or without one, and each connection holds a descriptor of A. Or D, whose key is listed,
connects a thousand times and does not read: for each of them A keeps a queue of multicasts. So a port has two limits:

    connections over which nothing was said yet     ``SILENT_MAX``, all together
    connections of one key that have spoken         ``PER_KEY_MAX``

Past either the oldest is ended. Of an honest node that is one which broke without telling; should it be another, B
connects anew in a moment and repeats what was lost. But E, who has no key, needs none to knock: for as long as a
handshake may take it holds a descriptor, and the oldest silent connections are those of honest nodes to a voter that
is not the name server. So while many are arriving (``ARRIVING_MAX``) it is the oldest of these that is ended: who is
older has had its handshake. (That a handshake is over the monitor tells, but not of which connection.)

A key that is not listed any more has no business here: ``cut`` ends what it has. What it came in with a moment ago and
has said nothing over is ended with its first word; who comes later cannot have that key. So a late word of a connection
that was ended, whose descriptor somebody else has by now, harms nobody.

libzmq cannot end one connection of a socket, and tells neither how many there are nor whose. But its monitor names the
descriptor of each connection that comes, every frame bears the descriptor it came through and what its connection was
let in as, and a copy of a descriptor can be shut down (``strangers.py``). Descriptors are used again. So each
connection is known by the number that the kernel has given it as well, and nothing is ended that has another one.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from itertools import takewhile

import attrs
import zmq

from ..core.domain.limits import NODES_MAX
from . import clocks, sockets
from .complaints import Complaints
from .keys import let_in_as
from .sockets import HANDSHAKE_MS, Socket
from .strangers import cookie_of, cut_off
from .watch import Watch

ARRIVING_MAX = 1_024
"""Connections whose handshake may not be over. A domain that starts has more; they are let be while there is room."""
ARRIVING_S = HANDSHAKE_MS / 1_000 + 1.0
"""So long after it was seen a connection has had its handshake, or libzmq has ended it."""
SILENT_MAX = NODES_MAX + ARRIVING_MAX
"""Nodes connect to all voters and speak to the name server: at the others most are silent for ever."""
DESCRIPTORS_SHARE = 4
"""Of the descriptors that this process may have, silent connections at one port get one part of so many."""

PER_KEY_MAX = 4
"""A node needs one. After a break that only one end has noticed it has two for some seconds, with two breaks three."""

EVENTS = int(zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)

NO_DESCRIPTOR = -1
"""libzmq itself says what a connection would have had to say at its end."""


def _source_of(part: zmq.Frame) -> int:
    try:
        fd: int = part.get(zmq.SRCFD)
    except zmq.ZMQError:
        return NO_DESCRIPTOR
    return fd


@attrs.define
class Connection:
    """One over which something was said."""

    key: str = ""
    cookie: bytes = b""
    topics: set[bytes] = attrs.field(factory=set)
    said_at_once: int = 0  # about them, since all that had come was read


class Gate:
    """The connections of one listening socket; made before that binds. ``is_listed`` is None without keys."""

    def __init__(
        self, listening: Socket, *, port: str, watch: Watch, complaints: Complaints,
        is_listed: Callable[[str], bool] | None, clock: Callable[[], float] = clocks.now,
    ) -> None:  # fmt: skip
        self._clock = clock
        self._listening, self._port = listening, port
        self._watch, self._complaints = watch, complaints
        self._is_listed = is_listed
        self.silent_max = min(SILENT_MAX, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // DESCRIPTORS_SHARE)
        self.arriving_max = self.silent_max * ARRIVING_MAX // SILENT_MAX
        self._silent: dict[int, bytes] = {}  # by descriptor, the oldest first: the kernel's number
        self._arriving: dict[int, float] = {}  # the newest of them: when each was seen
        self._known: dict[int, Connection] = {}  # those that have spoken
        self._of: dict[str, dict[int, None]] = {}  # by key, the oldest first
        self._doubtful: set[bytes] = set()  # which were silent when a key was taken off the list: whose are they?
        self._monitor = sockets.monitor(listening, EVENTS)
        watch.add(sockets.fd_of(self._monitor), self.look)

    def heard(self, part: zmq.Frame) -> Connection:
        """Something was said; over which connection, with the key "" where no keys are asked for."""
        fd = _source_of(part)
        if fd == NO_DESCRIPTOR:
            return Connection()
        key = "" if self._is_listed is None else let_in_as(part)
        known = self._known.get(fd)
        if known is None or known.key != key:
            known = self._introduced(fd, key)
        return known

    def cut(self, key: str) -> None:
        """End all connections that were let in with ``key``."""
        self.look()
        self._doubtful.update(self._silent.values())
        for fd in list(self._of.get(key, ())):
            self._end(fd)

    def cut_source(self, part: zmq.Frame) -> None:
        """End the connection this came over."""
        self._end(_source_of(part))

    def forgive(self) -> None:
        """All that had come was read."""
        for known in self._known.values():
            known.said_at_once = 0

    def _introduced(self, fd: int, key: str) -> Connection:
        """``fd`` may be something else by now: only who came in at this port, and is still there, is believed.

        That somebody comes is told before anything that it says can be read.
        """
        self.look()
        before = self._known.get(fd)
        cookie = self._silent.get(fd, b"") if before is None else before.cookie
        known = Connection(key, cookie)
        if not cookie or cookie_of(fd) not in (cookie, b""):
            return known
        is_barred = self._is_listed is not None and not self._is_listed(key)
        if is_barred and cookie not in self._doubtful:
            return known  # it was said over the connection that had this descriptor before
        self._forget(fd)
        self._known[fd] = known
        mine = self._of.setdefault(key, {})
        mine[fd] = None
        if self._is_listed is None:
            return known  # anybody may say to be anybody
        if is_barred:
            self._end(fd)
        elif len(mine) > PER_KEY_MAX:
            text = f"who has the key {key} has more than {PER_KEY_MAX} connections at {self._port}"
            self._complaints.note("too many connections", f"{text}; the oldest is cut off")
            self._end(next(iter(mine)))
        return known

    def _end(self, fd: int) -> None:
        known = self._known.get(fd)
        if known is not None:
            cut_off(fd, known.cookie)
            self._forget(fd)

    def _forget(self, fd: int) -> None:
        self._doubtful.discard(self._silent.pop(fd, b""))
        self._arriving.pop(fd, None)
        known = self._known.pop(fd, None)
        if known is not None:
            mine = self._of[known.key]
            del mine[fd]
            if not mine:
                del self._of[known.key]

    def look(self) -> None:
        """See which connections have come and gone; the daemon's watch calls it, and who cannot wait for that."""
        now = self._clock()
        for event, fd in sockets.monitor_events(self._monitor):
            self._forget(fd)
            if event == zmq.EVENT_ACCEPTED and (cookie := cookie_of(fd)):
                self._silent[fd] = cookie
                self._arriving[fd] = now
        for fd in list(takewhile(lambda fd: self._arriving[fd] <= now - ARRIVING_S, self._arriving)):
            del self._arriving[fd]
        while len(self._silent) > self.silent_max:
            fd = next(iter(self._arriving if len(self._arriving) > self.arriving_max else self._silent))
            cookie = self._silent[fd]
            self._forget(fd)
            if cut_off(fd, cookie):
                text = f"over more than {self.silent_max} connections at {self._port} nothing was said"
                self._complaints.note("silent node", f"{text}; the oldest is cut off")

    def close(self) -> None:
        """Let the connections be; before the listening socket is closed."""
        if not self._monitor.closed:
            self._watch.remove(sockets.fd_of(self._monitor))
            self._listening.disable_monitor()
            self._monitor.close(linger=0)
