"""Applications: a ROUTER on a Unix socket, for those of this node, and at a tcp address for those of others.

The first frame of a connection is Hello; it settles the version and gives the connection a number that is never
used again. Everything else goes to the engine.

Two things can end, a process and a connection, and they are told apart. That a process has ended the kernel says: at
Hello we ask the connection itself for a pidfd of the process at its other end, never the message, and the pidfd becomes
readable when that process ends. A process that lives but has closed its connection is noticed by the socket's monitor.
The monitor names a descriptor, and descriptors are used again quickly; so it only raises a suspicion, and a frame
without messages asks whether the connection is still there. Either way, all frames the client sent are read first.

A process whose connection has broken may come back to its session on another one. So its pidfd is watched as long as
its session has grace, and if it ends meanwhile that is told, too.

Of a process on another machine nobody tells that it has ended. Its connection breaks with it; if the machine or the
network is gone, ``DEAD_LINK_MS`` later. So its session lasts until its grace is over.

At the tcp address a key is asked for (``keys.py``), if the daemon has one; at the Unix socket the file's mode decides.
Who is at the other end is found out once, at Hello (``principals.py``), and told to the engine. The routing id by which
a connection is known here would be the client's to choose, and it could choose that of another whose connection has
just broken. So who chooses one is refused, and every frame must come from the principal that said Hello.

A client that does not read its replies is given up as if its connection had broken, and gets not one frame more over
it: a frame left out between two others would spoil its count of what it was told.
"""

from __future__ import annotations

import enum
import math
import os
import socket
from collections.abc import Callable

import attrs
import zmq

from groupsvc.drivers import curve
from groupsvc.errors import PeerProtocolError
from groupsvc.keys import Keys
from groupsvc.wire import frames
from groupsvc.wire.client_messages import (
    CLIENT_PROTOCOL_VERSION,
    REPLY_CODEC,
    REQUEST_CODEC,
    AnyClientReply,
    AnyClientRequest,
    Hello,
    Problem,
    Welcome,
)
from groupsvc.wire.kinds import FrameKind
from groupsvc.wire.limits import GRACE_S

from ..core.access import Principal
from ..core.audit import Audit
from ..core.effects import ReplyToClient
from . import sockets
from .backlog import BYTES_PER_ROUND, REQUESTS_PER_FRAME_MAX, REQUESTS_PER_ROUND, Backlog, requests_in
from .complaints import Complaints
from .keys import CLIENTS, let_in_as
from .outbox import Outbox
from .principals import CREDENTIALS, LOCAL_PEER, principal_of
from .sockets import NOBLOCK, SNDMORE_NOBLOCK, Context, has_more
from .strangers import Strangers, cookie_of, cut_off
from .watch import Watch

SO_PEERPIDFD = 77
"""Since Linux 6.5; the socket module does not know it yet."""
SOCKET_MODE = 0o660
NAME_CHARS = 64
"""Of the name that a client gives itself, in a record."""
CONNECTION_EVENTS = int(zmq.EVENT_DISCONNECTED | zmq.EVENT_ACCEPTED)
SUSPICION_S = 0.02
"""From the monitor's word that a connection ended to the question whether it did."""

NOT_KNOWN = -1
ELSEWHERE = -2
"""In place of a pidfd: the process cannot be watched, because the kernel does not tell, or it is on another machine."""

GIVEN_ID_BYTES = 5
"""A routing id that libzmq has made: a zero, and a number. What a client chooses is longer or shorter, or a guess."""

_EMPTY = REPLY_CODEC.encode([])


class Gone(enum.Enum):
    """What has ended."""

    CONNECTION = "connection"
    PROCESS = "process"


Received = tuple[int, AnyClientRequest | Gone]


