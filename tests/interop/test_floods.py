"""Who floods a daemon is a nuisance to itself: others are served, and the node keeps its lease.

A program, and a node that has a key: what one connection sends is read by turns with all others, some frames at a time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from groupsvc.drivers.connection import DaemonConnection
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import environment

LATENCY_S_MAX = 0.5
"""Of the slowest of a hundred messages while somebody floods; without a flood it is some milliseconds."""

FLOOD = """
import os, sys, zmq
from groupsvc.wire import frames
from groupsvc.wire.client_messages import REQUEST_CODEC, Hello, StatusAsk
from groupsvc.wire.kinds import FrameKind

address, requests, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

def frame(*said):
    return frames.pack(FrameKind.CLIENT_REQUEST, bytes(16), b"client", os.getpid(), REQUEST_CODEC.encode(said))

socket = zmq.Context().socket(zmq.DEALER)
socket.connect(address)
socket.send(frame(Hello(1, 1, 1, "flood")))
socket.recv()
flood = frame(*(StatusAsk(number) for number in range(requests)))
garbage = bytes(size)
print("begun", flush=True)
while True:
    socket.send(garbage if size else flood)
    while socket.poll(0):
        socket.recv()
"""

FLOODS = {"small frames": (1, 0), "many requests in a frame": (50_000, 0), "large frames of garbage": (0, 2_000_000)}


@contextmanager
def flooded(address: str, requests: int, size: int) -> Iterator[None]:
    program = [sys.executable, "-c", FLOOD, address, str(requests), str(size)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment()) as flooding:
        try:
            assert flooding.stdout is not None
            assert "begun\n" == flooding.stdout.readline()
            yield
            assert flooding.poll() is None, "it still floods"
        finally:
            flooding.kill()


@pytest.mark.alone
@pytest.mark.parametrize("kind", FLOODS)
def test_others_are_served_while_one_floods(kind: str) -> None:
    with LocalDomain(nodes=3) as domain:
        leader = domain.wait_for_name_server()
        with (
            domain.connect(leader) as session,
            session.join("served") as group,
            flooded(domain.address(leader), *FLOODS[kind]),
        ):
            took = []
            for _ in range(100):
                began = time.monotonic()
                group.send(b"x", timeout=10)
                took.append(time.monotonic() - began)
            assert max(took) < LATENCY_S_MAX, f"{sorted(took)[-5:]}"
        assert leader == domain.wait_for_name_server(), "nobody was declared down over it"
        print(f"{kind}: slowest {max(took) * 1000:.0f} ms, middle {sorted(took)[50] * 1000:.1f} ms; pid {os.getpid()}")


# --- A node --------------------------------------------------------------------------------------------------

ANSWER_S_MAX = 1.0
"""Of a status, and of a message, while a listed node floods."""

FLOODED_S = 3.0

NODE_FLOOD = """
import sys, zmq
from groupsvc.drivers import curve
from groupsvc.keys import Keys
from groupsvc.wire import frames
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.peer_messages import PEER_CODEC, NodeListAsk

address, own, server, domain, name, incarnation = sys.argv[1:]
socket = zmq.Context().socket(zmq.DEALER)
curve.show(socket, Keys.read(own))
curve.expect(socket, Keys.read(server).public)
socket.connect(address)
body = PEER_CODEC.encode([NodeListAsk(0)])
frame = frames.pack(FrameKind.PEER, bytes.fromhex(domain), name.encode(), int(incarnation), body)
for _ in range(1000):
    socket.send(frame)
print("begun", flush=True)
while True:
    socket.send(frame)
"""


@contextmanager
def flooded_by_node(domain: LocalDomain, flooding: str, flooded: str) -> Iterator[None]:
    """Another process with the key of ``flooding`` sends what that node may send, as fast as it can."""
    status = domain.status(flooded)
    assert status is not None
    incarnation = next(node.incarnation for node in status.nodes if node.name == flooding)
    keys = [str(domain.directory / f"{name}.key") for name in (flooding, flooded)]
    program = [sys.executable, "-c", NODE_FLOOD, domain.peer_address(flooded), *keys, status.domain, flooding]
    with subprocess.Popen([*program, str(incarnation)], stdout=subprocess.PIPE, text=True, env=environment()) as sender:
        try:
            assert sender.stdout is not None
            assert "begun\n" == sender.stdout.readline()
            yield
            assert sender.poll() is None, "it still floods"
        finally:
            sender.kill()


def frames_received(domain: LocalDomain, name: str) -> int:
    """From all nodes, as the daemon counts them."""
    with DaemonConnection(domain.address(name), 10.0, client="test") as connection:
        return int(connection.statistics().parts["peers"]["frames_received"])


@pytest.mark.alone
def test_programs_are_served_while_a_listed_node_floods() -> None:
    """Valid small frames, each of which wants an answer: the daemon reads some of each source, then serves the next."""
    with LocalDomain(nodes=4, voters=3, keys=True) as domain:
        domain.wait_until_up()
        leader = domain.wait_for_name_server()
        with domain.connect(leader) as session, session.join("served") as group, flooded_by_node(domain, "n4", leader):
            took: list[float] = []
            before = frames_received(domain, leader)
            until = time.monotonic() + FLOODED_S
            while (began := time.monotonic()) < until:
                assert domain.status(leader) is not None
                group.send(b"x", timeout=10)
                took.append(time.monotonic() - began)
            assert frames_received(domain, leader) - before > 1000, "they were read, and not only queued"
            assert max(took) < ANSWER_S_MAX, f"{sorted(took)[-5:]}"
        assert leader == domain.wait_for_name_server(), "nobody was declared down over it"
