"""The port of the metrics: answers who asks, and nothing that anybody sends there makes the reactor wait."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator

import pytest

from groupsvcd.io import pages as limits
from groupsvcd.io.pages import Page, Pages
from groupsvcd.io.sockets import CannotBind
from tests.unit.io.conftest import Loop

LARGE = b"x" * 20_000_000
"""More than the kernel keeps for a connection."""


class Stand:
    """Pages on a loop, a clock that is moved by hand, and who connects to them."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.now = 100.0
        self.made = 0
        self.takes_s = 0.0
        self.calls: list[Callable[[], None]] = []
        contents = {"/metrics": self._page, "/large": lambda: Page(200, LARGE), "/readyz": lambda: Page(503, b"no\n")}
        self.pages = Pages(
            "127.0.0.1", 0, pages=contents, watch=loop.watch, clock=lambda: self.now, call=self.calls.append
        )
        self.opened: list[socket.socket] = []

    def _page(self) -> Page:
        self.made += 1
        self.now += self.takes_s
        return Page(200, f"made {self.made}\n".encode(), "text/x")

    def turn(self) -> None:
        """What the reactor does beside reading the watch."""
        calls, self.calls[:] = list(self.calls), []
        for call in calls:
            call()
        if self.pages.deadline <= self.now:
            self.pages.tick()

    def connect(self) -> socket.socket:
        self.opened.append(socket.create_connection(self.pages.address))
        self.opened[-1].setblocking(False)
        return self.opened[-1]

    def answer_to(self, request: bytes) -> bytes:
        """Everything that comes back until the connection is closed."""
        connection = self.connect()
        connection.sendall(request)
        return self.rest_of(connection)

    def rest_of(self, connection: socket.socket) -> bytes:
        found, is_over = [], []

        def read() -> None:
            try:
                part = connection.recv(65_536)
            except BlockingIOError:
                return
            except ConnectionResetError:
                part = b""
            found.append(part)
            is_over.append(not part)

        assert self.loop.until(lambda: any(is_over), self.turn, read)
        return b"".join(found)


@pytest.fixture
def stand(loop: Loop) -> Iterator[Stand]:
    made = Stand(loop)
    yield made
    made.pages.close()
    for connection in made.opened:
        connection.close()


