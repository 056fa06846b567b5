"""The daemon as a process: a domain of one from nothing, the exit code of every way to end, a program inside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from groupsvc.drivers.connection import DaemonConnection
from groupsvc.errors import DaemonUnreachable, Failed, UsageError
from groupsvc.wire.table_lines import OptionLine
from groupsvcd.core.peer_messages import DOMAIN_STREAM
from groupsvcd.core.records import CheckpointRecord, NodeRecord
from groupsvcd.io.state_directory import StateDirectory
from groupsvcd.io.store import Store

ROOT = Path(__file__).parents[3]
GATHERED_MAX = 400_000
Start = Callable[..., "Daemon"]


class Daemon:
    """One running groupsvcd and its standard error."""

    def __init__(self, directory: Path, text: str) -> None:
        self.client_address = f"ipc://{directory}/client.sock"
        config = directory / "groupsvcd.toml"
        config.write_text(f'node = "n1"\nclient_address = "{self.client_address}"\n{text}')
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GROUPSVC_")}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "daemon")])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "groupsvcd", "--config", str(config)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )

    def log_until(self, word: str) -> str:
        """The log up to the line with ``word``, or to its end."""
        assert self.process.stderr is not None
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if word in line:
                break
        return "".join(lines)

    def ended(self) -> tuple[int, str]:
        """The exit code and the rest of the log."""
        _, log = self.process.communicate(timeout=30)
        return self.process.returncode, log


@pytest.fixture
def start(short_path: Path) -> Iterator[Start]:
    started: list[Daemon] = []

    def start(text: str = "") -> Daemon:
        started.append(Daemon(short_path, text))
        return started[-1]

    yield start
    for daemon in started:
        daemon.process.kill()
        daemon.process.communicate()


def test_a_domain_of_one_answers_and_ends_on_request(start: Start, short_path: Path) -> None:
    daemon = start()
    assert "ready: groupsvcd" in daemon.log_until("ready")
    with DaemonConnection(daemon.client_address) as connection:
        assert "n1" == connection.status().node
        assert connection.look_up("db", form=True).formed
    daemon.process.send_signal(signal.SIGTERM)
    assert 0 == daemon.ended()[0]
    assert not (short_path / "client.sock").exists()


def test_the_log_can_be_objects_for_programs(start: Start) -> None:
    """OPS-05."""
    daemon = start('log_format = "json"')
    log = daemon.log_until('"event": "rejoined"')
    daemon.process.send_signal(signal.SIGTERM)
    found = [json.loads(line) for line in (log + daemon.ended()[1]).splitlines()]
    events = [one["event"] for one in found]
    assert ("ready", "ended") == (events[0], events[-1])
    assert {"office", "node_up", "rejoined", "stopping"} <= set(events)
    assert all({"time", "level", "node", "event", "text"} <= one.keys() for one in found)
    assert ("SIGTERM", 0) == (found[events.index("stopping")]["signal"], found[-1]["exit_code"])


def test_a_metrics_port_in_use_is_refused_in_words(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, log = start(f'metrics_address = "http://127.0.0.1:{port}"').ended()
    assert 1 == code
    assert f"http://127.0.0.1:{port} cannot be listened at: Address already in use" in log


def test_what_was_acknowledged_survives_kill_9(start: Start, short_path: Path) -> None:
    """S1."""
    text = f'state_directory = "{short_path}/state"'
    daemon = start(text)
    daemon.log_until("ready")
    with DaemonConnection(daemon.client_address) as connection:
        assert connection.config_set("colour", "blue", if_version=0).version > 0
        before = connection.welcome.incarnation
    daemon.process.kill()
    daemon.ended()
    daemon = start(text)
    daemon.log_until("ready")
    with DaemonConnection(daemon.client_address) as connection:
        assert "blue" == connection.config_get("colour").value
        assert connection.welcome.incarnation > before


def test_an_option_of_the_domain_is_done_at_once_and_after_a_restart(start: Start, short_path: Path) -> None:
    """MSG-13. It is in force before the first entry is, from the state directory; the file says otherwise."""
    text = f'state_directory = "{short_path}/state"\nlog_level = "info"'
    daemon = start(text)
    daemon.log_until("ready")
    with DaemonConnection(daemon.client_address) as connection:
        with pytest.raises(UsageError, match="is none of debug, info"):
            connection.config_set("daemon/log_level", "loud", if_version=0)
        first = connection.config_set("daemon/limits.clients_max", "1", if_version=0).version
        assert "limits.clients_max is 1 now" in daemon.log_until("clients_max is 1 now")
        with pytest.raises(Failed, match="takes no more"):
            DaemonConnection(daemon.client_address)
        connection.config_set("daemon/limits.clients_max", "", if_version=first)
        daemon.log_until("clients_max is 1000 now")
        version = connection.config_set("daemon/log_level", "error", if_version=0).version
        until = time.monotonic() + 20
        while (line := _option(connection, "log_level")).version != version:
            assert time.monotonic() < until
        assert ("error", "domain") == (line.value, line.source)
    daemon.process.terminate()  # what waits for the disk is written; who is killed is told again by the domain
    daemon.ended()
    daemon = start(text)
    with _connected_soon(daemon) as connection:
        line = _option(connection, "log_level")
    assert ("error", "domain", version) == (line.value, line.source, line.version)
    daemon.process.send_signal(signal.SIGTERM)
    assert "ready" not in daemon.ended()[1]


def _option(connection: DaemonConnection, key: str) -> OptionLine:
    return next(line for line in connection.options().options if line.key == key)


def _connected_soon(daemon: Daemon) -> DaemonConnection:
    """It logs nothing by which one could see that it is there."""
    until = time.monotonic() + 20
    while True:
        try:
            return DaemonConnection(daemon.client_address)
        except DaemonUnreachable:
            assert time.monotonic() < until


def test_a_state_that_is_whole_and_holds_no_directory_is_refused_with_a_reason(start: Start, short_path: Path) -> None:
    """Its checksums are right, so it was written so."""
    with closing(StateDirectory(short_path / "state")) as directory, closing(Store(directory, "n1")) as store:
        store.write([NodeRecord(5, bytes(16)), CheckpointRecord(DOMAIN_STREAM, 7, b"garbage", 7)])
    code, log = start(f'state_directory = "{short_path}/state"').ended()
    assert 4 == code
    assert "cannot be read: 7 bytes are no snapshot of a directory" in log
    assert "Traceback" not in log


def test_a_second_daemon_is_refused_by_the_state_directory(start: Start, short_path: Path) -> None:
    text = f'state_directory = "{short_path}/state"'
    first = start(text)
    first.log_until("ready")
    code, log = start(text).ended()
    assert 4 == code
    assert f"is in use by pid {first.process.pid}" in log


def test_a_second_daemon_is_refused_by_the_socket(start: Start) -> None:
    daemon = start()
    daemon.log_until("ready")
    code, log = start().ended()
    assert 1 == code
    assert "another process does already" in log
    with DaemonConnection(daemon.client_address) as connection:
        assert "n1" == connection.status().node


def test_a_bad_configuration_has_an_exit_code_of_its_own(start: Start) -> None:
    code, log = start("colour = 1\nlog_level = 2").ended()
    assert 2 == code
    assert 2 == log.count("groupsvcd.toml:")


def test_an_idle_daemon_is_small(start: Start) -> None:
    """At most 40 MiB resident."""
    daemon = start()
    daemon.log_until("ready")
    with DaemonConnection(daemon.client_address) as connection:
        connection.status()
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert resident <= 40 * 1024


PROGRAM = """
import sys
from groupsvcd import config, daemon


