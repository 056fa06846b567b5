"""The floor: a bare pyzmq hub with client processes. It promises nothing, and nothing with ZeroMQ is faster."""

from __future__ import annotations

import multiprocessing.process
import os
import signal
from pathlib import Path
from typing import Any

from ..barriers import _at_hub, _hub
from ..beside import Role
from ..client_hub import _Client
from ..client_hub import _hub as _multicast_hub
from ..companions import process_context
from .peer import Cluster, Peer, Wait


class Hub(Cluster):
    """Not three servers: one process for each program run, started by whoever asks for it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.where = f"ipc://{directory / 'hub.sock'}"
        self._hub: multiprocessing.process.BaseProcess | None = None

    def start(self) -> None:
        """Nothing yet: which hub it is depends on the row."""

    def ready_for(self, parties: int | None) -> None:
        """A hub that counts so many parties, or orders messages if None; the one before is ended."""
        self.stop()
        target, given = (_multicast_hub, ()) if parties is None else (_hub, (parties,))
        self._hub = process_context().Process(target=target, args=(self.where, *given), daemon=True)
        self._hub.start()

    @property
    def pids(self) -> list[int]:
        return [self._hub.pid] if self._hub is not None and self._hub.pid is not None else []

    def stop(self) -> None:
        if self._hub is not None and self._hub.pid is not None:
            os.kill(self._hub.pid, signal.SIGKILL)
            self._hub.join()
        self._hub = None


class Floor(Peer):
    """One socket that counts, or gives numbers."""

    name = "floor"
    title = "bare hub"
    client = "Python, pyzmq"
    rows = frozenset({"barrier-2", "barrier-8", "barrier-32", "single", "one", "three", "large"})
    without = {"*": "a hub has no members, no copies and no leader"}
    promises = {
        "barrier": "counted by one process; nobody is noticed to die",
        "multicast": "one process gives numbers; memory, no copy, no acknowledgement",
    }

    def version(self) -> str:
        import zmq

        return f"pyzmq {zmq.pyzmq_version()}, libzmq {zmq.zmq_version()}"

    def new_cluster(self, directory: Path) -> Hub:
        return Hub(directory)

    def new_role(self, me: int, where: Any) -> Role:
        return _Client(me, where)

    def new_party(self, me: int, parties: int, round_name: str, where: Any) -> Wait:
        return _at_hub(me, where)
