"""The programs of a stream as the harness has them: a sender and a receiver on each node, and what they wrote.

Beside ``Clients``, whose calls are judged by the checkers of the simulator, these use the public library and nothing
else, are as fast as it is, and are judged by what every user would look at: the messages (``stream_log.py``).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from groupsvc.testing.local_node import environment

from .cluster import Cluster
from .silences import Silence, read
from .stream_log import OVER, STAY, Orders

STARTS_S = 60.0
ENDS_S = 90.0


class Streams:
    """A sender and a receiver on each node; a context manager."""

    def __init__(
        self, cluster: Cluster, directory: Path, group: str, *, rate: int = 0, attributes: dict[str, Any] | None = None
    ) -> None:
        directory.mkdir(parents=True)
        self.group, self.directory, self.order = group, directory, Orders(directory)
        self._cluster, self._rate, self._attributes = cluster, rate, attributes or {}
        self.programs: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """All of them; receivers first, so that they see everything."""
        for number, node in enumerate(self._cluster.names, start=1):
            self._start("receive", number, node)
        until = time.monotonic() + STARTS_S
        while self.receiving < len(self._cluster.names) and time.monotonic() < until:
            time.sleep(0.1)
        for number, node in enumerate(self._cluster.names, start=1):
            self._start("send", number, node)

    def _start(self, role: str, number: int, node: str) -> None:
        told = {
            "address": self._cluster.address(node), "number": number, "group": self.group, "rate": self._rate,
            "directory": str(self.directory), "attributes": self._attributes,
        }  # fmt: skip
        with (self.directory / f"{node}-{role}.err").open("wb") as errors:
            self.programs[f"{node}-{role}"] = subprocess.Popen(
                [
                    *self._cluster.wires.inside(node), sys.executable, "-m", "tests.faults.stream_program", role,
                    json.dumps(told),
                ],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment(),
                cwd=self._cluster.root, start_new_session=True,
            )  # fmt: skip

    def pids(self) -> dict[str, int]:
        """By name."""
        return {name: program.pid for name, program in self.programs.items()}

    @property
    def receiving(self) -> int:
        """How many receivers are in the group."""
        return sum(not stay.with_suffix(OVER).exists() for stay in self.directory.glob(f"*{STAY}"))

    @property
    def hearing(self) -> int:
        """How many receivers have got something, ever."""
        return sum(any(one.why == "first" for one in log) for log in self.silences().values())

    def silences(self) -> dict[str, list[Silence]]:
        """By node, what its receiver wrote down of them."""
        nodes = enumerate(self._cluster.names, start=1)
        return {node: read(self.directory / f"r{number}.silences") for number, node in nodes}

    def end(self) -> list[str]:
        """All flush and end, senders first; what is wrong with how they did, and with what they sent and received."""
        problems = []
        for role in ("send", "receive"):
            ending = {name: one for name, one in self.programs.items() if name.endswith(role)}
            for program in ending.values():
                assert program.stdin is not None
                program.stdin.close()
            for name, program in ending.items():
                problems += self._ended(name, program, role)
        self.order.judge(is_end=True)
        self.order.settle(self.known())
        return problems + self.order.problems

    def _ended(self, name: str, program: subprocess.Popen[bytes], role: str) -> list[str]:
        assert program.stdout is not None
        try:
            code = program.wait(timeout=ENDS_S)
        except subprocess.TimeoutExpired:
            return [f"V7: {name} does not end though all is well"]
        words = (self.directory / f"{name}.err").read_text(errors="replace").strip()
        if code or words:
            return [f"{name} ended with {code}: {words[-1000:]}"]
        if role == "send" and program.stdout.read() != b"flushed\n":
            return [f"B2: {name} could not flush when all was well"]
        return []

    def notes(self) -> list[str]:
        """Why lives have ended, by anybody who had more than one."""
        return [line for path in sorted(self.directory.glob("*.notes")) for line in path.read_text().splitlines()]

    def known(self) -> dict[int, int]:
        """By life of a sender, what it knows to be delivered."""
        found = {}
        for path in self.directory.glob("*.known"):
            words = path.read_text().split()
            found[int(path.stem)] = int(words[0]) if words else 0
        return found

    def close(self) -> None:
        """End what still runs."""
        for program in self.programs.values():
            program.kill()
            program.wait()
            for pipe in (program.stdin, program.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()
