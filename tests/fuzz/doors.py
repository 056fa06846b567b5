"""What strangers ask the daemon beside frames: requests for pages, and ZeroMQ's question whether a key is welcome."""

from __future__ import annotations

import atexit
import math
import re
import socket
from collections.abc import Callable
from functools import cache

import msgspec
from zmq.utils import z85

from groupsvcd.io.complaints import Complaints
from groupsvcd.io.keys import CLIENTS, NEVER, NODES, NOT_NOW, QUESTION_PARTS, WELCOME, ZAP_VERSION, Doorkeeper
from groupsvcd.io.pages import REQUEST_BYTES_MAX, Page, Pages
from groupsvcd.io.sockets import new_context
from groupsvcd.io.watch import Watch
from tests.fuzz.family import Family

# --- Pages ---

BODY = b"a page\n"
_head = re.compile(
    rb"HTTP/1\.1 (200|400|404|405|431) [A-Z][A-Za-z ]+\r\n(?:[A-Z][A-Za-z-]+: [^\r\n]+\r\n)+\r\n", re.ASCII
)
_asks = re.compile(rb"\s*(GET|HEAD) /(metrics|healthz)(\?[^ ]*)? HTTP/1\.")


@cache
def _stand() -> tuple[Pages, Watch, list[Callable[[], None]]]:
    watch = Watch()
    calls: list[Callable[[], None]] = []
    pages = dict.fromkeys(("/metrics", "/healthz"), lambda: Page(200, BODY))
    made = Pages("127.0.0.1", 0, pages=pages, watch=watch, clock=lambda: 0.0, call=calls.append)
    return made, watch, calls


def ask_for_a_page(data: bytes) -> None:
    """One answer and the end, or nothing yet, if it comes in one piece or in two; and it ends when they hang up."""
    pages, watch, calls = _stand()
    for at in (len(data), len(data) // 2):
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            pages.take(ours)
            for part in (data[:at], data[at:]):
                if part and ours.fileno() >= 0:
                    theirs.send(part)
                    for _ in range(2 + len(part) // REQUEST_BYTES_MAX):
                        watch.run()
                        while calls:
                            calls.pop()()
            _judge(data, _received(theirs), is_over=ours.fileno() < 0)
        watch.run()
        assert ours.fileno() < 0, "it has hung up, and its connection is kept"
        assert math.inf == pages.deadline


def _received(theirs: socket.socket) -> bytes:
    found = []
    while True:
        try:
            part = theirs.recv(65_536)
        except (BlockingIOError, ConnectionResetError):  # reset: we ended before all of it was read
            break
        if not part:
            break
        found.append(part)
    return b"".join(found)


def _judge(data: bytes, answer: bytes, *, is_over: bool) -> None:
    assert is_over == bool(answer), "an answer is the end of the connection, and nothing else is"
    if not answer:
        assert len(data) <= REQUEST_BYTES_MAX
        assert b"\r\n\r\n" not in data
        assert b"\n\n" not in data
        return
    head = _head.match(answer)
    assert head is not None, answer[:200]
    body = answer[head.end() :]
    length = int(re.findall(rb"Content-Length: (\d+)", head.group())[0])
    is_head_only = data.startswith(b"HEAD ") and head.group(1) in (b"200", b"404")
    assert len(body) == (0 if is_head_only else length)
    assert (head.group(1) == b"200") == bool(_asks.match(data)) or head.group(1) in (b"400", b"431")


# --- Keys ---

NODE, PROGRAM = (bytes([number]) * 32 for number in (1, 2))
NAMES = {
    NODES: {"n1": (z85.encode(NODE).decode(),)},
    CLIENTS: {"report": (z85.encode(PROGRAM).decode(),)},
}
CODES = (WELCOME, NOT_NOW, NEVER)


@cache
def _doorkeeper() -> Doorkeeper:
    context, watch = new_context(), Watch()
    made = Doorkeeper(context, doors=NAMES, watch=watch, complaints=Complaints(lambda: 0.0))

    @atexit.register
    def close() -> None:
        made.close()
        context.term()

    return made


def ask_for_entrance(data: bytes) -> None:
    """Whatever is asked has an answer with the number of its question; who is not listed is not welcome.

    The parts are those that libzmq hands over: it writes them itself, all but the address and the key, and a key has 32
    bytes. With any number of parts, and of any other kind than a key, a question is answered as well.
    """
    try:
        parts = msgspec.msgpack.decode(data, type=list[bytes])
    except (msgspec.DecodeError, RecursionError):
        parts = data.split(b"\n")
    if len(parts) == QUESTION_PARTS:
        parts[6] = parts[6][:32].ljust(32, b"\0")
    answer = _doorkeeper()._answer(parts)
    version, number, code, *_, who, about = answer
    assert (6, ZAP_VERSION, b"") == (len(answer), version, about)
    assert number == (parts[1] if len(parts) > 1 else b"")
    assert code in CODES
    if code == WELCOME:
        assert (parts[2], parts[6], who) in (
            (NODES.encode(), NODE, z85.encode(NODE)), (CLIENTS.encode(), PROGRAM, b"report")
        )  # fmt: skip
    else:
        assert who == b""


def _question(door: str, key: bytes) -> bytes:
    return msgspec.msgpack.encode([ZAP_VERSION, b"1", door.encode(), b"10.0.0.7", b"", b"CURVE", key])


DOORS = Family(
    name="doors",
    about="requests at the port of the metrics, questions whether a key is welcome",
    decoders=("groupsvcd.io.pages:_read", "groupsvcd.io.keys:run"),
    readers=(
        (
            ask_for_a_page,
            (
                b"GET /metrics HTTP/1.1\r\nHost: n1:9100\r\nAccept: */*\r\n\r\n",
                b"HEAD /healthz?x=1 HTTP/1.0\n\n",
                b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                b"GET /metrics HTTP/1.1\r\nCookie: " + 3_000 * b"x",
            ),
        ),
        (ask_for_entrance, (_question(NODES, NODE), _question(CLIENTS, PROGRAM), _question(NODES, PROGRAM))),
    ),
)
