"""What systemd is told: when the node serves, how it is in words, and that rounds really end."""

from __future__ import annotations

import math
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupsvcd.io.notify import (
    EXTEND_EVERY_S,
    LOOK_EVERY_S,
    STATUS_CHARS_MAX,
    Condition,
    NotifySocket,
    Supervision,
    supervision,
)

WAITS = Condition(False, "waits to be let in: the domain is not formed yet: waits for n3")
SERVES = Condition(True, "in the domain")


class Systemd:
    """The other end of the socket, a clock, and how the daemon is."""

    def __init__(self, path: str, watchdog_s: float = math.inf) -> None:
        self.now = 100.0
        self.condition = WAITS
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.listening.bind("\0" + path[1:] if path.startswith("@") else path)
        self.speaking = NotifySocket(path)
        self.daemon = Supervision(self.speaking, lambda: self.condition, clock=lambda: self.now, watchdog_s=watchdog_s)

    def heard(self) -> list[str]:
        """The lines of all datagrams since."""
        found: list[str] = []
        while True:
            try:
                found += self.listening.recv(4096).decode().split("\n")
            except BlockingIOError:
                return found

    def after(self, seconds: float) -> list[str]:
        """The lines that a round at that time says."""
        self.now += seconds
        if self.now >= self.daemon.due:
            self.daemon.attend()
        return self.heard()

    def close(self) -> None:
        self.listening.close()
        self.speaking.close()


@pytest.fixture
def systemd(short_path: Path) -> Iterator[Systemd]:
    made = Systemd(f"{short_path}/notify", watchdog_s=8.0)
    yield made
    made.close()


def test_ready_is_said_once_and_only_when_the_node_serves(systemd: Systemd) -> None:
    assert f"STATUS={WAITS.words}" in systemd.after(0)
    assert [] == systemd.after(LOOK_EVERY_S)
    systemd.condition = SERVES
    assert [f"STATUS={SERVES.words}", "READY=1"] == systemd.after(LOOK_EVERY_S)
    systemd.condition = Condition(False, "suspended: no majority of voters; needs n2 or n3")
    assert ["STATUS=suspended: no majority of voters; needs n2 or n3"] == systemd.after(LOOK_EVERY_S)
    systemd.condition = SERVES
    assert ["STATUS=in the domain", "WATCHDOG=1"] == systemd.after(LOOK_EVERY_S)


def test_who_waits_for_other_voters_asks_for_time_until_it_serves(systemd: Systemd) -> None:
    extend = "EXTEND_TIMEOUT_USEC=30000000"
    assert extend in systemd.after(0)
    assert extend not in systemd.after(EXTEND_EVERY_S - 0.1)
    assert extend in systemd.after(1.1)
    systemd.condition = SERVES
    assert "READY=1" in systemd.after(LOOK_EVERY_S)
    systemd.condition = WAITS
    assert extend not in systemd.after(2 * EXTEND_EVERY_S)


def test_the_watchdog_is_fed_at_half_its_time(systemd: Systemd) -> None:
    fed = [at for at in range(40) if "WATCHDOG=1" in systemd.after(0 if at == 0 else 1.0)]
    assert list(range(0, 40, 4)) == fed


def test_a_word_that_does_not_fit_is_said_again_and_nothing_waits(systemd: Systemd) -> None:
    systemd.condition = SERVES
    filling = 0
    while systemd.speaking.say("X=1"):
        filling += 1
    assert filling
    systemd.daemon.attend()
    assert "READY=1" not in systemd.heard()
    assert [f"STATUS={SERVES.words}", "READY=1", "WATCHDOG=1"] == systemd.after(LOOK_EVERY_S)


def test_nobody_there_does_no_harm(systemd: Systemd, short_path: Path) -> None:
    (short_path / "notify").unlink()
    systemd.daemon.attend()
    systemd.daemon.stopping("ends")
    assert [] == systemd.heard()


def test_a_reload_is_announced_with_its_time_and_ends_ready(systemd: Systemd) -> None:
    systemd.daemon.reloading()
    assert [] == systemd.heard()  # not yet ready: to say READY=1 after it would be a lie
    systemd.condition = SERVES
    systemd.after(0)
    systemd.daemon.reloading()
    systemd.daemon.reloaded()
    first, monotonic, last = systemd.heard()
    assert ("RELOADING=1", "READY=1") == (first, last)
    assert int(monotonic.removeprefix("MONOTONIC_USEC=")) > 0


def test_what_others_say_cannot_become_a_line_of_its_own(systemd: Systemd) -> None:
    systemd.condition = Condition(False, "n2 says:\nREADY=1\n" + "x" * 10_000)
    lines = systemd.after(0)
    assert "READY=1" not in lines
    assert STATUS_CHARS_MAX + len("STATUS=") == len(lines[0])


def test_the_abstract_name_space_is_spoken_to(short_path: Path) -> None:
    made = Systemd(f"@groupsvc{short_path}")
    assert f"STATUS={WAITS.words}" in made.after(0)
    made.close()


@pytest.mark.parametrize(
    "usec, meant, fed",
    [("4000000", "", True), ("4000000", "7", True), ("4000000", "8", False), ("0", "7", False), ("no", "7", False)],
)
def test_the_watchdog_of_another_process_is_not_fed(usec: str, meant: str, fed: bool, short_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"{short_path}/notify")
        environment = {"NOTIFY_SOCKET": f"{short_path}/notify", "WATCHDOG_USEC": usec, "WATCHDOG_PID": meant, "A": "b"}
        made = supervision(environment, 7, lambda: SERVES, lambda: 0.0)
        assert {"A": "b"} == environment
        assert made is not None
        made.attend()
        assert fed == (b"WATCHDOG=1" in listening.recv(4096))


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "notify"])
def test_without_a_socket_nothing_is_said(address: str) -> None:
    assert supervision({"NOTIFY_SOCKET": address}, 7, lambda: SERVES, lambda: 0.0) is None
