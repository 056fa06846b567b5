"""The clients of a run, as the harness has them: processes that are started, killed, stopped, asked how they are.

One that comes in the place of a dead one has another name, so that no two calls have one number. What befalls a process
is a line of the history: ``lines``.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attrs

from groupsvc import clock
from groupsvc.testing.local_node import environment
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent

from .cluster import Cluster
from .workloads import WORKLOADS

STARTS_S = 60.0
"""How long a process may take to begin at all: with ten of them on two busy cores it was more than twenty seconds."""

ANSWER_S = 20.0
"""How long a client may take to answer the harness on a busy machine: it may be in the middle of a knock."""


class Dumb(Exception):
    """A client does not answer, or has ended."""


@attrs.define(eq=False)
class Client:
    """One process."""

    name: str
    node: str
    process: subprocess.Popen[bytes]
    errors: Path
    is_stopped: bool = False
    has_begun: bool = False  # it has answered once
    _unread: bytes = b""

    def ask(self, words: dict[str, Any]) -> dict[str, Any]:
        """Its answer."""
        self.tell(words)
        return self.answer()

    def tell(self, words: dict[str, Any]) -> None:
        """An order; ``answer`` has to follow."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(words).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Dumb(f"{self.name} has ended: {self.last_words()}") from None

    def answer(self) -> dict[str, Any]:
        """To the order before."""
        assert self.process.stdout is not None
        wait_s = ANSWER_S if self.has_begun else STARTS_S
        until, fd = time.monotonic() + wait_s, self.process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([fd], [], [], max(0.0, until - time.monotonic()))
            read = os.read(fd, 65536) if ready else b""
            if not read:
                raise Dumb(f"{self.name} {'has ended' if ready else 'does not answer'}: {self.last_words()}")
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        self.has_begun = True
        return found

    def last_words(self) -> str:
        """What it wrote to its standard error."""
        return self.errors.read_text(errors="replace")[-2000:]


class Clients:
    """All of them."""

    def __init__(self, cluster: Cluster, directory: Path, workload: str, seed: int, *, durable: bool = False) -> None:
        self._cluster, self._directory, self._workload, self._seed = cluster, directory, workload, seed
        self._durable = durable
        self._all: dict[str, Client] = {}
        self._dead: list[tuple[str, str]] = []  # name and node of those whom somebody has to replace
        self.lines: list[HistoryEvent] = []
        directory.mkdir(parents=True, exist_ok=True)

    def start_all(self) -> None:
        """As many on each node as the workload says."""
        for node in self._cluster.names:
            for number in range(WORKLOADS[self._workload].per_node):
                self.start(f"{node}-{chr(ord('a') + number)}", node)

    def start(self, name: str, node: str) -> None:
        """One more."""
        told = {
            "address": self._cluster.address(node), "node": node, "name": name, "seed": self._seed,
            "workload": self._workload, "durable": self._durable, "file": str(self._directory / f"{name}.ndjson"),
        }  # fmt: skip
        errors = self._directory / f"{name}.err"
        with errors.open("wb") as file:
            process = subprocess.Popen(
                [*self._cluster.wires.inside(node), sys.executable, "-m", "tests.faults.client", json.dumps(told)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, env=environment(), cwd=self._cluster.root,
                start_new_session=True,
            )  # fmt: skip
        self._all[name] = Client(name, node, process, errors)

    @property
    def names(self) -> list[str]:
        """Of those who live."""
        return list(self._all)

    @property
    def group_names(self) -> list[str]:
        """Of the groups that they form."""
        return [f"apps-{number}" for number in range(WORKLOADS[self._workload].habits.groups)]

    def at(self, node: str) -> list[str]:
        """Of those who live on this node."""
        return [name for name, client in self._all.items() if client.node == node]

    def pids(self) -> dict[str, int]:
        """Of those who live."""
        return {name: client.process.pid for name, client in self._all.items()}

    # --- What befalls them ---

    def kill(self, name: str) -> None:
        """SIGKILL."""
        client = self._all.pop(name)
        client.process.kill()
        client.process.wait()
        _close(client.process)
        self._note(client, "process_ended", {"why": "killed"})
        self._dead.append((name, client.node))

    def replace_the_dead(self) -> None:
        """Each by another one."""
        dead, self._dead = self._dead, []
        for name, node in dead:
            first, _, number = name.partition("~")
            self.start(f"{first}~{int(number or 1) + 1}", node)

    def stop(self, name: str) -> None:
        """SIGSTOP."""
        client = self._all[name]
        client.process.send_signal(signal.SIGSTOP)
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, client.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        client.is_stopped = True
        self._note(client, "process_stopped", {})

    def go_on(self) -> None:
        """SIGCONT to all who were stopped."""
        for client in self._all.values():
            if client.is_stopped:
                client.is_stopped = False
                self._note(client, "process_goes_on", {})
                client.process.send_signal(signal.SIGCONT)

    def _note(self, client: Client, op: str, args: dict[str, Any]) -> None:
        now = clock.now()
        self.lines.append(
            HistoryEvent(v=SCHEMA_VERSION, i=0, t=now, local=now, node=client.node, who=client.name, op=op, args=args)
        )

    # --- What they say ---

    def ask(self, **words: Any) -> list[dict[str, Any]]:
        """The same of all; they answer side by side."""
        for client in self._all.values():
            client.tell(words)
        return [client.answer() for client in self._all.values()]

    def ended(self) -> list[str]:
        """Those who have ended by themselves, with their last words."""
        return [
            f"{name} ended with {client.process.poll()}: {client.last_words()}"
            for name, client in self._all.items()
            if client.process.poll() is not None
        ]

    def close(self) -> None:
        """End all."""
        for client in self._all.values():
            client.process.kill()
            client.process.wait()
            _close(client.process)
        self._all.clear()


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
