"""A machine and a daemon in memory, connected and open; and the same with a socket between them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import groupsvc
from tests.unit.client.daemon_in_memory import DaemonInMemory, Line
from tests.unit.client.daemon_on_a_socket import DaemonOnASocket, daemon_on_a_socket
from tests.unit.client.scenes import new_machine


@pytest.fixture
def line() -> Line:
    """An open session at time 0."""
    line = Line(new_machine(), DaemonInMemory())
    line.connect()
    return line


@pytest.fixture
def daemon() -> Iterator[DaemonOnASocket]:
    """On a thread of its own."""
    with daemon_on_a_socket() as daemon:
        yield daemon


@pytest.fixture
def session(daemon: DaemonOnASocket) -> Iterator[groupsvc.Session]:
    """A blocking one with it."""
    with groupsvc.connect(daemon.address, name="test") as session:
        yield session


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """The errors that ``threading.excepthook`` was told of."""
    errors: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: errors.append(args.exc_value))
    return errors
