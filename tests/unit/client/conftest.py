"""A machine and a daemon in memory, connected and open."""

from __future__ import annotations

import pytest

from tests.unit.client.daemon_in_memory import DaemonInMemory, Line
from tests.unit.client.scenes import new_machine


@pytest.fixture
def line() -> Line:
    """An open session at time 0."""
    line = Line(new_machine(), DaemonInMemory())
    line.connect()
    return line
