"""The pages that a daemon shows to who watches it: a small part of HTTP/1.1, served by the reactor itself.

Prometheus asks for ``/metrics`` every few seconds, a load balancer for ``/readyz``. They connect, send a request of
some hundred bytes, read the answer; then the connection is closed, by us. Nothing else is understood: no body, no
second request, no compression, nothing but GET and HEAD.

The reactor must never wait here, whoever connects:

- Sockets do not block. What cannot be read or written now is gone on with when the kernel says so.
- A connection lasts ``CONNECTION_S`` at most, a request has ``REQUEST_BYTES_MAX``.
- There are ``CONNECTIONS_MAX``; who comes then takes the place of the oldest. A thousand that connect and say nothing
  cost a thousand accepts, and do not keep the next one out, who asks.
- A page is made anew at most every ``FRESH_S``, and not before ``TIMES_AS_LONG`` as much time has passed as it took to
  make: however many ask, that is no more than a fiftieth of the reactor's time.

And who asks must not be told what was true before the process was stopped for a minute. So an answer is made within a
step of the engine, behind everything that has come meanwhile.

There is no second thread for this: it would need a copy of everything that it tells, made by the reactor all the same,
and it would go on saying that all is well while the reactor stands still. This way ``/healthz`` is answered if and only
if rounds are completed.
"""

from __future__ import annotations

import contextlib
import math
import socket
from collections.abc import Callable

import attrs

from .sockets import CannotBind
from .watch import Watch

CONNECTIONS_MAX = 64
"""At once. Prometheus needs one; a few of them, load balancers and a person with a browser are not more than ten."""
CONNECTION_S = 5.0
"""From its first to its last moment. Prometheus gives up after 10 s, the usual prober of readiness after 1 s."""
REQUEST_BYTES_MAX = 8_192
"""What a browser with cookies of other servers on this host sends."""
ACCEPTS_PER_ROUND = 16
BACKLOG = 128
FRESH_S = 0.25
"""So old a page may be."""
TIMES_AS_LONG = 50
"""As long as a page took to make, so many times it is shown. With 10 000 groups it takes about 6 ms."""

TEXT = "text/plain; charset=utf-8"
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}


@attrs.frozen
class Page:
    """What is answered."""

    status: int
    body: bytes
    content_type: str = TEXT


MakePage = Callable[[], Page]
"""Called within a step of the engine."""


@attrs.frozen(kw_only=True)
class PageStatistics:
    """Requests since the daemon started."""

    answered: int
    refused: int  # that were none, or for what there is not
    cut_off: int  # connections that ended before they were answered: too slow, or too many


@attrs.define(eq=False)
class _Connection:
    socket: socket.socket
    until: float
    request: bytes = b""
    is_asked: bool = False
    answer: memoryview | None = None