@attrs.frozen
class Client:
    """One connection that has said Hello."""

    number: int
    routing_id: bytes
    fd: int
    pidfd: int
    name: str
    peer: str  # as libzmq names the other end
    cookie: bytes  # as the kernel numbers the connection
    principal: Principal

    @property
    def in_words(self) -> str:
        """For people."""
        return f"client {self.name!r}" + (f" with the key of {self.principal.key}" if self.principal.key else "")


@attrs.frozen(kw_only=True)
class ClientStatistics:
    """The connections of applications; what is counted is counted since the daemon started."""

    connections: int
    welcomed: int
    refused: int  # frames, or whole connections
    given_up: int  # that did not read
    frames_received: int
    frames_sent: int


class Clients:
    """The connections of applications.

    ``receive`` gives (client, request) pairs, and (client, Gone) when a client is gone; if that was its connection, a
    second one may follow when its process has ended. ``who_we_are`` is asked for (domain id, node, incarnation, domain
    name) when a frame or a Welcome is made.
    """

    def __init__(
        self,
        context: Context,
        *,
        address: str,
        watch: Watch,
        clock: Callable[[], float],
        complaints: Complaints,
        who_we_are: Callable[[], tuple[bytes, str, int, str]],
        clients_max: int,
        queue_frames: int,
        listen: str = "",
        keys: Keys | None = None,
        clients_per_principal_max: int | None = None,
        came: Callable[[int, Principal], None] = lambda client, principal: None,
        audit: Audit | None = None,
    ) -> None:
        self._asks_for_keys = keys is not None
        self._per_principal_max = clients_per_principal_max or clients_max
        self._per_principal: dict[str, int] = {}
        self._came = came
        self._audit = audit or Audit(clock, lambda op, args: None)
        self._watch = watch
        self._clock = clock
        self._complaints = complaints
        self._who_we_are = who_we_are
        self._clients_max = clients_max
        self._by_id: dict[bytes, Client] = {}
        self._by_number: dict[int, Client] = {}
        self._by_fd: dict[int, Client] = {}
        self._last_number = 0
        self._refused = 0
        self._times_given_up = 0
        self._frames_sent = 0
        self._bound = ""
        self.is_empty = True
        self._suspects: dict[int, float] = {}
        self._dead: list[tuple[Client, Gone, int]] = []  # and how many frames had been read by then
        self._backlog = Backlog()
        self._frames_read = 0
        self._last_frame: dict[int, int] = {}  # of a client: which one that was
        self._gone: list[tuple[int, Gone]] = []
        self._given_up: set[int] = set()  # nothing more is sent to these
        self._cut: set[int] = set()  # and these are not heard any more
        self._bereft: dict[
            int, tuple[Client, float]
        ] = {}  # whose processes are watched without a connection; until when
        self._strangers = Strangers(clock, complaints, clients_max)
        self._outbox: Outbox[int, AnyClientReply] = Outbox(REPLY_CODEC, clock, self._too_large)
        self.router = sockets.new_socket(
            context, zmq.ROUTER, send_queue=queue_frames, receive_queue=sockets.CLIENT_RECEIVE_QUEUE_FRAMES
        )
        self.router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._monitor = sockets.monitor(self.router, CONNECTION_EVENTS)
        watch.add(sockets.fd_of(self._monitor), self._connections_changed)
        try:
            sockets.bind(self.router, address, mode=SOCKET_MODE)
            self._bound = address
            if listen:  # what is set from here on is not for the Unix socket
                if keys is not None:
                    curve.serve(self.router, keys, CLIENTS)
                sockets.bind(self.router, listen)
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return len(self._by_number)

    def admit(self, clients_max: int) -> None:
        """From now on so many may be connected; those who are stay."""
        self._clients_max = clients_max

    def admit_per_principal(self, clients_max: int) -> None:
        """The same for each principal."""
        self._per_principal_max = clients_max

    def queue(self, frames: int) -> None:
        """From now on so many frames may wait for each client."""
        self.router.setsockopt(zmq.SNDHWM, frames)

    def statistics(self) -> ClientStatistics:
        """As of now."""
        return ClientStatistics(
            connections=len(self._by_number),
            welcomed=self._last_number,
            refused=self._refused,
            given_up=self._times_given_up,
            frames_received=self._frames_read,
            frames_sent=self._frames_sent,
        )

    # --- In ---------------------------------------------------------------------------------------------

    def receive(self, frames_max: int) -> list[Received]:
        """Requests that have come, at most ``frames_max`` frames of them; then, if all are read, who is gone."""
        found: list[Received] = list(self._backlog.take()) if self._backlog.queues else []
        read_bytes = 0
        try:
            self.is_empty = False
            for _ in range(frames_max):
                read_bytes += self._receive_one(found)
                if len(found) >= REQUESTS_PER_ROUND or read_bytes >= BYTES_PER_ROUND:
                    return self._with_gone(found)
                if len(found) == 1 and not has_more(self.router):
                    break
            else:
                return self._with_gone(found)
        except zmq.Again:
            pass
        if self._backlog.queues:
            return self._with_gone(found)
        self.is_empty = True
        return self._with_gone(found)

    def _with_gone(self, found: list[Received]) -> list[Received]:
        """With who is gone, and has nothing more to be read.

        If nothing of anybody is left that is so; else of those from whom nothing came while more frames were read than
        there are connections, as ZeroMQ takes one of each in turn.
        """
        if self._suspects:
            self._judge_suspects()
        if self._strangers.deadline <= self._clock():
            self._connections_changed()
            self._strangers.cut_late()
        if self._bereft:
            self._let_go_of_bereft(self._clock())
        if not self._dead and not self._gone:
            return found
        dead, self._dead = self._dead, []
        for client, what, at in dead:
            since = self._frames_read - max(at, self._last_frame.get(client.number, 0))
            all_read = since > 2 * len(self._by_number) and client.number not in self._backlog.queues
            if self.is_empty or all_read:
                self._forget(client, what)
            else:
                self._dead.append((client, what, at))
        found.extend(self._gone)
        self._gone.clear()
        return found

    @property
    def deadline(self) -> float:
        """When a suspicion must be looked into; now, if somebody is known to be gone."""
        if self._dead or self._gone or self._backlog.queues:
            return -math.inf
        at = min(self._suspects.values()) if self._suspects else math.inf
        at = min(at, self._strangers.deadline)
        for _, until in self._bereft.values():
            return min(at, until)  # the oldest
        return at

    def _receive_one(self, found: list[Received]) -> int:
        """Read a frame; how many bytes it had."""
        router = self.router
        routing_id = router.recv(NOBLOCK)
        client = self._by_id.get(routing_id)
        part = router.recv(NOBLOCK, copy=False)
        raw = part.bytes
        self._frames_read += 1
        if part.more:
            self._refuse(routing_id, "frame", f"a message with {sockets.drop_rest(router)} parts too many")
        elif client is not None and not _is_from(client, part):
            self._stolen(client, part)
        elif client is None or client.number not in self._cut:
            self._take(routing_id, client, part, raw, found)
        return len(raw)

    def _take(
        self, routing_id: bytes, client: Client | None, part: zmq.Frame, raw: bytes, found: list[Received]
    ) -> None:
        try:
            frame = frames.unpack(raw)
            if frame.kind is not FrameKind.CLIENT_REQUEST:
                raise PeerProtocolError(f"a frame of kind {frame.kind.name} is no request")
            if requests_in(frame.body) > REQUESTS_PER_FRAME_MAX:
                raise PeerProtocolError(f"a frame with more than {REQUESTS_PER_FRAME_MAX} requests")
            requests = REQUEST_CODEC.decode(frame.body)
        except (PeerProtocolError, RecursionError, ValueError) as problem:
            wrong_version = raw[:4] == frames.MAGIC and raw[4:5] != bytes([frames.CLIENT_VERSION])
            self._refuse(routing_id, "version" if wrong_version else "frame", str(problem))
            return
        if client is not None:
            self._last_frame[client.number] = self._frames_read
        for position, request in enumerate(requests):
            if isinstance(request, Hello):
                if client is not None:
                    self._refuse(routing_id, "hello", "Hello was said already on this connection", request.id)
                    continue
                client = self._welcome(routing_id, request, part)
                if client is None:
                    return
            elif client is None:
                self._refuse(routing_id, "hello", "the first request of a connection must be Hello", request.id)
                return
            elif len(found) >= REQUESTS_PER_ROUND or client.number in self._backlog.queues:
                self._put_off(client, [one for one in requests[position:] if not isinstance(one, Hello)])
                return
            else:
                found.append((client.number, request))

    def _put_off(self, client: Client, requests: list[AnyClientRequest]) -> None:
        if not self._backlog.add(client.number, requests) and client.number not in self._given_up:
            self._complaints.note("flood", f"{client.in_words} sends more than can be done; its connection is cut off")
            self._audit.record("client_refused", client.principal.identity, code="flood")
            self._backlog.forget(client.number)
            self._given_up.add(client.number)
            self._cut.add(client.number)
            self._is_dead(client, Gone.CONNECTION)
            cut_off(client.fd, client.cookie)

    def _welcome(self, routing_id: bytes, hello: Hello, part: zmq.Frame) -> Client | None:
        if hello.version_min > CLIENT_PROTOCOL_VERSION or hello.version < CLIENT_PROTOCOL_VERSION:
            text = (
                f"the client speaks protocol versions {hello.version_min} to {hello.version},"
                f" this daemon speaks {CLIENT_PROTOCOL_VERSION}; update the older of the two"
            )
            self._refuse(routing_id, "version", text, hello.id)
            return None
        if len(routing_id) != GIVEN_ID_BYTES or routing_id[0] != 0:
            self._refuse(routing_id, "hello", "a connection must not choose its routing id; leave it out", hello.id)
            return None
        if len(self._by_number) >= self._clients_max:
            text = f"this daemon has {self._clients_max} clients and takes no more (limits.clients_max)"
            text += "; close some, or raise it in its configuration"
            self._refuse(routing_id, "too many clients", text, hello.id, family_failed=True)
            return None
        fd, peer = _source_of(part)
        principal = principal_of(fd, peer, let_in_as(part), asks_for_keys=self._asks_for_keys)
        if self._per_principal.get(principal.identity, 0) >= self._per_principal_max:
            text = f"{principal.identity} has {self._per_principal_max} connections and gets no more"
            text += " (limits.clients_per_principal_max); close some, or raise it in the configuration of the daemon"
            self._refuse(routing_id, "too many clients", text, hello.id, family_failed=True, who=principal.identity)
            return None
        pidfd = _pidfd_of(fd, peer)
        if pidfd == NOT_KNOWN:  # it ended between Hello and now, or the kernel does not tell; then the monitor must
            self._complaints.note("no pidfd", f"the process of client {hello.client!r} cannot be watched")
        previous = self._by_fd.get(fd)
        if previous is not None:  # its descriptor is in use again, so its connection is over
            self._is_dead(previous, Gone.CONNECTION)
        self._last_number += 1
        client = Client(self._last_number, routing_id, fd, pidfd, hello.client, peer, cookie_of(fd), principal)
        self._by_id[routing_id] = self._by_number[client.number] = client
        if fd >= 0:
            self._by_fd[fd] = client
            self._strangers.forget(fd)
        if pidfd >= 0:
            self._watch.add(pidfd, lambda: self._process_ended(client))
        else:
            self._suspects[client.number] = self._clock() + SUSPICION_S
        self._per_principal[principal.identity] = self._per_principal.get(principal.identity, 0) + 1
        self._came(client.number, principal)
        self._audit.record("client_admitted", principal.identity, client=client.number, name=hello.client[:NAME_CHARS])
        _, node, incarnation, domain = self._who_we_are()
        self._send(routing_id, [Welcome(hello.id, CLIENT_PROTOCOL_VERSION, node, incarnation, domain)])
        return client

    def _stolen(self, client: Client, part: zmq.Frame) -> None:
        """Somebody else has the routing id of ``client`` now, whose connection is over: it is not heard under it."""
        peer = _source_of(part)[1]
        text = f"a frame from {peer or 'nowhere'} has the routing id of {client.in_words}, which is another's"
        self._complaints.note("false name", f"{text}; it was dropped")
        self._audit.record("client_refused", client.principal.identity, code="false name", peer=peer)
        if client.number not in self._given_up:
            self._given_up.add(client.number)
            self._is_dead(client, Gone.CONNECTION)

    def _refuse(
        self, routing_id: bytes, code: str, text: str, id: int = 0, *, family_failed: bool = False, who: str = ""
    ) -> None:
        self._refused += 1
        self._complaints.note("client turned away", text)
        self._audit.record("client_refused", who, code=code)
        self._send(routing_id, [Problem(id, "failed" if family_failed else "usage", code, text)])

    # --- Out --------------------------------------------------------------------------------------------

    def reply(self, effect: ReplyToClient) -> None:
        """Lay a reply down for the next ``flush``."""
        self._outbox.put(effect.client, effect.message, effect.valid_until)  # type: ignore[arg-type]  # it is one of them

    def flush(self) -> None:
        """Send everything laid down, one frame per client."""
        self._outbox.flush(self._send_body)

    def _send_body(self, number: int, body: bytes) -> None:
        client = self._by_number.get(number)
        if client is None or number in self._given_up:
            return
        if not self._send_frame(client.routing_id, body):
            self._complaints.note("client given up", f"{client.in_words} is gone or does not read its replies")
            self._times_given_up += 1
            self._given_up.add(number)
            self._is_dead(client, Gone.CONNECTION)

    def _send(self, routing_id: bytes, replies: list[AnyClientReply]) -> bool:
        return self._send_frame(routing_id, REPLY_CODEC.encode(replies))

    def _send_frame(self, routing_id: bytes, body: bytes) -> bool:
        domain, node, incarnation, _ = self._who_we_are()
        frame = frames.pack(FrameKind.CLIENT_REPLY, domain, node.encode(), incarnation, body)
        try:
            self.router.send(routing_id, SNDMORE_NOBLOCK)
            self.router.send(frame, NOBLOCK)
        except zmq.ZMQError:  # EHOSTUNREACH: the connection is over; EAGAIN: its queue is full
            return False
        self._frames_sent += 1
        return True

    def _too_large(self, text: str) -> None:
        self._complaints.note("reply too large", text)

    # --- Ends -------------------------------------------------------------------------------------------

    def _is_dead(self, client: Client, what: Gone) -> None:
        self._dead.append((client, what, self._frames_read))

    def _process_ended(self, client: Client) -> None:
        self._watch.remove(client.pidfd)
        self._is_dead(client, Gone.PROCESS)

    def _connections_changed(self) -> None:
        for event, fd in sockets.monitor_events(self._monitor):
            client = self._by_fd.get(fd)
            if event == zmq.EVENT_ACCEPTED:
                self._strangers.came(fd, None if client is None else client.cookie)
                continue
            self._strangers.forget(fd)
            if client is not None:  # not put off by those who come and go through the same descriptor
                self._suspects.setdefault(client.number, self._clock() + SUSPICION_S)

    def _judge_suspects(self) -> None:
        now = self._clock()
        for number, when in list(self._suspects.items()):
            if when > now:
                continue
            del self._suspects[number]
            client = self._by_number.get(number)
            if client is not None and not self._send_frame(client.routing_id, _EMPTY):
                self._is_dead(client, Gone.CONNECTION)

    def _forget(self, client: Client, what: Gone) -> None:
        """Its connection is over; if its process may live, that goes on being watched for a while."""
        had_connection = self._by_number.pop(client.number, None) is not None
        if had_connection:
            self._by_id.pop(client.routing_id, None)
            if self._by_fd.get(client.fd) is client:
                del self._by_fd[client.fd]
            self._suspects.pop(client.number, None)
            self._let_in_one_more(client.principal.identity)
            self._given_up.discard(client.number)
            self._cut.discard(client.number)
            self._last_frame.pop(client.number, None)
            self._backlog.forget(client.number)
        elif client.number not in self._bereft:
            return
        if what is Gone.PROCESS:
            self._bereft.pop(client.number, None)
            self._close_pidfd(client)
        elif had_connection and client.pidfd >= 0:
            self._bereft[client.number] = (client, self._clock() + GRACE_S)
            if len(self._bereft) > self._clients_max:
                self._let_go_of_bereft(math.inf, 1)
        if had_connection or what is Gone.PROCESS:
            self._gone.append((client.number, what))

    def _let_in_one_more(self, identity: str) -> None:
        left = self._per_principal.get(identity, 0) - 1
        if left > 0:
            self._per_principal[identity] = left
        else:
            self._per_principal.pop(identity, None)

    def _let_go_of_bereft(self, now: float, most: int = 0) -> None:
        """Whose grace is over has lost its session; the oldest first, and no more than ``most`` unless that is 0."""
        due = [client for client, until in self._bereft.values() if until <= now]
        for client in due[:most] if most else due:
            del self._bereft[client.number]
            self._close_pidfd(client)

    def _close_pidfd(self, client: Client) -> None:
        if client.pidfd >= 0:
            self._watch.remove(client.pidfd)
            os.close(client.pidfd)

    def close(self, linger_ms: int = 0) -> None:
        """Close everything; replies on their way get ``linger_ms`` to leave."""
        for client in list(self._by_number.values()):
            self._forget(client, Gone.PROCESS)
        self._let_go_of_bereft(math.inf)
        if not self._monitor.closed:
            self._watch.remove(sockets.fd_of(self._monitor))
        self.router.disable_monitor()
        self._monitor.close(linger=0)
        sockets.remove_socket_file(self._bound)
        self._bound = ""
        self.router.close(linger=linger_ms)


