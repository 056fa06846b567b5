"""A program that floods its daemon is a nuisance to itself: the others are served, and the node keeps its lease."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

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
