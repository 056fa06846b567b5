"""What somebody can try who reaches a port: keep doors busy, repeat what was heard, speak for another domain."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import zmq

import groupsvc
from groupsvc.testing import LocalDomain
from groupsvc.wire import frames
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.peer_messages import PEER_CODEC, Goodbye
from groupsvcd.io.sockets import HANDSHAKE_MS
from groupsvcd.io.strangers import HELLO_S

CURVE_GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"CURVE".ljust(20, b"\0") + bytes(32)
CUT_OFF_S = HANDSHAKE_MS / 1000 + HELLO_S


@pytest.fixture(scope="module")
def keyed() -> Iterator[LocalDomain]:
    with LocalDomain(nodes=3, keys=True) as made:
        yield made


def target(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("tcp://").rpartition(":")
    return host, int(port)


@pytest.mark.parametrize("said", [b"", CURVE_GREETING[:7], CURVE_GREETING, CURVE_GREETING + b"\x04\xc8\x05HELLO"])
def test_who_never_finishes_its_handshake_is_cut_off_and_holds_up_nobody(keyed: LocalDomain, said: bytes) -> None:
    """Two hundred that say a little and then nothing, at the door of programs and at that of nodes."""
    doors = [target(keyed.remote_address("n1")), target(keyed.peer_address("n1"))]
    slow = [socket.create_connection(door, timeout=5.0) for door in doors for _ in range(100)]
    try:
        for one in slow:
            one.sendall(said)
        began = time.monotonic()
        with groupsvc.connect(keyed.remote_address("n1"), keys=keyed.keys) as session, session.join("slow") as group:
            assert group.send(b"x").approved
        assert time.monotonic() - began < CUT_OFF_S
        keyed.wait_until(lambda: all(map(is_cut_off, slow)), "all were cut off", timeout=CUT_OFF_S + 10)
    finally:
        for one in slow:
            one.close()
    keyed.wait_until_up()


def is_cut_off(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


class Recorder:
    """Hands on what goes between one client and a daemon, and keeps what the client has said."""

    def __init__(self, door: tuple[str, int]) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._door = door
        self._said: dict[socket.socket, bytes] = {}
        self.address = f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:  # a client knocks before it connects
            client, _ = self._listening.accept()
            server = socket.create_connection(self._door)
            for ends in ((server, client), (client, server)):
                threading.Thread(target=self._hand_on, args=ends, daemon=True).start()

    @property
    def said(self) -> bytes:
        """By the one that has said most."""
        address = self._listening.getsockname()
        return max((said for end, said in self._said.items() if end.getsockname() == address), key=len)

    def _hand_on(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while some := source.recv(65536):
                self._said[source] = self._said.get(source, b"") + some
                sink.sendall(some)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_what_a_client_with_a_key_has_said_cannot_be_said_again(keyed: LocalDomain) -> None:
    """All bytes of its connection, once more: keys of a connection are made for that connection alone."""
    recorder = Recorder(target(keyed.remote_address("n1")))
    with groupsvc.connect(recorder.address, keys=keyed.keys) as session, session.join("once") as group:
        group.send(b"x")
    assert len(recorder.said) > 500
    before = keyed.logs("n1").count("audit client_admitted who='key:client'")
    assert before
    with socket.create_connection(target(keyed.remote_address("n1")), timeout=10.0) as again:
        try:
            again.sendall(recorder.said)
            while again.recv(65536):
                pass
        except OSError:
            pass
    with groupsvc.connect(keyed.remote_address("n1"), keys=keyed.keys):
        keyed.wait_until(
            lambda: keyed.logs("n1").count("audit client_admitted who='key:client'") == before + 1, "only this one"
        )


@pytest.mark.parametrize("domain_id, age", [("another", 0), ("its own", 1)])
def test_frames_of_another_domain_or_of_a_former_life_change_nothing(
    shared_domain: LocalDomain, domain_id: str, age: int
) -> None:
    """Without keys anybody on the machine can write them: n2 says goodbye, but in another domain, or long ago."""
    leader = shared_domain.hand_over("n1") or "n1"
    shared_domain.wait_until_up()
    status = shared_domain.status("n1")
    assert status is not None
    n2 = next(node for node in status.nodes if node.name == "n2")
    named = bytes.fromhex(status.domain) if domain_id == "its own" else os.urandom(16)
    frame = frames.pack(FrameKind.PEER, named, b"n2", n2.incarnation - age, PEER_CODEC.encode([Goodbye()]))
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    speaker = context.socket(zmq.DEALER)
    speaker.connect(shared_domain.peer_address("n1"))
    for _ in range(20):
        speaker.send(frame)
    speaker.close(linger=2000)
    context.term()
    with shared_domain.connect("n2") as session, session.join("unmoved") as group:
        assert group.send(b"x").approved
    after = shared_domain.status("n1")
    assert after is not None
    assert (status.epoch, n2) == (after.epoch, next(node for node in after.nodes if node.name == "n2")), leader
