"""Who is at the other end: what the kernel and keys say counts, what a program says of itself does not."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from groupsvc.testing.local_node import environment
from groupsvc.wire.client_messages import REPLY_CODEC, Hello, Problem, StatusAsk, Welcome
from groupsvcd.core.access import UNKNOWN, Principal
from groupsvcd.core.audit import Audit
from groupsvcd.io import clocks, strangers
from groupsvcd.io.clients import Clients, Gone
from groupsvcd.io.principals import CREDENTIALS, principal_of
from groupsvcd.io.sockets import Context, has_more
from tests.unit.io.conftest import Loop
from tests.unit.io.test_clients import DOMAIN, Bench, request_frame

NULL_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
ME = f"localhost:{os.getuid()}:{os.getgid()}:{os.getpid()}"


class Door(Bench):
    """A daemon's side that takes down who came, and what was recorded."""

    def made(self) -> Clients:
        self.came: dict[int, Principal] = {}
        self.records: list[tuple[str, dict[str, Any]]] = []
        return Clients(
            self.context, address=self.address, watch=self.loop.watch, clock=clocks.now,
            complaints=self.loop.complaints, who_we_are=lambda: (DOMAIN, "n1", 77, "shop"), clients_max=5,
            queue_frames=8, clients_per_principal_max=2, came=self.came.__setitem__,
            audit=Audit(clocks.now, lambda op, args: self.records.append((op, args))),
        )  # fmt: skip


@pytest.fixture
def door(context: Context, loop: Loop, short_path: Path) -> Iterator[Door]:
    made = Door(context, loop, f"ipc://{short_path}/client.sock")
    yield made
    made.close()


def by_hand(address: str, identity: bytes, *, message: bytes, **claims: bytes) -> socket.socket:
    """A connection whose greeting says what a ZeroMQ socket would never say; then one message."""

    def named(name: bytes, value: bytes) -> bytes:
        return bytes([len(name)]) + name + struct.pack("!I", len(value)) + value

    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address.removeprefix("ipc://"))
    connection.settimeout(10.0)
    body = b"\x05READY" + named(b"Socket-Type", b"DEALER") + named(b"Identity", identity)
    body += b"".join(named(name.replace("_", "-").encode(), value) for name, value in claims.items())
    connection.sendall(NULL_GREETING + b"\x04" + bytes([len(body)]) + body)
    heard = b""
    while b"READY" not in heard[64:]:
        heard += connection.recv(4096)
    connection.sendall(b"\x00" + bytes([len(message)]) + message)
    return connection


def test_a_user_is_who_the_kernel_says(door: Door) -> None:
    door.greeted()
    found = door.came[1]
    assert (os.getuid(), "", True) == (found.uid, found.key, found.is_trusted)
    assert {os.getgid(), *os.getgroups()} == found.gids
    assert ("client_admitted", {"who": f"user:{os.getuid()}", "client": 1, "name": "test"}) == door.records[0]


def test_what_a_greeting_claims_is_not_believed(door: Door) -> None:
    """Without keys libzmq hands on whatever a program writes as its User-Id."""
    hello = request_frame(Hello(1, 1, 1, "liar"))
    with by_hand(door.address, b"", message=hello, User_Id=b"reports", Peer_Address=b"localhost:0:0:1"):
        assert door.loop.until(lambda: door.came, door.receive)
    assert (os.getuid(), "") == (door.came[1].uid, door.came[1].key)


def test_a_connection_must_not_choose_its_routing_id(door: Door) -> None:
    application: zmq.Socket[bytes] = door.context.socket(zmq.DEALER)
    door.applications.append(application)
    application.setsockopt(zmq.ROUTING_ID, b"client")
    application.connect(door.address)
    application.send(request_frame(Hello(1, 1, 1, "test")))
    problem = door.answer(application)
    assert isinstance(problem, Problem)
    assert ("usage", "hello") == (problem.family, problem.code)
    assert {} == door.came
    assert ("client_refused", {"who": "", "code": "hello"}) in door.records


def _say_as(address: str, identity: bytes, message: bytes) -> int:
    """A process of its own, that takes over a routing id; its exit code."""
    child = os.fork()
    if child == 0:
        with by_hand(address, identity, message=message):
            os._exit(0)
    return os.waitpid(child, 0)[1]


