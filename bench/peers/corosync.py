"""corosync's closed process groups (CPG): of all peers the one with our model, in C.

Three daemons on one machine need three networks: each lives in a network namespace of its own on one bridge, with a
``/run`` of its own. That takes root. Programs enter the namespace of their daemon before they connect. The client is
libcpg, called through ctypes from Python, as all clients here are in Python; one in C would cost less.

A barrier is a message of each party, and whoever has seen all of a round goes on: the order makes that safe. corosync
runs with real-time priority, as it does by default, which on a busy machine is an advantage over everybody else here.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import select
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..beside import POLL_MS, PROCESSES, Role
from ..load import Program
from .namespaces import Namespaces, address, inside
from .peer import SERVERS, Cluster, Member, Peer, Wait, Write, missing, said_by, until_done

ROUND_WAIT_S = 30.0

CONFIG = """
totem {{
    version: 2
    cluster_name: bench
    transport: udpu
    netmtu: 8900
    crypto_cipher: none
    crypto_hash: none
    {timing}
}}
nodelist {{
{nodes}
}}
system {{
    state_dir: {directory}/state-{number}
}}
quorum {{
}}
logging {{
    to_logfile: yes
    logfile: {directory}/{number}.log
    logfile_priority: notice
    to_syslog: no
    to_stderr: no
    timestamp: hires
}}
"""


class Daemons(Cluster):
    """Three daemons with all settings at their defaults, or with a shorter token."""

    def __init__(self, directory: Path, timing: str) -> None:
        super().__init__(directory)
        self._spaces = Namespaces()
        self._open.callback(self._spaces.close)
        self.where = self._spaces.names
        nodes = "\n".join(
            f"    node {{\n        ring0_addr: {address(number)}\n        nodeid: {number + 1}\n"
            f"        name: n{number + 1}\n    }}"
            for number in range(SERVERS)
        )
        for number in range(SERVERS):
            (directory / f"state-{number}").mkdir()
            text = CONFIG.format(
                nodes=nodes,
                directory=directory,
                number=number,
                timing=timing,
            )
            (directory / f"{number}.conf").write_text(text)

    def command(self, number: int) -> Sequence[str]:
        own_run = f"mount -t tmpfs tmpfs /run && exec corosync -f -c {self.directory}/{number}.conf"
        return ["ip", "netns", "exec", self._spaces.names[number], "unshare", "--mount", "sh", "-c", own_run]

    def leader(self) -> int:
        return 0  # the lowest number represents the ring; nobody leads

    def revive(self, number: int) -> None:
        super().revive(number)
        _Writer(0, self.where).write(ROUND_WAIT_S)

    def resume(self, number: int) -> None:
        super().resume(number)
        _Writer(0, self.where).write(ROUND_WAIT_S)

    def cut(self, number: int) -> None:
        self._spaces.cut(number)

    def mend(self, number: int) -> None:
        self._spaces.mend(number)
        _Writer(0, self.where).write(ROUND_WAIT_S)

    def formations(self) -> int:
        logs = (self.directory / f"{number}.log" for number in range(SERVERS))
        return max(log.read_text(errors="replace").count("new membership") for log in logs)


class Corosync(Peer):
    """As it comes."""

    name = "corosync"
    title = "corosync CPG"
    client = "libcpg through ctypes"
    timing = ""
    setting = "transport udpu (default knet) and packets of 9 kB: faster here in short trials; the token is as it comes"
    rows = frozenset(
        {"barrier-2", "barrier-8", "barrier-32", "single", "one", "three", "large", "client", "daemon"}
        | {"start", "idle", "loaded", "silent", "alarms"}
    )
    without = {
        "leader": "nobody leads; with the short token it is measured for any daemon",
        "cut": "it waits for the token as if it were paused; with the short token it is measured",
    }
    promises = {
        "barrier": "messages in agreed order; a dead party is told to all",
        "multicast": "agreed order with changes of membership in it; memory; delivered without waiting for the others "
        "to have it",
        "write": "in memory, delivered in agreed order at the sender; nobody leads: any daemon is killed",
        "client": "the daemon sees the connection end; told in the order of messages",
        "daemon": "the token is lost, the others agree on a new ring",
        "silent": "the same: a dead daemon and a silent one are not told apart; without quorum both sides would go on",
    }
    client_kills = 3

    def why_not(self) -> str | None:
        if os.geteuid() != 0:
            return "three daemons on one machine need network namespaces, and those need root"
        if ctypes.util.find_library("cpg") is None:
            return "libcpg missing: apt install corosync libcpg4"
        return missing("corosync", "ip", "unshare", package="apt install corosync libcpg4 iproute2")

    def version(self) -> str:
        return said_by("corosync", "-v").split("'")[1]

    def new_cluster(self, directory: Path) -> Daemons:
        return Daemons(directory, self.timing)

    def new_role(self, me: int, where: Sequence[str]) -> Role:
        return _Program(where[me])

    def new_party(self, me: int, parties: int, round_name: str, where: Sequence[str]) -> Wait:
        return _Party(where[me % len(where)], parties, round_name).wait

    def new_member(self, me: int, where: Sequence[str]) -> Member:
        return Group(where[me], "members")

    def new_writer(self, me: int, where: Sequence[str]) -> Write:
        return _Writer(me, where).write


class Tuned(Corosync):
    """With a token that finds a dead node sooner; one of 0.5 s was late under load on two cores."""

    name = "corosync-tuned"
    title = "corosync CPG, short token"
    timing = "token: 1000\n    token_coefficient: 0"
    setting = "token 1 s, without more for a third node (default 3 s and 0.65 s), so consensus is 1.2 s"
    rows = frozenset({"daemon", "silent", "cut", "leader"})
    without = {"*": "as corosync"}


# --- libcpg ---

OK, TRY_AGAIN = 1, 6
DISPATCH_ALL, AGREED = 2, 2


class _Name(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("value", ctypes.c_char * 128))


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_char_p), ("size", ctypes.c_size_t))


class _Address(ctypes.Structure):
    _fields_ = (("node", ctypes.c_uint32), ("pid", ctypes.c_uint32), ("reason", ctypes.c_uint32))


_Addresses = ctypes.POINTER(_Address)
_Deliver = ctypes.CFUNCTYPE(
    None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t
)
_Change = ctypes.CFUNCTYPE(
    None, ctypes.c_uint64, ctypes.c_void_p, _Addresses, ctypes.c_size_t, _Addresses, ctypes.c_size_t, _Addresses,
    ctypes.c_size_t,
)  # fmt: skip


class _Callbacks(ctypes.Structure):
    _fields_ = (("deliver", _Deliver), ("change", _Change))


class CpgError(OSError):
    """What libcpg answers."""


class Group:
    """One handle, joined to one group."""

    def __init__(self, space: str, name: str) -> None:
        library = ctypes.CDLL(ctypes.util.find_library("cpg"))
        self._dispatch, self._mcast = library.cpg_dispatch, library.cpg_mcast_joined
        self._dispatch.argtypes = (ctypes.c_uint64, ctypes.c_int)
        self._mcast.argtypes = (ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(_Vector), ctypes.c_uint)
        self._vector = _Vector()
        self.members: set[tuple[int, int]] = set()
        self.gone = 0
        self.on_message: Callable[[bytes], None] = lambda payload: None
        self._error: BaseException | None = None
        self._callbacks = _Callbacks(_Deliver(self._delivered), _Change(self._changed))
        handle = ctypes.c_uint64()
        with inside(space):
            _check(library.cpg_initialize(ctypes.byref(handle), ctypes.byref(self._callbacks)), "cpg_initialize")
        self._handle = handle.value
        fd = ctypes.c_int()
        _check(library.cpg_fd_get(handle, ctypes.byref(fd)), "cpg_fd_get")
        self.fd = fd.value
        called = _Name(len(name), name.encode())
        until = time.monotonic() + ROUND_WAIT_S
        while (code := library.cpg_join(handle, ctypes.byref(called))) == TRY_AGAIN and time.monotonic() < until:
            time.sleep(0.002)
        _check(code, "cpg_join")
        self._finalize = library.cpg_finalize

    def close(self) -> None:
        """Leave."""
        self._finalize(ctypes.c_uint64(self._handle))

    def _delivered(self, handle: int, name: int, node: int, pid: int, message: int, size: int) -> None:
        try:
            self.on_message(ctypes.string_at(message, size))
        except BaseException as error:  # one that goes through C is only printed
            self._error = self._error or error

    def _changed(
        self, handle: int, name: int, members: Any, count: int, left: Any, left_count: int, joined: Any, more: int
    ) -> None:
        self.members = {(each.node, each.pid) for each in members[:count]}
        self.gone += left_count

    def send(self, payload: bytes) -> bool:
        """Whether it was taken; if not, the group has to be read first."""
        self._vector.base, self._vector.size = payload, len(payload)
        code = self._mcast(self._handle, AGREED, self._vector, 1)
        if code == TRY_AGAIN:
            return False
        _check(code, "cpg_mcast_joined")
        return True

    def read(self, timeout: float) -> bool:
        """Deliver all that is there, after a wait for some; whether there was any."""
        if not select.select([self.fd], [], [], max(0.0, timeout))[0]:
            return False
        code = self._dispatch(self._handle, DISPATCH_ALL)
        if self._error is not None:
            raise self._error
        if code != TRY_AGAIN:
            _check(code, "cpg_dispatch")
        return True

    def send_all(self, payload: bytes) -> None:
        """Wait until it is taken."""
        while not self.send(payload):
            self.read(0.002)

    def wait_for(self, members: int, timeout: float) -> None:
        until = time.monotonic() + timeout
        while len(self.members) < members:
            if time.monotonic() > until:
                raise TimeoutError(f"{members} members are not there, only {self.members}")
            self.read(0.1)

    def wait_gone(self, timeout: float) -> float:
        before, until = self.gone, time.monotonic() + timeout
        while self.gone == before:
            if time.monotonic() > until:
                raise TimeoutError("nobody is gone")
            self.read(until - time.monotonic())
        return time.monotonic()


def _check(code: int, what: str) -> None:
    if code != OK:
        raise CpgError(code, f"{what} answers {code}")


class _Program:
    """Sends and receives."""

    program: Program

    def __init__(self, space: str) -> None:
        self._group = Group(space, "bench")
        self._group.wait_for(PROCESSES, ROUND_WAIT_S)
        self._group.on_message = self._take
        self._waiting: deque[bytes] = deque()
        self._seq = 0
        self.submit = self._waiting.append

    def _take(self, payload: bytes) -> None:
        self._seq += 1
        self.program.deliver(self._seq, "corosync", payload)

    def turn(self) -> None:
        """Send until nothing more is taken, deliver all that has come."""
        waiting, group = self._waiting, self._group
        while waiting and group.send(waiting[0]):
            waiting.popleft()
        if group.read(0.001 if waiting else POLL_MS / 1000):
            self.program.note()
            self.program.fill()


class _Party:
    """Sends the number of its round, and goes on when all have."""

    _round = struct.Struct("!Q")

    def __init__(self, space: str, parties: int, name: str) -> None:
        self._group = Group(space, name)
        self._group.on_message = self._take
        self._group.wait_for(parties, ROUND_WAIT_S)
        self._parties = parties
        self._number = 0
        self._came: dict[int, int] = {}

    def _take(self, payload: bytes) -> None:
        (number,) = self._round.unpack(payload)
        self._came[number] = self._came.get(number, 0) + 1

    def wait(self) -> None:
        """One round."""
        number, self._number = self._number, self._number + 1
        self._group.send_all(self._round.pack(number))
        until = time.monotonic() + ROUND_WAIT_S
        while self._came.get(number, 0) < self._parties:
            if not self._group.read(until - time.monotonic()):
                raise TimeoutError(f"round {number} did not end: {self._came}")
        del self._came[number]


class _Writer:
    """Sends, and waits until it is delivered here; the first time, until all three daemons take part."""

    def __init__(self, me: int, where: Sequence[str]) -> None:
        self._spaces = [where[(me + step) % len(where)] for step in (1, 2, 0)]
        self._groups: list[Group] = []
        self._name = f"writes-{time.monotonic_ns()}"
        self._delivered = 0

    def write(self, timeout: float) -> None:
        until_done(self._attempt, timeout, (CpgError,))

    def _attempt(self, timeout: float) -> None:
        for space in self._spaces[len(self._groups) :]:
            self._groups.append(Group(space, self._name))
            if len(self._groups) == len(self._spaces):
                self._groups[-1].on_message = self._take
                self._groups[-1].wait_for(SERVERS, timeout)
        group, before = self._groups[-1], self._delivered
        until = time.monotonic() + timeout
        group.send_all(b"x" * 100)
        while self._delivered == before:
            if not group.read(until - time.monotonic()):
                raise TimeoutError("the message did not come back")

    def _take(self, payload: bytes) -> None:
        self._delivered += 1
