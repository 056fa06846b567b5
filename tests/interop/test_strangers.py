"""What does not belong here is refused with a reason: other domains, other settings, garbage."""

from __future__ import annotations

import os
import random
import socket
import struct
from collections.abc import Callable

import pytest
import zmq

from groupsvc.drivers.connection import DaemonConnection
from groupsvc.testing import LocalDomain
from groupsvc.wire import frames
from groupsvc.wire.client_messages import REQUEST_CODEC, LookUpAsk, StatusAsk
from groupsvc.wire.kinds import FrameKind
from groupsvc.wire.limits import FRAME_BYTES_MAX


def test_two_domains_on_one_machine_do_not_mix(shared_domain: LocalDomain) -> None:
    """Same node names, even the same domain name: the random domain id keeps them apart."""
    with LocalDomain(nodes=3, name="shared") as other:
        before = {domain: ids(domain) for domain in (shared_domain, other)}
        assert ids(shared_domain).isdisjoint(ids(other))
        with DaemonConnection(other.address("n1")) as connection:
            connection.look_up("only-in-the-other", form=True)
        with DaemonConnection(shared_domain.address("n1")) as connection:
            assert not connection.look_up("only-in-the-other").exists
        assert before == {domain: ids(domain) for domain in (shared_domain, other)}


@pytest.mark.parametrize("other_name", ["elsewhere", "shared"])
def test_a_node_pointed_at_two_domains_stays_out_of_one(shared_domain: LocalDomain, other_name: str) -> None:
    """A node of the other domain has one of our voters in its list: neither domain is disturbed by it."""
    with LocalDomain(nodes=3, name=other_name) as other:
        mixed = {name: other.peer_address(name) for name in ("n1", "n2")}
        mixed["n3"] = shared_domain.peer_address("n3")
        epochs = epoch(shared_domain), epoch(other)
        other.add("n4", wait=False, settings={"voters": mixed})
        other.wait_until(lambda: answers(other, "n4") or other.exit_code("n4") is not None, "n4 has begun")
        for domain in (shared_domain, other):
            with DaemonConnection(domain.address("n1")) as connection:
                connection.look_up("undisturbed", form=True)
            domain.wait_until_up("n1", "n2", "n3")
        assert (epoch(shared_domain), epoch(other)) == epochs
        assert not is_up(shared_domain, "n4")


def test_a_node_with_another_setting_is_told_which_and_whose(shared_domain: LocalDomain) -> None:
    """MSG-13: the error names the parameter, both values and both nodes."""
    shared_domain.add("n6", wait=False, settings={"timers": {"lease": 7.5}})
    try:
        leader = shared_domain.wait_for_name_server()

        def told() -> bool:
            status = shared_domain.status("n6")
            words = shared_domain.logs("n6") + ("" if status is None else status.trouble)
            return all(part in words for part in ("timers.lease", "7.5", "2.0", "n6", leader))

        shared_domain.wait_until(told, "n6 was told what differs")
        assert not is_up(shared_domain, "n6")
    finally:
        shared_domain.remove("n6")


# --- Garbage --------------------------------------------------------------------------------------------

DICE = random.Random(20)
VALID = frames.pack(FrameKind.PEER, bytes(16), b"n9", 1, b"\x90")
GARBAGE: list[bytes] = [
    b"",
    b"\0",
    b"GSVC",
    b"GET / HTTP/1.1\r\n\r\n",
    DICE.randbytes(39),
    DICE.randbytes(4096),
    *(VALID[:size] for size in (1, 7, 39, len(VALID) - 1)),
    VALID + b"\0",
    VALID[:12] + struct.pack("!I", 2**32 - 1) + VALID[16:],
    frames.pack(FrameKind.PEER, bytes(16), b"n9", 1, DICE.randbytes(500)),
    frames.pack(FrameKind.PEER, bytes(16), b"n1", 2**63, b"\x91" * 5000),
    frames.pack(FrameKind.PEER, b"\xff" * 16, b"\xff\xfe", 1, b"\x90"),
    frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"client", 1, b"\xdd\xff\xff\xff\xff"),
    frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"client", 1, REQUEST_CODEC.encode([StatusAsk(1)])),
    frames.pack(
        FrameKind.CLIENT_REQUEST, bytes(16), b"client", 1, REQUEST_CODEC.encode([LookUpAsk(-1, "x" * 9999, True, -1.0)])
    ),
    frames.pack(FrameKind.CLIENT_REPLY, bytes(16), b"client", 1, b"\x90"),
]


