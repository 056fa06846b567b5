"""A daemon that is not in the domain says in its log what it waits for."""

from __future__ import annotations

import logging

import pytest

from groupsvcd.io.notify import Condition
from groupsvcd.io.waiting import AGAIN_S, CHANGED_S, PATIENCE_S, Waiting


class Daemon:
    """One whose clock and condition a test decides."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.WARNING)
        self._caplog = caplog
        self.now = 100.0
        self.condition = Condition(False, "waits for n2")
        self.waiting = Waiting(lambda: self.condition, lambda: self.now)

    def says_until(self, until: float) -> list[str]:
        """What it says from now on, looked at whenever it is due."""
        self._caplog.clear()
        while self.now < until:
            self.waiting.attend()
            self.now = self.waiting.due
        assert {"waiting"} >= {record.event for record in self._caplog.records}  # type: ignore[attr-defined]
        return [record.getMessage() for record in self._caplog.records]


@pytest.fixture
def daemon(caplog: pytest.LogCaptureFixture) -> Daemon:
    return Daemon(caplog)


def test_who_is_let_in_soon_says_nothing(daemon: Daemon) -> None:
    assert [] == daemon.says_until(100.0 + PATIENCE_S)
    daemon.condition = Condition(True, "in the domain")
    assert [] == daemon.says_until(1_000.0)


def test_who_waits_says_for_what_and_says_it_again_once_in_a_while(daemon: Daemon) -> None:
    assert ["waits for n2"] == daemon.says_until(100.0 + AGAIN_S)
    assert ["waits for n2"] == daemon.says_until(100.0 + 2 * AGAIN_S)


def test_another_reason_is_said_though_not_with_every_second(daemon: Daemon) -> None:
    assert ["waits for n2"] == daemon.says_until(110.0)
    daemon.condition = Condition(False, "waits for n3")
    assert ["waits for n3"] == daemon.says_until(110.0 + CHANGED_S)


def test_who_was_in_and_waits_again_says_it_again(daemon: Daemon) -> None:
    assert ["waits for n2"] == daemon.says_until(110.0)
    daemon.condition = Condition(True, "in the domain")
    assert [] == daemon.says_until(112.0)
    daemon.condition = Condition(False, "waits for n2")
    assert ["waits for n2"] == daemon.says_until(120.0)
