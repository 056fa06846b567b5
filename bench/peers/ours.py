"""groupsvc itself, as applications use it: three daemons, each with its programs, through the client library."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, ClassVar

import groupsvc
from groupsvc.errors import GroupServiceError
from groupsvc.events import Failing, Left
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import LocalNode, environment

from ..beside import PROCESSES, START_WAIT_S, Role
from ..sessions import _Client
from . import namespaces
from .namespaces import Namespaces
from .peer import Cluster, Member, Peer, Wait, Write, until_done

JOIN_WAIT_S = 60.0
ROUND_WAIT_S = 30.0
PEER_PORT = 7000


class Domain(Cluster):
    """Three daemons with all settings at their defaults."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._domain = LocalDomain(nodes=3)

    def start(self) -> None:
        self._domain.start(wait=False)
        self.where = [self._domain.address(name) for name in self._domain.names]

    def settle(self) -> None:
        self._domain.wait_until_up()

    def leader(self) -> int:
        return self._domain.names.index(self._domain.wait_for_name_server())

    def kill(self, number: int) -> None:
        os.kill(self.pid(number), signal.SIGKILL)

    def revive(self, number: int) -> None:
        name = self._domain.names[number]
        self._domain.kill(name)
        self._domain.restart(name)
        self._domain.wait_until_up()

    def resume(self, number: int) -> None:
        super().resume(number)
        self._domain.wait_until_up()

    def formations(self) -> int:
        status = self._domain.status(self._domain.wait_for_name_server())
        if status is None:
            raise TimeoutError("the name server does not answer")
        return status.epoch + status.list_version

    def pid(self, number: int) -> int:
        return self._domain.pid(self._domain.names[number])

    @property
    def pids(self) -> list[int]:
        return [self._domain.pid(name) for name in self._domain.names]

    def last_words(self) -> str:
        return ""  # the errors of a LocalDomain have them

    def stop(self) -> None:
        self._domain.stop()
        super().stop()


class WiredDomain(LocalDomain):
    """Three daemons with a network each."""

    def __init__(self, spaces: Namespaces) -> None:
        super().__init__(nodes=3, settings={"insecure": True})  # without keys only loopback is taken otherwise
        self.spaces = dict(zip(self._first_names, spaces.names, strict=True))
        self.node_class = type("WiredNode", (_WiredNode,), {"spaces": self.spaces})

    def _new_peer_address(self, name: str) -> str:
        return f"tcp://{namespaces.address(list(self.spaces).index(name))}:{PEER_PORT}"


class _WiredNode(LocalNode):
    spaces: ClassVar[dict[str, str]]

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["ip", "netns", "exec", self.spaces[self.name], sys.executable, "-m", "groupsvcd", "--config",
             str(self.config_file)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment(), start_new_session=True,
        )  # fmt: skip


