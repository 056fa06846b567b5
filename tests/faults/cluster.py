"""A cluster: real daemons, each in a network of its own, whose journals tell everything.

It is a ``LocalDomain`` whose nodes hang on ``Wires``. What a nemesis needs of a daemon before it starts (a library that
is loaded into it, a program around it, another disk under it) it says in ``Outfit``; the rest it does to the running
cluster. Starts and ends of processes are lines of the history, as only we can know them: ``lines``.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import attrs

from groupsvc import clock
from groupsvc.testing import LocalDomain
from groupsvc.testing.local_node import LocalNode, Setting, environment
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent

from .wires import Wires

PEER_PORT = 7000

ONE_FILE = 1 << 40
"""Bytes of a journal file: a run has one for each life of a daemon."""


@attrs.define
class Outfit:
    """How the daemon of one node is started, beside what is always so. Nemeses change it in ``prepare``."""

    environment: dict[str, str] = attrs.field(factory=dict)
    around: list[str] = attrs.field(factory=list)  # a program that becomes the daemon, or runs it as its child
    settings: dict[str, Setting] = attrs.field(factory=dict)  # of its configuration file
    before_start: list[Callable[[LocalNode], None]] = attrs.field(factory=list)  # each time, before its process begins

    def load(self, library: Path, **told: str) -> None:
        """Load this into it, beside what others have it load; with these variables."""
        loaded = filter(None, [self.environment.get("LD_PRELOAD"), str(library)])
        self.environment |= {"LD_PRELOAD": ":".join(loaded), **told}


@attrs.frozen
class Ended:
    """A daemon that ended by itself."""

    node: str
    code: int  # negative: a signal

    def __str__(self) -> str:
        return f"{self.node} ended with code {self.code}"


class ClusterNode(LocalNode):
    """A daemon in its network."""

    cluster: Cluster

    def start(self) -> None:
        """Start the process, in its outfit."""
        self.look_whether_it_ended()
        for action in self.cluster.outfits[self.name].before_start:
            action(self)
        super().start()
        self.cluster.note("process_start", self.name, {"pid": self.pid})

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        cluster, outfit = self.cluster, self.cluster.outfits[self.name]
        return subprocess.Popen(
            [
                *cluster.wires.inside(self.name), *outfit.around,
                sys.executable, "-m", cluster.daemon_module, "--config", str(self.config_file),
            ],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            env={**environment(), **outfit.environment}, cwd=cluster.root, start_new_session=True,
        )  # fmt: skip

    def _end(self, number: Any) -> None:
        self.look_whether_it_ended()
        was_running, t = self.is_running, clock.now()
        super()._end(number)
        if was_running:
            self.cluster.note("crash", self.name, {"why": number.name}, t=t)

    def look_whether_it_ended(self) -> None:
        """If it has, by itself, that is a line: behind the last one that it wrote."""
        if self._process is not None and not self._in_grave and not self.is_running:
            self._bury()
            code = self.exit_code
            assert code is not None
            self.cluster.note("crash", self.name, {"why": f"by itself, with code {code}", "by_itself": True})
            self.cluster.ended_by_themselves.append(Ended(self.name, code))

    def pause(self) -> None:
        super().pause()
        self.cluster.note("pause", self.name, {})

    def resume(self) -> None:
        self.cluster.note("resume", self.name, {})
        super().resume()


class Cluster(LocalDomain):
    """So many daemons on ``wires``; a context manager."""

    daemon_module = "tests.faults.traced_daemon"
    root = Path(__file__).parents[2]

    def __init__(
        self, wires: Wires, directory: Path, *, voters: int | None = None, outfits: Mapping[str, Outfit] | None = None,
        settings: Mapping[str, Setting] | None = None, timers: Mapping[str, float] | None = None,
        journal_level: str = "full", ready_timeout: float = 60.0,
    ) -> None:  # fmt: skip
        self.wires = wires
        self.outfits = {name: (outfits or {}).get(name) or Outfit() for name in wires.names}
        self.journals = directory / "journals"
        self.ended_by_themselves: list[Ended] = []
        self._lines: list[HistoryEvent] = []
        self._lock = threading.Lock()
        own: dict[str, Setting] = {"insecure": True}
        if journal_level:  # "": they keep none
            own |= {
                "journal_directory": str(self.journals), "journal_level": journal_level,
                "limits": {
                    "journal_file_bytes_max": ONE_FILE, "journal_file_seconds_max": 10**6, "journal_files_max": 999,
                },
            }  # fmt: skip
        super().__init__(
            nodes=len(wires.names), voters=voters, settings={**own, **(settings or {})}, timers=timers,
            directory=directory, ready_timeout=ready_timeout, name="faults",
        )  # fmt: skip
        self.node_class = type("ClusterNode", (ClusterNode,), {"cluster": self})

    def _new_peer_address(self, name: str) -> str:
        return f"tcp://{self.wires.addresses[name]}:{PEER_PORT}"

    def _make(self, name: str, settings: Mapping[str, Setting]) -> LocalNode:
        return super()._make(name, {**settings, **self.outfits[name].settings})

    # --- What it is known by ---

    def is_running(self, name: str) -> bool:
        """Whether there is a process, paused or not."""
        return self._node(name).is_running

    def is_paused(self, name: str) -> bool:
        """Whether we have stopped it."""
        return self._node(name).paused

    def node(self, name: str) -> LocalNode:
        """With its files."""
        return self._node(name)

    @property
    def running(self) -> list[str]:
        """The nodes whose process is there, and goes on."""
        return [name for name in self.names if self.is_running(name) and not self.is_paused(name)]

    # --- Lines of the history that only we can write ---

    def note(self, op: str, node: str, args: dict[str, Any], *, who: str = "daemon", t: float | None = None) -> None:
        """One line; by any thread."""
        at = clock.now() if t is None else t
        with self._lock:
            self._lines.append(
                HistoryEvent(v=SCHEMA_VERSION, i=0, t=at, local=at, node=node, who=who, op=op, args=args)
            )

    def lines(self) -> list[HistoryEvent]:
        """All of them."""
        with self._lock:
            return list(self._lines)

    def check_for_crashes(self) -> None:
        """How daemons may end is judged by the run (``endings.py``), which goes into the ledger either way."""

    def look_who_ended(self) -> list[Ended]:
        """Daemons that have ended by themselves, up to now: whoever did that wants to know (``endings.py``)."""
        for name in self.names:
            node = self._node(name)
            assert isinstance(node, ClusterNode)
            node.look_whether_it_ended()
        return list(self.ended_by_themselves)
