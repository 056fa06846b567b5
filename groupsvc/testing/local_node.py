"""One daemon under test: its files, its process, and the last connection to it.

The process is the daemon itself and not a wrapper, so that ``pid`` can be given to any tool.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from ..drivers.connection import DaemonConnection
from ..errors import GroupServiceError, UsageError
from ..wire.client_messages import Status
from .undertaker import Undertaker

Table = Mapping[str, str | int | float | bool | list[str]]
Setting = str | int | float | bool | list[str] | Table | tuple[Table, ...]

STOP_WAIT_S = 3.0
"""How long a daemon may take to end by itself after SIGTERM."""

CRASHES = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
"""Nobody sends these. A library in C ends a process with them, and no line of Python sees it coming."""

STATUS_WAIT_S = 1.0
"""A daemon answers a status from its memory; one that takes longer counts as not answering."""


class LocalNode:
    """The daemon ``name`` with everything it owns below ``directory``."""

    def __init__(self, name: str, directory: Path, undertaker: Undertaker, settings: Mapping[str, Setting]) -> None:
        self.name = name
        self.paused = False
        self.crash = ""  # the last words of a daemon that crashed, also if it runs again
        self._undertaker = undertaker
        self._process: subprocess.Popen[bytes] | None = None
        self._in_grave = True
        self._connection: DaemonConnection | None = None
        self._asking = threading.RLock()  # threads of a test ask for the status side by side, a connection is for one
        self.client_address = f"ipc://{directory / name}.sock"
        self.state_directory = directory / f"{name}.state"
        self._log = directory / f"{name}.log"
        self.config_file = directory / f"{name}.toml"
        own: dict[str, Setting] = {
            "node": name,
            "client_address": self.client_address,
            "state_directory": str(self.state_directory),
            "runtime_directory": str(directory),
        }
        self.write_config({**own, **settings})

    def write_config(self, settings: Mapping[str, Setting]) -> None:
        """What the daemon reads at its next start."""
        self.settings = dict(settings)
        self.config_file.write_text(to_toml(self.settings))

    # --- The process ------------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The process id of the running daemon."""
        return self._running().pid

    @property
    def exit_code(self) -> int | None:
        """How the daemon ended; None while it runs or was never started."""
        return None if self._process is None else self._process.poll()

    @property
    def is_running(self) -> bool:
        """Whether there is a living process (which may be paused)."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process; does not wait for it to answer."""
        if self.is_running:
            raise UsageError(f"{self.name} is running already; kill or stop it first")
        self._bury()
        self.state_directory.mkdir(mode=0o700, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = self._spawn(log)
        self._undertaker.born(self._process.pid)
        self._in_grave = False
        self.paused = False

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """The process; a domain of daemons with programs inside them starts another one."""
        return subprocess.Popen(
            [sys.executable, "-m", "groupsvcd", "--config", str(self.config_file)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment(),
            start_new_session=True,
        )

    def kill(self) -> None:
        """SIGKILL: the process ends between two instructions."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL if it does not end by itself."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP; returns when the process really stands still."""
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        ended = os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if ended is not None and ended.si_code in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED):
            raise UsageError(f"{self.name} has ended by itself:\n{self.last_lines()}")
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOHANG)
        self.paused = True

    def resume(self) -> None:
        """SIGCONT after a pause."""
        self._running().send_signal(signal.SIGCONT)
        self.paused = False

    def lose_state(self) -> None:
        """Empty the state directory of a daemon that does not run, as if its disk had been replaced."""
        if self.is_running:
            raise UsageError(f"{self.name} is running; kill it before its state can be lost")
        shutil.rmtree(self.state_directory, ignore_errors=True)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            raise UsageError(f"{self.name} is not running; its last words:\n{self.last_lines()}")
        return self._process

    def _end(self, number: signal.Signals) -> None:
        self.disconnect()
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # a paused process would keep SIGTERM for later
            try:
                process.wait(timeout=STOP_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._bury()
        self.paused = False

    def _bury(self) -> None:
        """Tell the undertaker once that this process has ended, also if it ended by itself."""
        if self._process is not None and not self._in_grave:
            self.look_for_crash()
            self._undertaker.dead(self._process.pid)
            self._in_grave = True

    def look_for_crash(self) -> None:
        """See whether it has crashed, and keep what it said."""
        code = self.exit_code
        if code is not None and -code in CRASHES and not self._in_grave:
            self.crash = f"{self.name} was ended by {signal.Signals(-code).name}; it said last:\n{self.last_lines()}"

    # --- What it says -----------------------------------------------------------------------------------

    def status(self, timeout: float = STATUS_WAIT_S) -> Status | None:
        """The daemon's own view, or None if it does not answer."""
        if self.paused or not self.is_running:
            return None
        with self._asking:
            try:
                return self.connection(timeout).status(timeout=timeout)
            except GroupServiceError:
                self.disconnect()
                return None

    def connection(self, timeout: float = STATUS_WAIT_S) -> DaemonConnection:
        """A connection that is kept between calls; made anew after a failure. Under the lock."""
        if self._connection is None:
            self._connection = DaemonConnection(self.client_address, timeout, client="LocalDomain")
        return self._connection

    def disconnect(self) -> None:
        """Forget the kept connection."""
        with self._asking:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def logs(self) -> str:
        """Everything the daemon has written to its output, over all its runs."""
        with contextlib.suppress(FileNotFoundError):
            return self._log.read_text(errors="replace")
        return ""

    def last_lines(self, count: int = 15) -> str:
        """The end of the log, indented for use in an error message."""
        lines = self.logs().splitlines()[-count:]
        return "\n".join(f"    {line}" for line in lines) or "    (it wrote nothing)"


def to_toml(settings: Mapping[str, Setting]) -> str:
    """A configuration file with these settings, tables last as TOML wants it."""
    plain: list[str] = []
    tables: list[str] = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            tables += ["", f"[{key}]", *_lines(value)]
        elif isinstance(value, tuple):
            for table in value:
                tables += ["", f"[[{key}]]", *_lines(table)]
        else:
            plain.append(f"{key} = {_value(value)}")
    return "\n".join((*plain, *tables)) + "\n"


def _lines(table: Mapping[str, object]) -> list[str]:
    return [f"{json.dumps(name)} = {_value(value)}" for name, value in table.items()]


def _value(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def environment() -> dict[str, str]:
    """Ours without ``GROUPSVC_*``, which would win over every daemon's file, and with both packages in reach."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GROUPSVC_")}
    places = [str(Path(origin).parent.parent) for origin in map(_origin, ("groupsvc", "groupsvcd"))]
    kept["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*places, *filter(None, [kept.get("PYTHONPATH")])]))
    return kept


def _origin(package: str) -> str:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise UsageError(f"the package {package} is not installed for {sys.executable}")
    return spec.origin