def test_who_takes_over_a_routing_id_is_not_heard_under_it(door: Door) -> None:
    """One whose connection has just broken is still known here; another process guesses its routing id."""
    first = by_hand(door.address, b"\0abcd", message=request_frame(Hello(1, 1, 1, "first")))
    assert door.loop.until(lambda: door.came, door.receive)
    first.close()
    router, empty = door.clients.router, REPLY_CODEC.encode([])
    assert door.loop.until(lambda: not door.clients._send_frame(b"\0abcd", empty))
    ask = request_frame(StatusAsk(2))  # again and again: libzmq takes an id only when it has cleared the old one away
    assert door.loop.until(lambda: 0 == _say_as(door.address, b"\0abcd", ask) and has_more(router))
    assert door.loop.until(lambda: (1, Gone.CONNECTION) in door.got, door.receive)
    assert door.loop.until(lambda: 0 == len(door.clients), door.receive)
    assert StatusAsk(2) not in [what for _, what in door.got]


def test_a_principal_has_so_many_connections(door: Door) -> None:
    first = door.greeted()
    door.greeted()
    third = door.application()
    third.send(request_frame(Hello(1, 1, 1, "third")))
    problem = door.answer(third)
    assert isinstance(problem, Problem)
    assert "limits.clients_per_principal_max" in problem.text
    first.close(linger=0)
    assert door.loop.until(lambda: 1 == len(door.clients), door.receive)
    third.send(request_frame(Hello(2, 1, 1, "third")))
    assert isinstance(door.answer(third), Welcome)


# --- Who says nothing -------------------------------------------------------------------------------------


def test_who_shakes_hands_and_says_nothing_is_cut_off(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "HELLO_S", 0.05)
    talks = door.greeted()
    with by_hand(door.address, b"", message=b"") as silent:
        assert door.loop.until(lambda: b"" == heard_by(silent), door.receive)
    talks.send(request_frame(StatusAsk(2)))
    assert door.loop.until(lambda: (1, StatusAsk(2)) in door.got, door.receive)
    assert 1 == door.loop.complaints.counts["silent client"]
    assert [] == [what for _, what in door.got if isinstance(what, Gone)]


def test_of_very_many_who_say_nothing_the_oldest_are_cut_off(door: Door) -> None:
    silent = [by_hand(door.address, b"", message=b"") for _ in range(7)]
    try:
        assert door.loop.until(lambda: [b"", b""] == list(map(heard_by, silent[:2])), door.receive)
        assert [None] * 5 == list(map(heard_by, silent[2:]))
    finally:
        for one in silent:
            one.close()


def test_the_numbers_of_connections_are_not_those_of_every_process() -> None:
    program = "from groupsvcd.io.sockets import new_context; import zmq; c = new_context(); r = c.socket(zmq.ROUTER);"
    program += "r.bind('inproc://x'); d = c.socket(zmq.DEALER); d.connect('inproc://x'); d.send(b''); print(r.recv())"
    found = {subprocess.check_output([sys.executable, "-c", program], env=environment()) for _ in range(2)}
    assert 2 == len(found)


def heard_by(connection: socket.socket) -> bytes | None:
    """What has come; nothing at all if it was cut off, None if it waits."""
    connection.setblocking(False)
    try:
        while found := connection.recv(4096):
            pass
        return found
    except BlockingIOError:
        return None
    except ConnectionResetError:
        return b""


# --- The judgement itself ---------------------------------------------------------------------------------


def test_where_keys_are_asked_for_the_key_says_who_it_is() -> None:
    assert Principal(key="reports") == principal_of(-1, "192.0.2.7", "reports", asks_for_keys=True)
    assert UNKNOWN == principal_of(-1, "192.0.2.7", "reports", asks_for_keys=False)
    assert UNKNOWN == principal_of(-1, "", "reports", asks_for_keys=True)


def test_a_descriptor_that_is_anothers_by_now_proves_nothing() -> None:
    """Its connection is over, and the kernel speaks of somebody else's."""
    one, other = socket.socketpair()
    with one, other, socket.socket() as tcp:
        raw = one.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        pid, uid, gid = CREDENTIALS.unpack(raw)
        assert uid == principal_of(one.fileno(), f"localhost:{uid}:{gid}:{pid}", "x", asks_for_keys=True).uid
        assert UNKNOWN == principal_of(one.fileno(), f"localhost:{uid}:{gid}:{pid + 1}", "x", asks_for_keys=True)
        assert UNKNOWN == principal_of(tcp.fileno(), ME, "x", asks_for_keys=True)
    assert UNKNOWN == principal_of(-1, ME, "x", asks_for_keys=True)
