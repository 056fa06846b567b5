"""What a peer that was stopped costs those who go on sending to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groupsvc.drivers import dead_links
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
GIVE_UP_MS = 600_000
"""No stopped peer is given up before the end: what waits for it would be free again, and on a slow machine too soon."""

AHEAD = 8
"""So many are sent before the one that reads has read them: it is to be harmed by the stopped one, not by us."""

PATIENCE_S = 120.0

READER = """
import sys, zmq
sys.path[:0] = {paths!r}
from groupsvcd.io.sockets import new_context
from groupsvc.drivers import dead_links
from groupsvcd.io import clocks
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.peers import Peers
from groupsvcd.io.watch import Watch

dead_links.DEAD_LINK_MS = {give_up_ms}
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
        code = READER.format(paths=[str(ROOT), str(ROOT / "daemon")], topic=TOPIC, give_up_ms=GIVE_UP_MS)
        command = [sys.executable, "-c", code, name, *(f"{voter}={address}" for voter, address in voters.items())]
        self._said = tempfile.NamedTemporaryFile("ab")  # noqa: SIM115  # read by its name: else both share one offset
        self.process = subprocess.Popen(command, stdout=self._said)

    def has_read(self) -> set[bytes]:
        said = Path(self._said.name).read_bytes()
        return {bytes.fromhex(line.decode()) for line in said.split(b"\n")[:-1]}

    def wait_for(self, *wanted: bytes, repeat: Callable[[], object] = lambda: None) -> None:
        until = time.monotonic() + PATIENCE_S
        while not set(wanted) <= self.has_read():
            assert time.monotonic() < until
            repeat()
            time.sleep(0.002)

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
        for reader in (self.b, self.c):
            reader.wait_for(b"hello to", b"hello al", repeat=self._greet)

    def _greet(self) -> None:
        for name in "bc":
            self.a.send(name, b"hello to you")
        self.a.multicast(TOPIC + b"hello all")

    def end(self) -> None:
        self.b.end()
        self.c.end()
        self.a.close()
        self.watch.close()
        self.context.destroy(linger=0)


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Iterator[Three]:
    monkeypatch.setattr(dead_links, "DEAD_LINK_MS", GIVE_UP_MS)
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
    """b is stopped while a sends to it and multicasts, far more than 64 MiB: it costs 64 at most; c goes on reading."""
    three.until_connected()
    before = resident_bytes()
    os.kill(three.b.process.pid, signal.SIGSTOP)
    size = times * FRAME_BYTES_USUAL
    most, sent = 0, 0
    while sent * size <= 2 * COST_BYTES_MAX:
        sent += 1
        mark = b"%08d" % sent
        three.a.multicast(TOPIC + mark + bytes(size - len(mark)))
        three.a.send("b", mark + bytes(size - len(mark)))
        three.a.send("c", mark)
        most = max(most, resident_bytes() - before)
        if sent % AHEAD == 0:
            three.c.wait_for(mark)
    assert COST_BYTES_MAX >= most
    three.c.wait_for(b"the last", repeat=lambda: three.a.send("c", b"the last one"))
