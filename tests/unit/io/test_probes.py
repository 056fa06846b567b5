"""Knocking: a refusal is told again and again, anything else once and for all not."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupsvc.testing.loopback_ports import PortBlock
from groupsvcd.io.probes import AGAIN_S, FIRST_S, OFTEN_S, RARELY_S, Probes
from tests.unit.io.conftest import Loop


class Bench:
    """Probes with a clock to turn."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.now = 100.0
        self.refused: list[str] = []
        self.probes = Probes(loop.watch, lambda: self.now, self.refused.append)

    def turn_to_deadline(self) -> float:
        """Let the next thing happen; how long it took."""
        waited = self.probes.deadline - self.now
        self.now = self.probes.deadline
        self.probes.run()
        return waited


@pytest.fixture
def bench(loop: Loop) -> Iterator[Bench]:
    made = Bench(loop)
    yield made
    made.probes.close()


def test_nothing_is_done_while_nothing_broke(bench: Bench) -> None:
    assert math.inf == bench.probes.deadline


@pytest.mark.parametrize("kind", ["missing", "stale"])
def test_a_socket_file_without_a_listener_refuses(bench: Bench, short_path: Path, kind: str) -> None:
    path = short_path / "peer"
    if kind == "stale":
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(path))
        dead.close()
    bench.probes.connection_broke("b", f"ipc://{path}")
    assert FIRST_S == pytest.approx(bench.turn_to_deadline())
    assert ["b"] == bench.refused
    assert AGAIN_S == pytest.approx(bench.turn_to_deadline())
    assert ["b", "b"] == bench.refused


def test_a_closed_port_refuses(bench: Bench) -> None:
    block = PortBlock()
    bench.probes.connection_broke("b", block.address)
    bench.turn_to_deadline()
    assert bench.loop.until(lambda: bench.refused)
    assert ["b"] == bench.refused
    block.close()


def test_after_a_while_knocking_becomes_rare(bench: Bench, short_path: Path) -> None:
    bench.probes.connection_broke("b", f"ipc://{short_path}/none")
    waits = [bench.turn_to_deadline() for _ in range(40)]
    assert AGAIN_S == pytest.approx(waits[5])
    assert RARELY_S == pytest.approx(waits[-1])
    assert OFTEN_S == pytest.approx(sum(wait for wait in waits if wait < RARELY_S / 2), abs=2 * AGAIN_S)


@pytest.mark.parametrize("scheme", ["ipc", "tcp"])
def test_a_paused_process_still_accepts_and_is_left_alone(bench: Bench, short_path: Path, scheme: str) -> None:
    """Nobody calls accept here, as in a stopped process."""
    paused = socket.socket(socket.AF_UNIX if scheme == "ipc" else socket.AF_INET)
    paused.bind(f"{short_path}/peer" if scheme == "ipc" else ("127.0.0.1", 0))
    paused.listen(1)
    address = f"ipc://{short_path}/peer" if scheme == "ipc" else f"tcp://127.0.0.1:{paused.getsockname()[1]}"
    bench.probes.connection_broke("b", address)
    bench.turn_to_deadline()
    assert bench.loop.until(lambda: math.inf == bench.probes.deadline)
    assert [] == bench.refused
    paused.close()


def test_a_knock_without_an_answer_is_given_up(bench: Bench) -> None:
    """Packets that are lost say nothing about the process."""
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    waiting = []
    for _ in range(4):  # the kernel takes one or two more than it was told, then answers nobody
        other = socket.socket()
        other.setblocking(False)
        other.connect_ex(full.getsockname())
        waiting.append(other)
    bench.probes.connection_broke("b", f"tcp://127.0.0.1:{full.getsockname()[1]}")
    bench.turn_to_deadline()
    bench.loop.watch.run()
    while bench.probes.deadline < math.inf:
        bench.turn_to_deadline()
    assert [] == bench.refused
    for opened in [full, *waiting]:
        opened.close()


def test_breaking_again_while_knocking_changes_nothing(bench: Bench, short_path: Path) -> None:
    for _ in range(5):
        bench.probes.connection_broke("b", f"ipc://{short_path}/none")
    bench.turn_to_deadline()
    assert ["b"] == bench.refused


def test_who_is_forgotten_is_not_knocked_at(bench: Bench, short_path: Path) -> None:
    bench.probes.connection_broke("b", f"ipc://{short_path}/none")
    bench.probes.forget("b")
    assert math.inf == bench.probes.deadline
