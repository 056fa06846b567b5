"""A domain of real daemons on this machine, one process each, for tests and for trying things out.

    with LocalDomain(nodes=3) as domain:
        domain.kill(domain.name_server())
        domain.wait_for_name_server()

The nodes are n1, n2, n3 …; the first ones are voters: all of up to three nodes, three of four, five of more.
What they own lives in a temporary directory that goes with the domain. Peers talk over loopback TCP, because
there a dead process refuses connections as it does in production; ``transport="ipc"`` uses sockets in the
directory instead.

With ``keys=True`` every daemon has a key pair and listens for clients at a tcp address, too, as across machines::

    with LocalDomain(keys=True) as domain, groupsvc.connect(domain.remote_address("n1"), keys=domain.keys) as session:

Everything that waits has a deadline and raises ``DomainNotReady``, which quotes the daemons' own last words:
whoever reads a failed test run should not have to look for log files that are already deleted.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from ..addresses import SOCKET_PATH_BYTES_MAX
from ..drivers.connection import DaemonConnection
from ..drivers.curve import new_keys
from ..errors import Failed, OutcomeUnknown, TimedOut, UsageError
from ..keys import Keys, write_keys
from ..session import Session, connect
from ..wire.client_messages import Status
from .local_node import LocalNode, Setting
from .loopback_ports import PortBlock
from .undertaker import Undertaker

READY_WAIT_S = 15.0
"""How long a domain may take to come up on a machine that is busy with other tests."""

POLL_S = 0.01

SPARE_KEYS = 3
"""With keys, all daemons know those of so many more nodes: the next numbers, for ``add``."""


class DomainNotReady(TimedOut):
    """The domain did not get where it was awaited; the text has what every daemon said last."""


class DaemonCrashed(Failed):
    """A daemon was ended by a signal that nobody had sent; the text has what it said last."""


class LocalDomain:
    """Real daemons, one process each; a context manager, and started by entering it."""

    node_class: type[LocalNode] = LocalNode

    def __init__(
        self,
        nodes: int = 3,
        *,
        voters: int | None = None,
        transport: Literal["tcp", "ipc"] = "tcp",
        name: str = "local",
        timers: Mapping[str, float] | None = None,
        settings: Mapping[str, Setting] | None = None,
        directory: str | os.PathLike[str] | None = None,
        ready_timeout: float = READY_WAIT_S,
        keys: bool = False,
    ) -> None:
        """``settings`` go into every daemon's file; a ``directory`` that is given is kept; ``keys``: all have some."""
        if nodes < 1:
            raise UsageError(f"a domain has at least one node, not {nodes}")
        count = _default_voters(nodes) if voters is None else voters
        if not 1 <= count <= nodes:
            raise UsageError(f"{count} voters are not possible with {nodes} nodes")
        self.ready_timeout = ready_timeout
        self._first_names = tuple(f"n{number}" for number in range(1, nodes + 1))
        self._voter_names = self._first_names[:count]
        self._transport = transport
        self._own_directory = directory is None
        self._directory = Path(directory or ".").absolute()
        self._settings: dict[str, Setting] = {"domain": name, "log_level": "info", **(settings or {})}
        if timers:
            self._settings["timers"] = dict(timers)
        self._ports: list[PortBlock] = []
        self._peer_addresses: dict[str, str] = {}
        self._nodes: dict[str, LocalNode] = {}
        self._removed: list[LocalNode] = []
        self._undertaker: Undertaker | None = None
        self._remote_addresses: dict[str, str] = {}
        planned = [*self._first_names, *(f"n{nodes + number}" for number in range(1, SPARE_KEYS + 1))]
        self._node_keys = {name: new_keys() for name in planned} if keys else {}
        self._client_keys = new_keys(tuple(pair.public for pair in self._node_keys.values())) if keys else None

    # --- Start and stop ---------------------------------------------------------------------------------

    def start(self, *, wait: bool = True) -> None:
        """Start all daemons; with ``wait`` until a name server answers and every node is up."""
        if self._undertaker is not None:
            raise UsageError("this domain was started already")
        if self._own_directory:
            self._directory = Path(tempfile.mkdtemp(prefix="groupsvc-")).absolute()
        self._directory.mkdir(parents=True, exist_ok=True)
        self._undertaker = Undertaker(remove=self._directory if self._own_directory else None)
        try:
            for name in self._voter_names:
                self._peer_addresses[name] = self._new_peer_address(name)
            for name in self._first_names:
                self._make(name, {})
            for name in self._first_names:
                self._nodes[name].start()
            if wait:
                self.wait_until_up()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all daemons and remove what they own; may be called again."""
        for node in self._nodes.values():
            with contextlib.suppress(UsageError):
                node.stop()
        for block in self._ports:
            block.close()
        self._ports.clear()
        if self._undertaker is not None:
            self._undertaker.close()

    def __repr__(self) -> str:
        return f"<LocalDomain of {', '.join(self.names)}>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if error is None:
            self.check_for_crashes()

    # --- Who is there -----------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """All nodes ever started here, running or not."""
        return tuple(self._nodes) or self._first_names

    @property
    def voters(self) -> tuple[str, ...]:
        """The nodes that hold the directory."""
        return self._voter_names

    @property
    def directory(self) -> Path:
        """Where the daemons' files, sockets and logs are, once started."""
        return self._directory

    def address(self, name: str) -> str:
        """Where applications reach the daemon of ``name``."""
        return self._node(name).client_address

    def remote_address(self, name: str) -> str:
        """Where programs with ``keys`` reach the daemon of ``name``, as if they were on another machine."""
        self._node(name)
        if name not in self._remote_addresses:
            raise UsageError("this domain has no keys; make it with keys=True")
        return self._remote_addresses[name]

    @property
    def keys(self) -> Keys:
        """Those of a program that all daemons let in at their ``remote_address``."""
        if self._client_keys is None:
            raise UsageError("this domain has no keys; make it with keys=True")
        return self._client_keys

    def connect(self, name: str, **options: Any) -> Session:
        """A session at that node; ``options`` are those of ``groupsvc.connect``."""
        return connect(self.address(name), **options)

    def peer_address(self, name: str) -> str:
        """Where other daemons reach the one of ``name``; its multicasts come from the port after it."""
        self._node(name)
        return self._peer_addresses[name]

    def name_server(self) -> str | None:
        """The node that is name server now, by its own word and lease; None if none answers."""
        offices = [found for found in self._statuses() if _holds_office(found)]
        return max(offices, key=lambda found: found.epoch).node if offices else None

    def status(self, name: str) -> Status | None:
        """What the daemon of ``name`` knows, or None if it does not answer."""
        return self._node(name).status()

    def pid(self, name: str) -> int:
        """The process id of the daemon of ``name``."""
        return self._node(name).pid

    def logs(self, name: str) -> str:
        """Everything the daemon of ``name`` has written, over all its runs."""
        return self._node(name).logs()

    def exit_code(self, name: str) -> int | None:
        """How the daemon of ``name`` ended; negative is a signal, None while it runs."""
        return self._node(name).exit_code

    # --- What can be done to it -------------------------------------------------------------------------

    def kill(self, name: str) -> None:
        """SIGKILL the daemon."""
        self._node(name).kill()

    def terminate(self, name: str) -> None:
        """Let the daemon end by itself, saying goodbye."""
        self._node(name).stop()

    def restart(self, name: str, *, wait: bool = True) -> None:
        """Start the daemon again with the state it has; a running one is ended first.

        With ``wait`` until it is up, for which a majority of the voters must run. After all of them were killed none is
        up alone: restart each with ``wait=False``, then ``wait_until_up()``.
        """
        node = self._node(name)
        if node.is_running:
            node.stop()
        node.start()
        if wait:
            self.wait_until_up(name)

    def pause(self, name: str) -> None:
        """SIGSTOP: alive to the kernel, silent to everybody else."""
        self._node(name).pause()

    def resume(self, name: str) -> None:
        """SIGCONT."""
        self._node(name).resume()

    def hand_over(self, to: str, *, timeout: float | None = None) -> None:
        """Make the voter ``to`` name server; asked again while ``to`` lags a little behind."""

        def handed_over() -> bool:
            with (
                contextlib.suppress(Failed, OutcomeUnknown),
                DaemonConnection(self.address(to), client="test") as asker,
            ):
                asker.hand_over(to, timeout=1.0)
            return self.name_server() == to

        if self.name_server() != to:
            self.wait_until(handed_over, f"{to} is name server", timeout=timeout)

    def lose_state(self, name: str) -> None:
        """Empty the state directory of a daemon that does not run."""
        self._node(name).lose_state()

    def heal(self) -> None:
        """Resume the paused, start the dead, and wait until all are up."""
        for node in self._nodes.values():
            if node.paused:
                node.resume()
            elif not node.is_running:
                node.start()
        self.wait_until_up()

    def check_for_crashes(self) -> None:
        """``DaemonCrashed`` if a daemon did, since this was asked last; also if it was started again since."""
        nodes = [*self._nodes.values(), *self._removed]
        for node in nodes:
            node.look_for_crash()
        crashes = [node.crash for node in nodes if node.crash]
        for node in nodes:
            node.crash = ""
        if crashes:
            raise DaemonCrashed("\n".join(crashes))

    def remove(self, name: str) -> None:
        """End the daemon and forget it here; the others remember it as down."""
        node = self._node(name)
        node.stop()
        self._removed.append(node)
        del self._nodes[name]

    def add(self, name: str, *, wait: bool = True, settings: Mapping[str, Setting] | None = None) -> None:
        """One more node, no voter; ``settings`` replace what the others have in their files."""
        if self._undertaker is None:
            raise UsageError("start the domain before adding a node to it")
        if name in self._nodes:
            raise UsageError(f"there is a node {name!r} already; use restart")
        self._make(name, settings or {}).start()
        if wait:
            self.wait_until_up(name)

    # --- Waiting ----------------------------------------------------------------------------------------

    def wait_for_name_server(self, *, timeout: float | None = None) -> str:
        """The name server, as soon as there is one."""
        found: list[str] = []

        def answered() -> bool:
            found[:] = filter(None, [self.name_server()])
            return bool(found)

        self.wait_until(answered, "there is a name server", timeout=timeout)
        return found[0]

    def wait_until_up(self, *names: str, timeout: float | None = None) -> None:
        """Until the name server lists ``names`` (default: all that run) as up, each has a lease, no voter is blank."""
        wanted = names or tuple(name for name, node in self._nodes.items() if node.is_running and not node.paused)

        def up() -> bool:
            self._check_for_early_deaths(wanted)
            return self._are_up(wanted)

        self.wait_until(up, f"{', '.join(wanted)} are up", timeout=timeout)

    def wait_until(self, condition: Callable[[], bool], what: str, *, timeout: float | None = None) -> None:
        """Until ``condition()`` is true; ``DomainNotReady`` with every daemon's last words otherwise."""
        limit = self.ready_timeout if timeout is None else timeout
        until = time.monotonic() + limit
        while not condition():
            if time.monotonic() >= until:
                raise DomainNotReady(f"after {limit:g} s it is not true that {what}\n{self._last_words()}")
            time.sleep(POLL_S)

    def _are_up(self, wanted: tuple[str, ...]) -> bool:
        leader = self.name_server()
        head = None if leader is None else self._node(leader).status()
        if head is None:
            return False
        up = {node.name: node.incarnation for node in head.nodes if node.status == "up"}
        own = {found.node: found for found in self._statuses()}
        return all(
            name in own
            and up.get(name) == own[name].incarnation
            and not own[name].suspended
            and own[name].role != "blank voter"
            and own[name].name_server == leader
            for name in wanted
        )

    def _check_for_early_deaths(self, wanted: tuple[str, ...]) -> None:
        """A daemon that refused to start will not come up by waiting."""
        ended = [name for name in wanted if not self._node(name).is_running]
        if ended:
            raise DomainNotReady(f"{', '.join(ended)} ended instead of coming up\n{self._last_words()}")

    # --- Inside -----------------------------------------------------------------------------------------

    def _statuses(self) -> list[Status]:
        return [found for node in self._nodes.values() if (found := node.status()) is not None]

    def _node(self, name: str) -> LocalNode:
        if name not in self._nodes:
            known = ", ".join(self._nodes) or "none, it was not started"
            raise UsageError(f"this domain has no node {name!r}; it has {known}")
        return self._nodes[name]

    def _make(self, name: str, settings: Mapping[str, Setting]) -> LocalNode:
        assert self._undertaker is not None
        if name not in self._peer_addresses:
            self._peer_addresses[name] = self._new_peer_address(name)
        merged: dict[str, Setting] = {
            **self._settings,
            "address": self._peer_addresses[name],
            "voters": {voter: self._peer_addresses[voter] for voter in self._voter_names},
            **self._settings_about_keys(name),
            **settings,
        }
        node = self.node_class(name, self._directory, self._undertaker, merged)
        if len(node.client_address.removeprefix("ipc://").encode()) + len(".pub") > SOCKET_PATH_BYTES_MAX:
            raise UsageError(f"{self._directory} is too long a path for sockets in it; set TMPDIR to a shorter one")
        self._nodes[name] = node
        return node

    def _settings_about_keys(self, name: str) -> dict[str, Setting]:
        """A node that nobody planned has a key that nobody lists, and is a stranger."""
        if self._client_keys is None:
            return {}
        file = self._directory / f"{name}.key"
        if not file.exists():
            write_keys(self._directory, name, self._node_keys.get(name) or new_keys())
        if name not in self._remote_addresses:
            block = PortBlock()
            self._ports.append(block)
            self._remote_addresses[name] = block.address
        return {
            "key_file": str(file),
            "listen_clients": self._remote_addresses[name],
            "node_keys": {node: pair.public for node, pair in self._node_keys.items() if node != name},
            "client_keys": {"client": self._client_keys.public},
        }

    def _new_peer_address(self, name: str) -> str:
        if self._transport == "ipc":
            return f"ipc://{self._directory / name}.peer"
        block = PortBlock()
        self._ports.append(block)
        return block.address

    def _last_words(self) -> str:
        return "\n".join(f"  {node.name} ({_condition(node)}) said last:\n{node.last_lines()}"
                         for node in self._nodes.values())  # fmt: skip


def _default_voters(nodes: int) -> int:
    return 5 if nodes >= 5 else min(nodes, 3)


def _holds_office(status: Status) -> bool:
    return status.role == "name server" and not status.suspended and status.lease_left > 0


def _condition(node: LocalNode) -> str:
    if node.paused:
        return "paused"
    if node.is_running:
        return "running"
    return "never started" if node.exit_code is None else f"ended with code {node.exit_code}"