def throw_frames(kind: int, address: str) -> None:
    """ZeroMQ messages with garbage in them, with too many parts, and one beyond the limit."""
    context = zmq.Context()
    thrower = context.socket(kind)
    thrower.setsockopt(zmq.LINGER, 2000)
    thrower.setsockopt(zmq.SNDTIMEO, 5000)
    thrower.connect(address)
    try:
        for garbage in GARBAGE:
            thrower.send(garbage)
            if kind == zmq.DEALER:
                thrower.send_multipart([garbage, garbage, b""])
        thrower.send(bytes(FRAME_BYTES_MAX + 1))
    finally:
        thrower.close()
        context.term()


def throw_bytes(family: socket.AddressFamily, target: str | tuple[str, int]) -> None:
    """Bytes that are not even ZeroMQ, a greeting cut short, and connections that say nothing."""
    silent = [socket.socket(family, socket.SOCK_STREAM) for _ in range(20)]
    for one in silent:
        one.connect(target)
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
    for garbage in (*GARBAGE, greeting[:20], greeting, greeting + os.urandom(300)):
        with socket.socket(family, socket.SOCK_STREAM) as one:
            one.settimeout(2.0)
            one.connect(target)
            try:
                one.sendall(garbage)
                one.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # cut off in the middle of it: that is an answer, too
    for one in silent:
        one.close()


def _peer(domain: LocalDomain, offset: int) -> tuple[str, int]:
    host, _, port = domain.peer_address("n1").removeprefix("tcp://").rpartition(":")
    return host, int(port) + offset


ATTACKS: dict[str, Callable[[LocalDomain], None]] = {
    "frames to the router": lambda domain: throw_frames(zmq.DEALER, domain.peer_address("n1")),
    "frames to the publisher": lambda domain: throw_frames(zmq.XSUB, "tcp://{}:{}".format(*_peer(domain, 1))),
    "frames to the client socket": lambda domain: throw_frames(zmq.DEALER, domain.address("n1")),
    "bytes to the router": lambda domain: throw_bytes(socket.AF_INET, _peer(domain, 0)),
    "bytes to the publisher": lambda domain: throw_bytes(socket.AF_INET, _peer(domain, 1)),
    "bytes to the client socket": lambda domain: throw_bytes(
        socket.AF_UNIX, domain.address("n1").removeprefix("ipc://")
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_garbage_changes_nothing(shared_domain: LocalDomain, attack: str) -> None:
    """The daemon goes on serving, nobody is declared down, and no election is held over it."""
    shared_domain.hand_over("n1")  # the one with the most to lose
    shared_domain.wait_until_up()
    pid, before = shared_domain.pid("n1"), epoch(shared_domain)
    ATTACKS[attack](shared_domain)
    with DaemonConnection(shared_domain.address("n1")) as connection:
        assert connection.look_up("after-" + attack.replace(" ", "-"), form=True).formed
    assert shared_domain.pid("n1") == pid
    shared_domain.wait_until_up()
    assert epoch(shared_domain) == before


# --- Words of this file ---------------------------------------------------------------------------------


def ids(domain: LocalDomain) -> set[str]:
    """The domain ids that the nodes of ``domain`` name; one, if all is well."""
    return {status.domain for status in map(domain.status, ("n1", "n2", "n3")) if status is not None}


def epoch(domain: LocalDomain) -> int:
    status = domain.status(domain.wait_for_name_server())
    assert status is not None
    return status.epoch


def answers(domain: LocalDomain, name: str) -> bool:
    return domain.status(name) is not None


def is_up(domain: LocalDomain, name: str) -> bool:
    status = domain.status(domain.wait_for_name_server())
    assert status is not None
    return any(node.name == name and node.status == "up" for node in status.nodes)