def test_a_page_is_answered_and_the_connection_closed(stand: Stand) -> None:
    answer = stand.answer_to(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"made 1\n" == body
    lines = head.split(b"\r\n")
    assert b"HTTP/1.1 200 OK" == lines[0]
    assert {b"Content-Type: text/x", b"Content-Length: 7", b"Connection: close"} <= set(lines)
    assert b"HTTP/1.1 503 Service Unavailable" == stand.answer_to(b"GET /readyz HTTP/1.0\r\n\r\n").split(b"\r\n")[0]


def test_head_gives_the_head_alone(stand: Stand) -> None:
    answer = stand.answer_to(b"HEAD /metrics?x=1 HTTP/1.1\r\n\r\n")
    assert b"Content-Length: 7\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


REFUSED = {
    b"GET /secret HTTP/1.1\r\n\r\n": b"404",
    b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc": b"405",
    b"GET /metrics\r\n\r\n": b"400",
    b"GET /metrics HTTP/2\r\n\r\n": b"400",
    b"HELLO\n\n": b"400",
    b"\x16\x03\x01\x02\x00\x01": b"400",
    b"\r\n\r\n": b"400",
    b"GET /metrics HTTP/1.1\r\nCookie: " + b"x" * limits.REQUEST_BYTES_MAX: b"431",
}


@pytest.mark.parametrize("request_, code", REFUSED.items(), ids=lambda value: str(value[:20]))
def test_what_is_no_request_for_a_page_is_refused_at_once(stand: Stand, request_: bytes, code: bytes) -> None:
    assert stand.answer_to(request_).startswith(b"HTTP/1.1 " + code)
    assert 1 == stand.pages.statistics().refused


def test_a_request_may_come_byte_by_byte(stand: Stand) -> None:
    connection = stand.connect()
    for byte in b"GET /metrics HTTP/1.1\r\n\r\n":
        connection.send(bytes([byte]))
        stand.loop.poller.poll(1)
        stand.loop.watch.run()
    assert stand.rest_of(connection).endswith(b"made 1\n")


def test_who_says_nothing_is_cut_off_when_its_time_is_up(stand: Stand) -> None:
    silent, half = stand.connect(), stand.connect()
    half.send(b"GET /metr")
    assert stand.loop.until(lambda: stand.pages.deadline < 1e9)
    assert 100.0 + limits.CONNECTION_S == stand.pages.deadline
    stand.now += limits.CONNECTION_S
    assert b"" == stand.rest_of(silent) == stand.rest_of(half)
    assert 2 == stand.pages.statistics().cut_off
    assert stand.pages.deadline == float("inf")


def test_who_asks_and_does_not_read_is_cut_off_and_others_are_served_meanwhile(stand: Stand) -> None:
    slow = stand.connect()
    slow.send(b"GET /large HTTP/1.1\r\n\r\n")
    assert stand.loop.until(lambda: stand.pages.statistics().answered == 1, stand.turn)
    assert stand.answer_to(b"GET /metrics HTTP/1.1\r\n\r\n").endswith(b"made 1\n")
    stand.now += limits.CONNECTION_S
    stand.turn()
    assert 1 == stand.pages.statistics().cut_off
    assert len(stand.rest_of(slow)) < len(LARGE)


def test_a_large_page_comes_whole(stand: Stand) -> None:
    assert stand.answer_to(b"GET /large HTTP/1.1\r\n\r\n").endswith(LARGE)


def test_a_thousand_silent_connections_do_not_keep_the_next_one_out(stand: Stand) -> None:
    for _ in range(1_000):
        stand.connect()
        stand.loop.watch.run()
    assert stand.answer_to(b"GET /metrics HTTP/1.1\r\n\r\n").endswith(b"made 1\n")
    assert stand.pages.statistics().cut_off >= 1_000 - limits.CONNECTIONS_MAX


def test_a_page_is_made_anew_only_when_it_is_old(stand: Stand) -> None:
    ask = b"GET /metrics HTTP/1.1\r\n\r\n"
    assert {b"made 1\n"} == {stand.answer_to(ask)[-7:] for _ in range(20)}
    stand.now += 2 * limits.FRESH_S
    assert b"made 2\n" == stand.answer_to(ask)[-7:]


def test_a_page_that_takes_long_to_make_is_made_less_often(stand: Stand) -> None:
    ask = b"GET /metrics HTTP/1.1\r\n\r\n"
    stand.takes_s = 0.1
    assert b"made 1\n" == stand.answer_to(ask)[-7:]
    stand.now += limits.TIMES_AS_LONG * 0.1 - 0.01
    assert b"made 1\n" == stand.answer_to(ask)[-7:]
    stand.now += 0.02
    assert b"made 2\n" == stand.answer_to(ask)[-7:]


def test_an_answer_waits_for_a_step_of_the_engine(stand: Stand) -> None:
    """After a process was stopped, what has come meanwhile is looked at first."""
    stand.connect().send(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert stand.loop.until(lambda: stand.calls)
    assert (0, 0) == (stand.made, stand.pages.statistics().answered)


def test_who_is_gone_before_the_answer_harms_nobody(stand: Stand) -> None:
    gone = stand.connect()
    gone.send(b"GET /metrics HTTP/1.1\r\n\r\n")
    assert stand.loop.until(lambda: stand.calls)
    gone.close()
    stand.loop.watch.run()
    stand.turn()
    assert stand.answer_to(b"GET /metrics HTTP/1.1\r\n\r\n")[-7:-2] == b"made "


def test_garbage_of_any_kind_gets_an_answer_or_nothing(stand: Stand) -> None:
    rng = random.Random(5)
    for _ in range(200):
        connection = stand.connect()
        connection.send(rng.randbytes(rng.randrange(1, 300)) + rng.choice([b"", b"\r\n\r\n", b"\n\n"]))
        connection.shutdown(socket.SHUT_WR)
        answer = stand.rest_of(connection)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
    assert 0 == stand.made


def test_a_port_in_use_is_refused_in_words(stand: Stand, loop: Loop) -> None:
    host, port = stand.pages.address
    with pytest.raises(CannotBind, match=f"http://{host}:{port} cannot be listened at: Address already in use"):
        Pages(host, port, pages={}, watch=loop.watch, clock=lambda: 0.0, call=lambda action: None)


def test_closing_ends_everything_and_may_come_twice(stand: Stand) -> None:
    waiting = stand.connect()
    assert stand.loop.until(lambda: stand.pages.deadline < 1e9)
    stand.pages.close()
    stand.pages.close()
    assert b"" == stand.rest_of(waiting)
