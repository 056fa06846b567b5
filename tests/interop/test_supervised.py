"""A real daemon under a supervisor that speaks the protocol of systemd: readiness, watchdog, reload, the end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupsvc.testing.local_node import environment, to_toml

PATIENCE_S = 20.0
WATCHDOG_S = 0.4


class Supervisor:
    """Starts daemons as systemd does, and hears what they say."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._heard.bind(str(directory / "notify"))
        self._started: list[subprocess.Popen[bytes]] = []
        self.log = directory / "log"

    def start(self, settings: dict[str, object], name: str = "n1") -> subprocess.Popen[bytes]:
        """A daemon with these settings, supervised."""
        self.write(settings, name)
        variables = {
            **environment(),
            "NOTIFY_SOCKET": str(self._directory / "notify"),
            "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6)),
            "RUNTIME_DIRECTORY": str(self._directory / name),
        }
        variables.pop("WATCHDOG_PID", None)
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "groupsvcd", "--config", str(self._directory / f"{name}.toml")]
            self._started.append(subprocess.Popen(command, env=variables, stderr=log))
        return self._started[-1]

    def write(self, settings: dict[str, object], name: str = "n1") -> None:
        """Its configuration, from now on."""
        (self._directory / f"{name}.toml").write_text(to_toml({"node": name, **settings}))  # type: ignore[dict-item]

    def until(self, word: str) -> list[str]:
        """Every line up to the first that begins with ``word``."""
        lines: list[str] = []
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            lines += self.within(end - time.monotonic())
            found = [place for place, line in enumerate(lines) if line.startswith(word)]
            if found:
                return lines[: found[0] + 1]
        raise AssertionError(f"{word} was not said; said was {lines}, and logged:\n{self.log.read_text()}")

    def within(self, seconds: float) -> list[str]:
        """The lines of the next datagram; none if nobody says anything for so long."""
        self._heard.settimeout(max(seconds, 1e-3))
        try:
            return self._heard.recv(4096).decode().split("\n")
        except TimeoutError:
            return []

    def all_there_is(self) -> None:
        """Forget what was said so far."""
        while self.within(1e-3):
            pass

    def close(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
        self._heard.close()


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    with tempfile.TemporaryDirectory(prefix="gs-") as directory, contextlib.closing(Supervisor(Path(directory))) as one:
        yield one


def test_a_daemon_is_ready_when_it_serves_and_feeds_the_watchdog_while_it_runs(supervisor: Supervisor) -> None:
    """OPS-01: a process that stands still feeds nobody, so systemd restarts it."""
    process = supervisor.start({})
    supervisor.until("READY=1")
    for _ in range(3):
        supervisor.until("WATCHDOG=1")
    os.kill(process.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    supervisor.all_there_is()
    assert [] == supervisor.within(3 * WATCHDOG_S)
    os.kill(process.pid, signal.SIGCONT)
    supervisor.until("WATCHDOG=1")
    process.send_signal(signal.SIGTERM)
    supervisor.until("STOPPING=1")
    assert 0 == process.wait(PATIENCE_S)


def test_a_voter_that_waits_for_the_others_says_so_asks_for_time_and_is_not_ready(supervisor: Supervisor) -> None:
    directory = supervisor.log.parent
    voters = {f"n{number}": f"ipc://{directory}/n{number}.peer" for number in (1, 2, 3)}
    settings = {"voters": voters}
    supervisor.start({**settings, "state_directory": str(directory / "s1")})
    said = supervisor.until("EXTEND_TIMEOUT_USEC=") + supervisor.until("WATCHDOG=1")
    assert "READY=1" not in said
    assert any(line.startswith("STATUS=waits to be let in: the domain is not formed yet") for line in said)
    for number in (2, 3):
        supervisor.start({**settings, "state_directory": str(directory / f"s{number}")}, f"n{number}")
    for _ in range(3):
        supervisor.until("READY=1")


def test_sighup_reads_the_file_again(supervisor: Supervisor) -> None:
    process = supervisor.start({"log_level": "info"})
    supervisor.until("READY=1")
    supervisor.write({"log_level": "warning", "domain": "other"})
    process.send_signal(signal.SIGHUP)
    supervisor.until("RELOADING=1")
    supervisor.until("READY=1")
    log = supervisor.log.read_text()
    assert "domain has changed in the configuration and needs a restart" in log
    supervisor.write({"log_level": "loud", "colour": 1})
    process.send_signal(signal.SIGHUP)
    supervisor.until("RELOADING=1")
    supervisor.until("READY=1")
    process.send_signal(signal.SIGTERM)
    assert 0 == process.wait(PATIENCE_S)
    log = supervisor.log.read_text()
    assert 2 == log.count("not reloaded: ")
    assert "stopping on SIGTERM" not in log  # an information, and those were turned off
