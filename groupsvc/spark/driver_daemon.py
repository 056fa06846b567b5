"""A daemon beside the driver, for clusters whose nodes have none.

    with groupsvc.spark.embedded(spark) as service:
        rdd.mapPartitions(lambda rows: work(rows, service.via)).collect()

It is a domain of one node, in memory: it coordinates the tasks of this application and goes with it. Tasks come over
tcp, with a key that is made here and travels in their functions; nobody else has it. What it cannot do is outlive the
driver, but neither can the application.

It ends with ``close()``, with the block, when the Spark session has stopped, when the driver's program ends, and when
that is killed (``testing/undertaker.py``).
"""

from __future__ import annotations

import atexit
import contextlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .. import clock
from ..addresses import is_loopback
from ..drivers.connection import DaemonConnection
from ..drivers.curve import new_keys
from ..errors import DaemonUnreachable, GroupServiceError, UsageError
from ..keys import write_keys
from ..testing.local_node import Setting, environment, to_toml
from ..testing.undertaker import Undertaker
from .reaching import Via
from .rendezvous import LOOPBACK, own_host

READY_S = 20.0
"""How long it may take to answer on a machine that is busy with Spark's own start."""

TRIES_MAX = 5
"""A port that was free a moment ago may be somebody else's now; then it is another one."""

LOOK_S = 1.0
"""How often somebody looks whether the Spark session still runs."""

STANDALONE_MASTER = re.compile(r"spark://([^,:]+):")
LOCAL_MASTER = re.compile(r"local(\[.*\])?")


class Embedded:
    """The daemon of one application; a context manager that ends it. ``via`` is what tasks need, and can be sent."""

    def __init__(self, host: str, application: str | None, is_over: Callable[[], bool]) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="groupsvc-spark-"))
        self._undertaker = Undertaker(remove=self._directory)
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = threading.Lock()
        self._closed = threading.Event()
        try:
            self.via = self._start(host, application)
        except BaseException:
            self.close()
            raise
        atexit.register(self.close)
        threading.Thread(target=self._watch, args=(is_over,), name="groupsvc-embedded", daemon=True).start()

    @property
    def address(self) -> str:
        """Where the tasks reach it."""
        assert self.via.address is not None
        return self.via.address

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def logs(self) -> str:
        """What it has written; nothing once it was closed."""
        with contextlib.suppress(FileNotFoundError):
            return (self._directory / "log").read_text(errors="replace")
        return ""

    def close(self) -> None:
        """End it; may be called again."""
        with self._closing:
            self._closed.set()
            process, self._process = self._process, None
            if process is not None:
                self._end(process)
            self._undertaker.close()  # and the directory goes
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A function that refers to it takes along what it needs of it: the way."""
        return _via_alone, (self.via,)

    # --- Inside ---

    def _start(self, host: str, application: str | None) -> Via:
        own = new_keys()
        theirs = new_keys((own.public,))
        key_file, _ = write_keys(self._directory, "driver", own)
        for _ in range(TRIES_MAX):
            address = f"tcp://{f'[{host}]' if ':' in host else host}:{_free_port(host)}"
            local = f"ipc://{self._directory}/client.sock"
            settings: dict[str, Setting] = {
                "node": "driver", "domain": "spark", "client_address": local, "runtime_directory": str(self._directory),
                "listen_clients": address, "key_file": str(key_file), "client_keys": {"tasks": theirs.public},
            }  # fmt: skip
            (self._directory / "daemon.toml").write_text(to_toml(settings))
            with (self._directory / "log").open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "groupsvcd", "--config", str(self._directory / "daemon.toml")],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment(),
                    start_new_session=True,
                )  # fmt: skip
            self._undertaker.born(process.pid)
            if _answers(process, local):
                self._process = process
                return Via(address, theirs, application)
            self._end(process)
        raise DaemonUnreachable(f"the daemon beside the driver does not start; it said:\n{self.logs()[-2000:]}")

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(timeout=3.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._undertaker.dead(process.pid)

    def _watch(self, is_over: Callable[[], bool]) -> None:
        while not self._closed.wait(LOOK_S):
            if is_over():
                self.close()


def _via_alone(via: Via) -> Via:
    return via


def _answers(process: subprocess.Popen[bytes], address: str) -> bool:
    """Whether the daemon gets as far as to answer; not, if it ends."""
    until = clock.now() + READY_S
    while process.poll() is None and clock.now() < until:
        with contextlib.suppress(GroupServiceError), DaemonConnection(address, 1.0, client="embedded") as asked:
            if not asked.status(timeout=1.0).suspended:
                return True
        threading.Event().wait(0.02)
    return False


def _free_port(host: str) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError as problem:
            text = f"the daemon cannot listen at {host}, which is no address of this machine ({problem.strerror})"
            raise UsageError(f"{text}; give host=, an address of it that the executors reach") from None
        return int(probe.getsockname()[1])


def embedded(spark: Any, *, host: str | None = None) -> Embedded:
    """Start a daemon for the application of this Spark session, on the machine of the driver.

    ``host`` is the driver's address as executors reach it; the default is what Spark uses itself
    (``spark.driver.host``), and loopback in local mode. Under Connect, and if that is a name which on this machine
    means loopback, it is the address from which it reaches Spark's server, its master, or whatever is outside.
    """
    is_remote = type(spark).__module__.startswith("pyspark.sql.connect")
    if host is None:
        host = _host_beside(spark, is_remote=is_remote)
    with contextlib.suppress(OSError):
        host = socket.gethostbyname(host)
    return Embedded(host, _setting(spark, "spark.app.id"), lambda: _is_over(spark, is_remote=is_remote))


def _host_beside(spark: Any, *, is_remote: bool) -> str:
    """Where executors reach this machine. Under Connect it is not the driver's, which may be far away."""
    master = _setting(spark, "spark.master") or ""
    server = str(spark.client.host) if is_remote else None
    tasks_are_here = server is None or is_loopback(server)
    if tasks_are_here and LOCAL_MASTER.fullmatch(master):
        return LOOPBACK
    at = STANDALONE_MASTER.match(master)
    reached = own_host(server, None if at is None else at[1])
    if is_remote:
        return reached
    told = _setting(spark, "spark.driver.host")
    return reached if told is None or _is_loopback_by_its_name(told) else told


def _is_loopback_by_its_name(host: str) -> bool:
    """Whether it is the name of this machine, and that leads to 127.0.1.1: as Debian has it, and nobody else."""
    if is_loopback(host):
        return False  # it was meant
    try:
        return is_loopback(socket.gethostbyname(host))
    except OSError:
        return False


def _setting(spark: Any, name: str) -> str | None:
    found = spark.conf.get(name, None)
    return None if found is None else str(found)


def _is_over(spark: Any, *, is_remote: bool) -> bool:
    if is_remote:
        return bool(getattr(spark, "is_stopped", False))
    return spark.sparkContext._jsc is None