class Greeter:
    def __init__(self, daemon):
        self.daemon, self.heard = daemon, []
        daemon.reactor.call(lambda: daemon.engine.groups.join("greeters", {}, self))

    def joined(self, group, seq, members):
        for word in (b"good", b"morning"):
            assert self.daemon.engine.groups.submit("greeters", [word])

    def delivered(self, first_seq, entries):
        self.heard += [entry.body.decode() for entry in entries if entry.origin]
        if len(self.heard) == 2:
            print(*self.heard)
            self.daemon.reactor.stop()

    def changed(self, seq, members):
        pass

    def lost(self, reason):
        print("lost:", reason)


sys.exit(daemon.run(config.load(None), inside=Greeter))
"""


def test_a_program_inside_the_daemon_takes_part_in_a_group(short_path: Path) -> None:
    """It joins by a call into the engine and from then on acts within its steps."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GROUPSVC_")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "daemon")])
    environment["GROUPSVC_CLIENT_ADDRESS"] = f"ipc://{short_path}/client.sock"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=30, check=False
    )
    assert "good morning\n" == run.stdout, run.stderr
    assert 0 == run.returncode


CHURN = """
import gc
from collections import deque
from groupsvcd.daemon import GARBAGE_THRESHOLDS

class Circle:
    alive = most = 0

    def __init__(self):
        self.itself = self
        Circle.alive += 1
        Circle.most = max(Circle.most, Circle.alive)

    def __del__(self):
        Circle.alive -= 1

gc.collect()
gc.freeze()
gc.set_threshold(*GARBAGE_THRESHOLDS)
some = deque(maxlen=60_000)  # each is old enough to be looked at less often when it goes
for _ in range(700_000):
    some.append(Circle())
print(Circle.most)
"""


def test_what_groups_and_sessions_leave_behind_does_not_gather() -> None:
    """X1: they are made of objects that refer to one another in circles, and come and go all day."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "daemon")])
    printed = subprocess.run(
        [sys.executable, "-c", CHURN], env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, check=True
    ).stdout
    assert GATHERED_MAX > int(printed)
