"""What a peer that was stopped costs those who go on sending to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupsvc.testing.loopback_ports import PortBlock
from groupsvc.wire.limits import FRAME_BYTES_USUAL
from groupsvcd.core.peer_messages import topic_of
from groupsvcd.io import clocks
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.peers import Peers
from groupsvcd.io.sockets import new_context
from groupsvcd.io.watch import Watch

ROOT = Path(__file__).parents[2]
TOPIC = topic_of(7)
COST_BYTES_MAX = 64 * 1024 * 1024
FLOOD_S = 2.0
"""Shorter than the time after which the connection to the stopped one is given up."""

READER = """
import sys, zmq
sys.path[:0] = {paths!r}
from groupsvcd.io.sockets import new_context
from groupsvcd.io import clocks
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.peers import Peers
from groupsvcd.io.watch import Watch

name, voters = sys.argv[1], dict(part.split("=") for part in sys.argv[2:])
peers = Peers(
    new_context(), node=name, address=voters[name], voters=voters, watch=Watch(), clock=clocks.now,
    refused=lambda _: None, complaints=Complaints(clocks.now), queue_frames=96, insecure=False,
)
peers.subscribe({topic!r})
while True:
    zmq.select([peers.router, peers.subscriber], [], [])
    for frame in peers.receive(256):
        print(bytes(frame[:8]).hex(), flush=True)
"""


class Reader:
    """A process that reads what comes to its node and says how each frame begins."""

    def __init__(self, name: str, voters: dict[str, str]) -> None:
        code = READER.format(paths=[str(ROOT), str(ROOT / "daemon")], topic=TOPIC)
        command = [sys.executable, "-c", code, name, *(f"{voter}={address}" for voter, address in voters.items())]
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(command, stdout=self._said)

    def has_read(self) -> set[bytes]:
        self._said.seek(0)
        return {bytes.fromhex(line.decode()) for line in self._said.read().split(b"\n")[:-1]}

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._said.close()


class Three:
    """We are a and send; b and c are processes that read."""

    def __init__(self, voters: dict[str, str]) -> None:
        self.b, self.c = Reader("b", voters), Reader("c", voters)
        self.context = new_context()
        self.watch = Watch()
        self.a = Peers(
            self.context, node="a", address=voters["a"], voters=voters, watch=self.watch, clock=clocks.now,
            refused=lambda _: None, complaints=Complaints(clocks.now), queue_frames=96, insecure=False,
        )  # fmt: skip

    def until_connected(self) -> None:
        until = time.monotonic() + 20
        wanted = {b"hello to", b"hello al"}
        while not (wanted <= self.b.has_read() and wanted <= self.c.has_read()):
            assert time.monotonic() < until
            for name in "bc":
                self.a.send(name, b"hello to you")
            self.a.multicast(TOPIC + b"hello all")
            time.sleep(0.02)

    def end(self) -> None:
        self.b.end()
        self.c.end()
        self.a.close()
        self.watch.close()
        self.context.destroy(linger=0)


@pytest.fixture
def three() -> Iterator[Three]:
    blocks = {name: PortBlock() for name in "abc"}
    made = Three({name: block.address for name, block in blocks.items()})
    yield made
    made.end()
    for block in blocks.values():
        block.close()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("times", [1, 4], ids=["usual frames", "large frames"])
def test_a_stopped_receiver_costs_a_bounded_amount_and_harms_nobody_else(three: Three, times: int) -> None:
    """b is stopped while a sends to it and multicasts as fast as it can: 64 MiB at most; c goes on reading."""
    three.until_connected()
    before = resident_bytes()
    os.kill(three.b.process.pid, signal.SIGSTOP)
    size = times * FRAME_BYTES_USUAL
    until, most, sent = time.monotonic() + FLOOD_S, 0, 0
    while time.monotonic() < until:
        sent += 1
        mark = b"%08d" % sent
        three.a.multicast(TOPIC + mark + bytes(size - len(mark)))
        three.a.send("b", mark + bytes(size - len(mark)))
        three.a.send("c", mark)
        most = max(most, resident_bytes() - before)
        time.sleep(0.002)
    assert sent * size > 2 * COST_BYTES_MAX
    assert COST_BYTES_MAX >= most
    three.a.send("c", b"the last one")
    while b"the last" not in three.c.has_read():
        assert time.monotonic() < until + 20
        time.sleep(0.02)
        three.a.send("c", b"the last one")