class Wired(Domain):
    """The same with a network for each daemon, all settings but the permission to do without keys at their defaults."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._spaces = Namespaces()
        self._open.callback(self._spaces.close)
        self._domain = WiredDomain(self._spaces)

    def cut(self, number: int) -> None:
        self._spaces.cut(number)

    def mend(self, number: int) -> None:
        self._spaces.mend(number)


class Ours(Peer):
    """In memory, held by two of three before anybody sees it."""

    name = "ours"
    title = "groupsvc"
    client = "Python"
    setting = "none: all defaults; where one is cut off each daemon has a network namespace, and `insecure`: no keys"
    rows = frozenset(
        {"barrier-2", "barrier-8", "barrier-32", "single", "one", "three", "large", "client", "daemon", "leader"}
        | {"start", "idle", "loaded", "silent", "cut", "alarms"}
    )
    promises = {
        "barrier": "a round is an entry held by 2 of 3; a dead party breaks it for all alike",
        "multicast": "one order; in memory of 2 of 3 before anybody is told; with changes of membership in it",
        "write": "in memory of 2 of 3",
        "client": "the daemon sees the process end; told in the order of messages",
        "daemon": "its port refuses, the others agree on its death",
        "silent": "nothing is heard of it for its lease; the others agree, and it knows by its own clock before",
    }
    client_kills = 3
    attributes = groupsvc.GroupAttributes()

    def version(self) -> str:
        return groupsvc.__version__

    def new_cluster(self, directory: Path) -> Domain:
        return Domain(directory)

    @contextlib.contextmanager
    def wired(self, directory: Path, running: Cluster) -> Iterator[Cluster]:
        made = Wired(directory)
        try:
            made.start()
            made.settle()
            yield made
        finally:
            made.stop()

    def new_role(self, me: int, where: Sequence[str]) -> Role:
        return _Sender(me, where, f"bench-{self.name}", self.attributes)

    def new_party(self, me: int, parties: int, round_name: str, where: Sequence[str]) -> Wait:
        session = groupsvc.connect(where[me % len(where)])
        group = session.join(round_name, name=str(me), timeout=JOIN_WAIT_S)
        barrier = group.barrier("rounds", parties=parties)
        return lambda: barrier.wait(timeout=ROUND_WAIT_S)

    def new_member(self, me: int, where: Sequence[str]) -> Member:
        return _Member(where[me])

    def new_writer(self, me: int, where: Sequence[str]) -> Write:
        return _Writer(me, where, self.attributes).write


class Durable(Ours):
    """The same, on disks."""

    name = "durable"
    title = "groupsvc, durable group"
    setting = "the group has the attribute durable=True, all else is default"
    rows = frozenset({"single", "one", "three", "large"})
    without = {"*": "as groupsvc"}
    promises = {"multicast": "one order; synced to the disks of 2 of 3 before anybody is told"}
    attributes = groupsvc.GroupAttributes(durable=True)


class _Sender(_Client):
    """The program of ``bench.sessions`` in a group with these attributes; the first to join leads."""

    def __init__(self, me: int, where: Sequence[str], name: str, attributes: groupsvc.GroupAttributes) -> None:
        self._session = groupsvc.connect(where[me])
        if me:
            self._session.subscribe(name, wait=START_WAIT_S).close()
        self.group = self._session.join(name, events=True, attributes=attributes)
        while len(self.group.providers) < PROCESSES:
            self.group.next_event(timeout=0.1)
        self.submit = self.group.multicast_nowait
        self._seq = 0


class _Member:
    """A provider that listens."""

    def __init__(self, address: str) -> None:
        self._group = groupsvc.connect(address).join("members", events=True)

    def wait_for(self, members: int, timeout: float) -> None:
        until = time.monotonic() + timeout
        while len(self._group.providers) < members:
            if time.monotonic() > until:
                raise TimeoutError(f"{members} members are not there")
            self._group.next_event(timeout=0.1)

    def wait_gone(self, timeout: float) -> float:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if isinstance(self._group.next_event(timeout=until - time.monotonic()), Failing | Left):
                return time.monotonic()
        raise TimeoutError("nobody is gone")


class _Writer:
    """Somebody who proposes, and waits for the outcome. With its first write it forms a group of all three nodes.

    The node before its own comes first, so it leads the group: the one that will be killed.
    """

    def __init__(self, me: int, where: Sequence[str], attributes: groupsvc.GroupAttributes) -> None:
        self._addresses = [where[(me + step) % len(where)] for step in (-1, 1, 0)]
        self._attributes = attributes
        self._name = f"writes-{time.monotonic_ns()}"
        self._groups: list[groupsvc.Group] = []

    def write(self, timeout: float) -> None:
        until_done(self._attempt, timeout, (GroupServiceError,))

    def _attempt(self, timeout: float) -> None:
        for address in self._addresses[len(self._groups) :]:
            session = groupsvc.connect(address, timeout=timeout)
            self._groups.append(session.join(self._name, timeout=timeout, attributes=self._attributes))
        self._groups[-1].send(b"x" * 100, timeout=timeout)
