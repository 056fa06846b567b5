"""What a peer is to the bench: three servers on this machine, and the same four programs on them.

    with peer.cluster(directory) as cluster:      # three servers with data of their own, all stopped at the end
        cluster.start()
        write = peer.new_writer(0, cluster.where)  # in this process or in another
        write(5.0)

Every peer has a file of its own, with a class that fills in this interface. What a peer has not (a bare hub knows no
members) it leaves out of ``rows``, with the reason in ``without``. The programs run in processes of their own, so
``new_role`` and the others are given nothing but ``where``: addresses, as plain values. What a row promises at this
peer is said in ``promises``: without it two figures cannot be compared.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from groupsvc.testing.loopback_ports import PortBlock

from ..beside import Role
from ..memory import resident_mib

SERVERS = 3
STOP_WAIT_S = 5.0
START_WAIT_S = 40.0
LOG_BYTES_SHOWN = 2000

Write = Callable[[float], None]
"""One write; returns when it is done as promised, raises if it is not done within so many seconds."""

Wait = Callable[[], object]
"""One round of a barrier."""


class Member(Protocol):
    """Somebody whom the others see come and go."""

    def wait_for(self, members: int, timeout: float) -> None:
        """Until so many are seen."""

    def wait_gone(self, timeout: float) -> float:
        """When (by the monotonic clock) it was told that one of them is gone."""


class Cluster:
    """Three servers. The constructor prepares all that has to be there before; ``start`` is what is timed."""

    where: Any = None

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._open = contextlib.ExitStack()

    def start(self) -> None:
        """Start all three, without waiting for them."""
        for number in range(SERVERS):
            self.launch(number)

    def launch(self, number: int) -> None:
        """Start one of them."""
        log = self._open.enter_context((self.directory / f"{number}.log").open("ab"))
        self._processes[number] = subprocess.Popen(
            self.command(number),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **self.environment(number)},
            cwd=self.directory,
            start_new_session=True,
        )

    def command(self, number: int) -> Sequence[str]:
        """How server ``number`` is started."""
        raise NotImplementedError

    def environment(self, number: int) -> Mapping[str, str]:
        """What is added to its environment."""
        return {}

    def settle(self) -> None:
        """After the first write: wait for what else must be there before it is measured."""

    def ready_for(self, parties: int | None) -> None:
        """Called before a barrier of so many, or (None) before messages."""

    def leader(self) -> int:
        """Which server leads now."""
        raise NotImplementedError

    def kill(self, number: int) -> None:
        """SIGKILL, and nothing else."""
        os.kill(self.pid(number), signal.SIGKILL)

    def revive(self, number: int) -> None:
        """Start a killed server again."""
        self._processes[number].wait()
        self.launch(number)

    def pause(self, number: int) -> None:
        """SIGSTOP: it stands still, and all its connections stay open."""
        os.kill(self.pid(number), signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Let a paused server go on, and wait until all is as before."""
        os.kill(self.pid(number), signal.SIGCONT)

    def cut(self, number: int) -> None:
        """Its network is gone, without a word to anybody; only where each server has a network of its own."""
        raise NotImplementedError

    def mend(self, number: int) -> None:
        """Its network is there again; wait until all is as before."""
        raise NotImplementedError

    def formations(self) -> int:
        """A number that grows when the servers elect somebody, or when one is said to have come or gone."""
        raise NotImplementedError

    def pid(self, number: int) -> int:
        """Of the server itself."""
        return self._processes[number].pid

    @property
    def pids(self) -> list[int]:
        """Of all that run."""
        return [process.pid for process in self._processes.values() if process.poll() is None]

    def resident_mib(self) -> float:
        """Of the largest server."""
        return max(map(resident_mib, self.pids))

    def last_words(self) -> str:
        """The ends of all logs."""
        return "\n".join(
            f"--- {path.name}\n{path.read_bytes()[-LOG_BYTES_SHOWN:].decode(errors='replace')}"
            for path in sorted(self.directory.glob("*.log"))
        )

    def stop(self) -> None:
        """End all that was started, by pid."""
        for process in self._processes.values():
            if process.poll() is None:
                process.terminate()
                process.send_signal(signal.SIGCONT)  # one that was left standing still
        until = time.monotonic() + STOP_WAIT_S
        for process in self._processes.values():
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._open.close()

    def ports(self) -> list[int]:
        """Two neighbouring ports for each server; these are the first ones."""
        blocks = [PortBlock() for _ in range(SERVERS)]
        for block in blocks:
            self._open.callback(block.close)
        return [block.port for block in blocks]