class Pages:
    """The pages at ``http://HOST:PORT``, by path."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        pages: dict[str, MakePage],
        watch: Watch,
        clock: Callable[[], float],
        call: Callable[[Callable[[], None]], None],
    ) -> None:
        self._pages = pages
        self._watch = watch
        self._clock = clock
        self._call = call
        self._connections: dict[int, _Connection] = {}  # by descriptor, the oldest first
        self._made: dict[str, tuple[float, Page]] = {}  # by path; until when each is fresh
        self._answered = self._refused = self._cut_off = 0
        self._listening = _listen(host, port)
        watch.add(self._listening.fileno(), self._accept)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self._listening.getsockname()[:2]
        return str(host), int(port)

    def statistics(self) -> PageStatistics:
        """As of now."""
        return PageStatistics(answered=self._answered, refused=self._refused, cut_off=self._cut_off)

    @property
    def deadline(self) -> float:
        """When the oldest connection has had its time."""
        for connection in self._connections.values():
            return connection.until
        return math.inf

    def tick(self) -> None:
        """Time has passed."""
        now = self._clock()
        for connection in [one for one in self._connections.values() if one.until <= now]:
            self._cut(connection)

    def close(self) -> None:
        """Nobody is answered any more; may be called again."""
        for connection in list(self._connections.values()):
            self._forget(connection)
        if self._listening.fileno() >= 0:
            self._watch.remove(self._listening.fileno())
            self._listening.close()

    # --- Connections ------------------------------------------------------------------------------------

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_ROUND):
            try:
                accepted, _ = self._listening.accept()
            except OSError:  # nobody is there any more; or there are no descriptors left, then it is tried again
                return
            self.take(accepted)

    def take(self, accepted: socket.socket) -> None:
        """Serve this connection from now on."""
        accepted.setblocking(False)
        if len(self._connections) >= CONNECTIONS_MAX:
            self._cut(next(iter(self._connections.values())))
        connection = _Connection(accepted, self._clock() + CONNECTION_S)
        self._connections[accepted.fileno()] = connection
        self._watch.add(accepted.fileno(), lambda: self._read(connection))

    def _cut(self, connection: _Connection) -> None:
        self._cut_off += 1
        self._forget(connection)

    def _forget(self, connection: _Connection) -> None:
        fd = connection.socket.fileno()
        if fd >= 0:
            self._connections.pop(fd, None)
            self._watch.remove(fd)
            connection.socket.close()

    def _read(self, connection: _Connection) -> None:
        try:
            more = connection.socket.recv(REQUEST_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            self._cut(connection)
            return
        if connection.is_asked:
            return  # whatever it adds is not read, and its connection ends with the answer
        connection.request += more
        request = connection.request
        if not request[:1].isalpha():  # as every method begins; whoever speaks TLS to us is told at once
            self._refuse(connection, Page(400, b"this is no request; here is HTTP without TLS\n"))
        elif b"\r\n\r\n" in request or b"\n\n" in request:
            self._ask(connection, request)
        elif len(request) > REQUEST_BYTES_MAX:
            self._refuse(connection, Page(431, b"the request is too long\n"))

    # --- Answers ----------------------------------------------------------------------------------------

    def _ask(self, connection: _Connection, request: bytes) -> None:
        parts = request.split(b"\n", 1)[0].strip().split(b" ")
        if len(parts) != 3 or not parts[2].startswith(b"HTTP/1."):
            self._refuse(connection, Page(400, b"this is no request of HTTP/1.1\n"))
            return
        method, target = parts[0], parts[1].partition(b"?")[0].decode("ascii", "replace")
        if method not in (b"GET", b"HEAD"):
            self._refuse(connection, Page(405, b"only GET and HEAD are answered\n"))
        elif target not in self._pages:
            there = "\n".join(("there are:", *sorted(self._pages), ""))
            self._refuse(connection, Page(404, there.encode()), head_only=method == b"HEAD")
        else:
            connection.is_asked = True
            self._call(lambda: self._tell(connection, target, head_only=method == b"HEAD"))

    def _refuse(self, connection: _Connection, page: Page, *, head_only: bool = False) -> None:
        self._refused += 1
        connection.is_asked = True
        self._answer(connection, page, head_only=head_only)

    def _tell(self, connection: _Connection, path: str, *, head_only: bool) -> None:
        if connection.socket.fileno() < 0:
            return  # it was cut off meanwhile
        began = self._clock()
        until, page = self._made.get(path, (-math.inf, None))
        if page is None or began > until:
            page = self._pages[path]()
            made = self._clock()
            self._made[path] = (made + max(FRESH_S, TIMES_AS_LONG * (made - began)), page)
        self._answered += 1
        self._answer(connection, page, head_only=head_only)

    def _answer(self, connection: _Connection, page: Page, *, head_only: bool) -> None:
        allow = "Allow: GET, HEAD\r\n" if page.status == 405 else ""
        head = (
            f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
            f"Content-Type: {page.content_type}\r\n"
            f"Content-Length: {len(page.body)}\r\n"
            "Cache-Control: no-store\r\n"
            f"X-Content-Type-Options: nosniff\r\n{allow}Connection: close\r\n\r\n"
        )
        connection.answer = memoryview(head.encode() + (b"" if head_only else page.body))
        fd = connection.socket.fileno()
        self._watch.remove(fd)
        self._watch.add(fd, lambda: self._write(connection), writable=True)
        self._write(connection)

    def _write(self, connection: _Connection) -> None:
        assert connection.answer is not None
        try:
            sent = connection.socket.send(connection.answer)
        except BlockingIOError:
            return
        except OSError:
            self._cut(connection)
            return
        connection.answer = connection.answer[sent:]
        if not connection.answer:
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_WR)
            self._forget(connection)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        place = f"[{host}]" if ":" in host else host
        raise CannotBind(f"http://{place}:{port} cannot be listened at: {error.strerror or error}") from None
    return listening
