"""ZooKeeper with kazoo: three servers, every write on the disks of two before it is confirmed.

A message is a sequential node. Names have no gaps, so who receives asks for the next ones by name, several at a time,
and leaves a watch on the first that is not there yet: of the ways to follow a queue with one-time watches the one with
the fewest requests. In a barrier each party makes a sequential node; its number says whether it is the last of its
round, which then makes the node that all others have a watch on. kazoo's own ``DoubleBarrier`` reads all children after
every change. A member is an ephemeral node.
"""

from __future__ import annotations

import logging
import queue
import re
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..beside import POLL_MS, Role
from ..load import Program
from .peer import SERVERS, Cluster, Member, Peer, Wait, Write, connected, missing, until_done

CLASSPATH = "/usr/share/java/zookeeper.jar"
TICK_MS = 500
SESSION_S = 1.0
CALL_WAIT_S = 30.0
AHEAD_MAX = 64
"""How many of the next nodes are asked for at a time."""

CONFIG = """
tickTime={tick}
initLimit=20
syncLimit=10
dataDir={directory}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=srvr
maxClientCnxns=0
{servers}
"""


class Servers(Cluster):
    """One JVM each."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.where = self.ports()
        election = self.ports()
        servers = "\n".join(
            f"server.{number + 1}=127.0.0.1:{election[number]}:{election[number] + 1}" for number in range(SERVERS)
        )
        for number, port in enumerate(self.where):
            own = directory / f"n{number}"
            own.mkdir()
            (own / "myid").write_text(f"{number + 1}\n")
            text = CONFIG.format(tick=TICK_MS, directory=own, port=port, servers=servers)
            (directory / f"n{number}.cfg").write_text(text)

    def command(self, number: int) -> Sequence[str]:
        return [
            "java", "-Dzookeeper.jmx.log4j.disable=true", "-Djava.net.preferIPv4Stack=true", "-cp", CLASSPATH,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(self.directory / f"n{number}.cfg"),
        ]  # fmt: skip

    def leader(self) -> int:
        for number, port in enumerate(self.where):
            if "Mode: leader" in _said(port):
                return number
        raise RuntimeError("ZooKeeper has no leader")

    def formations(self) -> int:
        (zxid,) = re.findall(r"Zxid: 0x([0-9a-f]+)", _said(self.where[self.leader()]))
        return int(zxid, 16) >> 32  # the epoch

    def settle(self) -> None:
        until = time.monotonic() + CALL_WAIT_S
        while not all("Mode:" in _said(port) for port in self.where):
            if time.monotonic() > until:
                raise TimeoutError("a server of ZooKeeper does not serve")
            time.sleep(0.02)


def _said(port: int) -> str:
    with connected(port) as connection:
        connection.sendall(b"srvr")
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while more := connection.recv(65_536):
            found += more
    return found.decode(errors="replace")


class ZooKeeper(Peer):
    """What many take instead."""

    name = "zookeeper"
    title = "ZooKeeper, kazoo"
    client = "Python, kazoo"
    setting = (
        "tickTime 500 ms (default 2 s), so that sessions of 1 s are granted (default 4 s at least); initLimit 20 and "
        "syncLimit 10 ticks; any number of connections; no web server; heap and collector as Java chooses"
    )
    rows = frozenset(
        {"barrier-2", "barrier-8", "barrier-32", "single", "one", "three", "large", "client", "leader"}
        | {"start", "idle", "loaded", "alarms"}
    )
    without = {
        "daemon": "members are clients with sessions; with another server they go on",
        "silent": "the same",
        "cut": "the same",
    }
    promises = {
        "barrier": "nodes on the disks of 2 of 3; a dead party is noticed if its node is ephemeral",
        "multicast": "one order; synced to the disks of 2 of 3 before anybody is told",
        "write": "synced to the disks of 2 of 3",
        "client": "its session of 1 s runs out",
    }
    barrier_rounds = {2: 60, 8: 30, 32: 12}

    def why_not(self) -> str | None:
        if not Path(CLASSPATH).exists():
            return f"{CLASSPATH} missing: apt install zookeeper"
        return missing("java", modules=["kazoo"], package="apt install default-jre-headless; pip install kazoo")

    def version(self) -> str:
        from kazoo.version import __version__

        return f"ZooKeeper {Path(CLASSPATH).resolve().stem.rpartition('-')[2]}, kazoo {__version__}"

    def new_cluster(self, directory: Path) -> Servers:
        return Servers(directory)

    def new_role(self, me: int, where: Sequence[int]) -> Role:
        return _Program(where[me])

    def new_party(self, me: int, parties: int, round_name: str, where: Sequence[int]) -> Wait:
        return _Party(where[me % SERVERS], parties, f"/{round_name}").wait

    def new_member(self, me: int, where: Sequence[int]) -> Member:
        return _Member(where[me], me)

    def new_writer(self, me: int, where: Sequence[int]) -> Write:
        return _Writer(where[me]).write


def _client(port: int, timeout: float = CALL_WAIT_S, session_s: float = 10.0) -> Any:
    from kazoo.client import KazooClient
    from kazoo.retry import KazooRetry

    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # it tells of every attempt to connect
    retry = KazooRetry(max_tries=-1, delay=0.01, backoff=1, max_delay=0.02)
    client = KazooClient(f"127.0.0.1:{port}", timeout=session_s, connection_retry=retry)
    client.start(timeout)
    return client


class _Program:
    """Makes nodes, and follows them."""

    program: Program

    def __init__(self, port: int) -> None:
        from kazoo.exceptions import NoNodeError

        self._none = NoNodeError
        self._client = _client(port)
        self._client.ensure_path("/bench")
        self._next = self._client.get("/bench")[1].cversion  # of nodes that were never deleted: how many there are
        self._came = threading.Event()
        self._ahead = 1
        self._seq = 0
        self._watch()

    def _watch(self) -> None:
        """Be told when the next node is there; if it is, by now, at once."""
        self._came.clear()
        asked = self._client.exists_async(_path(self._next), watch=lambda event: self._came.set())
        asked.rawlink(lambda answer: self._came.set() if answer.successful() and answer.value else None)

    def submit(self, payload: bytes) -> None:
        self._client.create_async("/bench/", payload, sequence=True)

    def turn(self) -> None:
        """Ask for the next nodes, more of them as long as all were there."""
        if not self._came.wait(POLL_MS / 1000):
            return
        asked = [self._client.get_async(_path(self._next + step)) for step in range(self._ahead)]
        are_all_there = True
        for answer in asked:
            try:
                payload, _ = answer.get(timeout=CALL_WAIT_S)
            except self._none:
                are_all_there = False
                break
            self._next += 1
            self._seq += 1
            self.program.deliver(self._seq, "zookeeper", payload)
        self.program.note()
        self.program.fill()
        if are_all_there:
            self._ahead = min(AHEAD_MAX, 2 * self._ahead)
        else:
            self._ahead = max(1, self._ahead // 2)
            self._watch()


def _path(number: int) -> str:
    return f"/bench/{number:010d}"


class _Party:
    """The number of its node says in which round it is, and whether it is the last."""

    def __init__(self, port: int, parties: int, name: str) -> None:
        self._client = _client(port)
        self._client.ensure_path(f"{name}/parties")
        self._client.ensure_path(f"{name}/gates")
        self._name, self._parties, self._number = name, parties, 0

    def wait(self) -> None:
        """One round."""
        gate = f"{self._name}/gates/{self._number}"
        opened = threading.Event()
        asked = self._client.exists_async(gate, watch=lambda event: opened.set())
        made = self._client.create_async(f"{self._name}/parties/", b"", sequence=True).get(timeout=CALL_WAIT_S)
        if asked.get(timeout=CALL_WAIT_S) is not None:
            raise AssertionError(f"the gate of round {self._number} was open before all had come")
        count = int(made.rpartition("/")[2])
        if count // self._parties != self._number:
            raise AssertionError(f"number {count} in round {self._number}")
        if count % self._parties == self._parties - 1:
            self._client.create_async(gate, b"")
        if not opened.wait(CALL_WAIT_S):
            raise TimeoutError(f"round {self._number} did not end")
        self._number += 1


class _Member:
    """An ephemeral node, and a watch on all of them."""

    def __init__(self, port: int, me: int) -> None:
        self._client = _client(port, session_s=SESSION_S)
        self._client.ensure_path("/members")
        self._changed: queue.SimpleQueue[float] = queue.SimpleQueue()
        self._client.create(f"/members/{me}-{time.monotonic_ns()}", b"", ephemeral=True)

    def _listed(self) -> int:
        return len(self._client.get_children("/members", watch=lambda event: self._changed.put(time.monotonic())))

    def wait_for(self, members: int, timeout: float) -> None:
        until = time.monotonic() + timeout
        while self._listed() < members:
            if time.monotonic() > until:
                raise TimeoutError(f"{members} members are not there")
            self._changed.get(timeout=timeout)
        self._members = members

    def wait_gone(self, timeout: float) -> float:
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            told = self._changed.get(timeout=timeout)
            if self._listed() < self._members:
                return told
        raise TimeoutError("nobody is gone")


class _Writer:
    """Somebody who makes nodes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._client: Any = None

    def write(self, timeout: float) -> None:
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        until_done(self._attempt, timeout, (KazooException, KazooTimeoutError))

    def _attempt(self, timeout: float) -> None:
        if self._client is None:
            self._client = _client(self._port, timeout)
            self._client.ensure_path("/written")
        self._client.create_async("/written/", b"x" * 100, sequence=True).get(timeout=timeout)
