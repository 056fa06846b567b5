"""Locks that guard a fenced resource, under any nemesis: programs of the library, and what must hold of their lines.

Contenders (``tests/interop/lock_contender.py``) take turns, look at their guard before each use, note what it said,
and use the resource whatever it said. The resource notes every use and compares fences. All of it goes into the history
(``lock`` and ``use``), so that it can be judged again.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from groupsvc import clock
from groupsvc.errors import TimedOut
from groupsvc.testing.local_node import environment
from groupsvc.testing.sim.checkers import Violation
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent

from ..interop.fenced_resource import Resource
from .cluster import Cluster

ENDS_S = 30.0
"""A turn, a time-out, and what a busy machine takes."""


class Contenders:
    """So many at each node, for one lock."""

    def __init__(self, cluster: Cluster, directory: Path, per_node: int) -> None:
        directory.mkdir()
        self.resource = Resource(directory / "resource")
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for node in cluster.names:
            for number in range(per_node):
                who = f"{node}-lock-{number}"
                files = [str(directory / one) for one in ("resource", f"{who}.ndjson")]
                with (directory / f"{who}.err").open("wb") as errors:
                    self._processes[who] = subprocess.Popen(
                        [
                            *cluster.wires.inside(node), sys.executable, "-m", "tests.interop.lock_contender",
                            cluster.address(node), "faults/lock", who, *files,
                        ],
                        stdin=subprocess.PIPE, stderr=errors, env=environment(), cwd=cluster.root,
                    )  # fmt: skip

    def pids(self) -> dict[str, int]:
        """Of all."""
        return {who: process.pid for who, process in self._processes.items()}

    def waiting(self, since: float) -> list[str]:
        """Who has not entered since then, by ``time.monotonic``."""
        entered = {use.who for use in self.resource.uses if use.at > since and use.what == "enter" and use.is_taken}
        return sorted(set(self._processes) - entered)

    def ended(self) -> list[str]:
        """Who has ended by itself, and not as it should."""
        return [f"{who} ended with {process.poll()}" for who, process in self._processes.items()
                if process.poll() not in (None, 0)]  # fmt: skip

    def lines(self) -> list[HistoryEvent]:
        """What all of them wrote, and what the resource noted; in the clock of histories."""
        ahead = clock.now() - time.monotonic()
        found = [
            _line(
                "lock", float(line["at"]) + ahead, str(line["who"]), {**line, "asked": line.get("asked", 0.0) + ahead}
            )
            for path in sorted(self._directory.glob("*.ndjson"))
            for line in map(json.loads, path.read_bytes().rpartition(b"\n")[0].splitlines())
        ]
        found += [
            _line("use", use.at + ahead, use.who, {"what": use.what, "fence": use.fence, "is_taken": use.is_taken})
            for use in self.resource.uses
        ]
        return sorted(found, key=lambda line: line.t)

    def end(self) -> None:
        """All leave, and end by themselves; ``TimedOut`` if one does not."""
        for process in self._processes.values():
            assert process.stdin is not None
            process.stdin.close()
        for who, process in self._processes.items():
            try:
                code = process.wait(timeout=ENDS_S)
            except subprocess.TimeoutExpired:
                raise TimedOut(f"V7: {who} does not end though all is well") from None
            if code:
                words = (self._directory / f"{who}.err").read_text(errors="replace")[-1500:]
                raise TimedOut(f"{who} ended with {code}: {words}")

    def close(self) -> None:
        """End all."""
        for process in self._processes.values():
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        self.resource.close()


def _line(op: str, t: float, who: str, args: dict[str, object]) -> HistoryEvent:
    return HistoryEvent(v=SCHEMA_VERSION, i=0, t=t, local=t, who=who, op=op, args=args)


def violations(history: Sequence[HistoryEvent]) -> Iterator[Violation]:
    """L6: one turn for each fence, in the order of asking; nobody's guard says *held* when another has had its turn.

    The time of a ``held`` was taken before the guard was asked, that of a ``has`` after the lock was had. So a smaller
    fence that is held after a larger one was had is two at once. What the resource took never goes back.
    """
    had: dict[int, str] = {}
    newest, before_asking, used = 0, list[tuple[float, int]](), 0  # the largest fence had so far, and since when
    for line in history:
        if line.op == "use":
            fence = int(line.args["fence"])
            if line.args["is_taken"] and fence < used:
                yield Violation("L6", f"{line.who} used it with fence {fence}, after {used}", line.i)
            used = max(used, fence if line.args["is_taken"] else 0)
        elif line.op == "lock" and line.args["what"] == "has":
            fence, asked = int(line.args["fence"]), float(line.args["asked"])
            if had.setdefault(fence, line.who) != line.who or any(one == fence for _, one in before_asking):
                yield Violation("L6", f"{line.who} and {had[fence]} both have fence {fence}", line.i)
            top = max((one for at, one in before_asking if at < asked), default=-math.inf)
            if top > fence:
                yield Violation("L6", f"{line.who} has fence {fence}; before it asked somebody had {top:.0f}", line.i)
            before_asking.append((line.t, fence))
            newest = max(newest, fence)
        elif line.op == "lock" and line.args["what"] == "held" and int(line.args["fence"]) < newest:
            yield Violation("L6", f"{line.who} holds it by {line.args['fence']}, and {newest} was had before", line.i)
