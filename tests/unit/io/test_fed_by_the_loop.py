"""The watchdog is fed by the loop that does the work: while only the loop hangs, nobody feeds it.

A process that is stopped as a whole says nothing whoever feeds, so that shows nothing about who does.
"""

from __future__ import annotations

import math
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from groupsvcd.core import effects as fx
from groupsvcd.core.events import Event
from groupsvcd.io import clocks
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.notify import Condition, NotifySocket, Supervision
from groupsvcd.io.reactor import EXIT_HALTED, Reactor
from groupsvcd.io.watch import Watch

FED = b"WATCHDOG=1"
WATCHDOG_S = 0.1
PATIENCE_S = 20.0


@attrs.define
class Hanging:
    """An engine that does not return from its first step before it is told to; the second one ends the loop."""

    deadline: float = math.inf
    incarnation: int = 1
    domain: bytes = bytes(16)
    hangs: threading.Event = attrs.field(factory=threading.Event)
    goes_on: threading.Event = attrs.field(factory=threading.Event)

    def start(self, now: float) -> list[fx.Effect]:
        return []

    def step(self, event: Event, now: float) -> list[fx.Effect]:
        if self.hangs.is_set():
            return [fx.Halt("enough")]
        self.deadline = math.inf
        self.hangs.set()
        assert self.goes_on.wait(PATIENCE_S)
        return []


@pytest.fixture
def systemd(short_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"{short_path}/notify")
        yield listening


def is_fed(systemd: socket.socket, within: float) -> bool:
    """Whether the watchdog is fed in this time."""
    until = clocks.now() + within
    while (left := until - clocks.now()) > 0:
        systemd.settimeout(left)
        try:
            if FED in systemd.recv(4096).split(b"\n"):
                return True
        except TimeoutError:
            pass
    return False


def test_a_loop_that_hangs_feeds_no_watchdog_though_other_threads_run(systemd: socket.socket, short_path: Path) -> None:
    """OPS-01."""
    engine, watch = Hanging(), Watch()
    reactor = Reactor(engine, "n1", watch=watch, complaints=Complaints(clocks.now))
    speaking = NotifySocket(f"{short_path}/notify")
    reactor.attended_by(
        Supervision(speaking, lambda: Condition(True, "serves"), clock=clocks.now, watchdog_s=WATCHDOG_S)
    )
    ended: list[int] = []
    loop = threading.Thread(target=lambda: ended.append(reactor.run()))
    loop.start()
    assert all(is_fed(systemd, within=PATIENCE_S) for _ in range(3)), "it goes round and feeds"
    engine.deadline = 0.0
    assert engine.hangs.wait(PATIENCE_S)
    while is_fed(systemd, within=0.01):
        pass  # what it had said before
    assert not is_fed(systemd, within=5 * WATCHDOG_S), "somebody feeds, and it is not the loop"
    engine.goes_on.set()
    assert is_fed(systemd, within=PATIENCE_S), "it goes round again and feeds"
    engine.deadline = 0.0
    loop.join(PATIENCE_S)
    assert [EXIT_HALTED] == ended
    reactor.close(EXIT_HALTED)
    speaking.close()
    watch.close()