class Peer:
    """One service, and how each row is done with it."""

    name: ClassVar[str]
    title: ClassVar[str]
    client: ClassVar[str] = "Python"
    """In what the programs speak to it."""
    setting: ClassVar[str] = ""
    """What differs from its defaults, and why."""
    rows: ClassVar[frozenset[str]]
    without: ClassVar[Mapping[str, str]] = {}
    """Why a row is missing."""
    promises: ClassVar[Mapping[str, str]]
    """By the first word of the row: what is promised there."""
    barrier_rounds: ClassVar[Mapping[int, int]] = {2: 300, 8: 150, 32: 40}
    client_kills: ClassVar[int] = 1
    """How many clients are killed in a round, of which the median counts: more where it is a matter of milliseconds."""

    def why_not(self) -> str | None:
        """What is missing for it here, and how to get it."""
        return None

    def version(self) -> str:
        """As it says itself."""
        return ""

    @contextlib.contextmanager
    def cluster(self, directory: Path) -> Iterator[Cluster]:
        """Servers that are stopped at the end."""
        made = self.new_cluster(directory)
        try:
            yield made
        except BaseException as error:
            error.add_note(made.last_words())
            raise
        finally:
            made.stop()

    def new_cluster(self, directory: Path) -> Cluster:
        """Three servers with their data in ``directory``, not started."""
        raise NotImplementedError

    @contextlib.contextmanager
    def wired(self, directory: Path, running: Cluster) -> Iterator[Cluster]:
        """Servers with a network each: those that run, unless they have none."""
        yield running

    def new_role(self, me: int, where: Any) -> Role:
        """A program at server ``me`` that sends, and is given what all send in one order."""
        raise NotImplementedError

    def new_party(self, me: int, parties: int, round_name: str, where: Any) -> Wait:
        """A party of a barrier, at server ``me`` modulo three."""
        raise NotImplementedError

    def new_member(self, me: int, where: Any) -> Member:
        """A member at server ``me``."""
        raise NotImplementedError

    def new_writer(self, me: int, where: Any) -> Write:
        """Somebody who writes through server ``me``, which may not be up yet."""
        raise NotImplementedError

    def spark_barriers_ms(self) -> Mapping[str, float]:
        """A barrier of Spark tasks by two names: ours and this peer's."""
        raise NotImplementedError


def missing(*programs: str, modules: Sequence[str] = (), package: str) -> str | None:
    """What of these is not installed, in words."""
    import importlib.util

    lacking = [name for name in programs if shutil.which(name) is None]
    lacking += [name for name in modules if importlib.util.find_spec(name) is None]
    return f"{', '.join(lacking)} missing: {package}" if lacking else None


def said_by(*command: str) -> str:
    """The first line that a command says."""
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return (found.stdout or found.stderr).splitlines()[0].strip()


def connected(port: int, *, timeout: float = START_WAIT_S, host: str = "127.0.0.1") -> socket.socket:
    """A connection to a server that may not listen yet."""
    until = time.monotonic() + timeout
    while True:
        try:
            made = socket.create_connection((host, port), timeout=timeout)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)
        else:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made


def until_done(attempt: Callable[[float], None], timeout: float, errors: tuple[type[Exception], ...]) -> None:
    """Try again and again until it works or the time is over."""
    until = time.monotonic() + timeout
    while True:
        try:
            return attempt(max(0.05, until - time.monotonic()))
        except errors:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)