def _is_from(client: Client, part: zmq.Frame) -> bool:
    """Whether a frame is from the principal of ``client``; a process is a part of what libzmq says of a peer."""
    try:
        peer = part.get("Peer-Address")
    except zmq.ZMQError:
        peer = ""
    return peer == client.peer and (not client.principal.key or client.principal.key == let_in_as(part))


def _source_of(part: zmq.Frame) -> tuple[int, str]:
    """The descriptor a frame came through, and the other end as libzmq saw it when it connected."""
    try:
        fd = int(part.get(zmq.SRCFD))
    except zmq.ZMQError:
        return -1, ""
    try:
        return fd, str(part.get("Peer-Address"))
    except zmq.ZMQError:
        return fd, ""


def _pidfd_of(fd: int, peer: str) -> int:
    """A pidfd of the process behind the connection ``fd``, or why there is none."""
    if peer and not peer.startswith(LOCAL_PEER):
        return ELSEWHERE
    if fd < 0:
        return NOT_KNOWN
    try:
        with sockets.borrowed(fd) as connection:
            if connection.family != socket.AF_UNIX:
                return ELSEWHERE
            raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
            pid = int(CREDENTIALS.unpack(raw)[0])
            if peer.count(":") == 3 and peer.rpartition(":")[2] != str(pid):
                return NOT_KNOWN  # the descriptor belongs to another connection by now
            try:
                return connection.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
            except OSError:
                return os.pidfd_open(pid) if pid > 0 else NOT_KNOWN
    except OSError:
        return NOT_KNOWN
