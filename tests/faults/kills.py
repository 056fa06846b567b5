"""Full load, and two leaders killed a minute: is anything lost, doubled or out of order, and how long is there none?

    python -m tests.faults kills --minutes 10

Three daemons as they are in production, each on a network of its own. On each node one program sends as fast as the
public library lets it, and one receives and writes every message down (``stream_program.py``). Twice a minute the
daemon that leads the group is killed, every second time after the name server's office was handed over to it, so that
both die at once; some seconds later it is started again, and its programs come back by themselves.

The *gap* of a kill is the longest time in which a receiver on another node got nothing, between the kill and the next
one: from the last message it got to the next one it gets, also if it was put out meanwhile and came back
(``silences.py``). How long the programs of the killed node itself were without a daemon is told apart: they wait for
its restart. When they are back they may lag, which counts in the longest gap *of any* receiver, and in that of no kill.
"""

from __future__ import annotations

import datetime
import os
import random
import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from groupsvc import clock
from groupsvc.errors import GroupServiceError
from groupsvc.testing.sim.ledger import commit

from . import silences
from .cluster import Cluster
from .streams import Streams
from .wires import Wires

NAMES = ("n1", "n2", "n3")
GROUP = "kills/stream"
DOWN_S = (1.0, 5.0)
"""How long a killed daemon is away."""

SERVERS_MIN = 2
"""A group whose leader has the only copy is not struck: what is lost with it is lost, and nobody promises otherwise."""

READY_S = 60.0
JUDGE_EVERY_S = 20.0


@attrs.define
class Kill:
    """One of them."""

    node: str
    at: float
    both: bool  # whether it was the name server, too
    down_s: float
    gap_s: float = 0.0
    back_s: float | None = None  # until its own programs were in the group again


@attrs.define(kw_only=True)
class KillRun:
    """So many minutes of it."""

    minutes: float = 10.0
    per_minute: float = 2.0
    seed: int = 1
    kills: list[Kill] = attrs.field(factory=list)
    gap_any_s: float = 0.0  # the longest of any receiver that had a daemon, at any time
    problems: list[str] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)  # why sessions of programs have ended

    def go(self) -> dict[str, Any]:
        """Run it; the line of the ledger."""
        with ExitStack() as stack:
            directory = Path(tempfile.mkdtemp(prefix="gsf-"))
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
            wires = stack.enter_context(Wires(NAMES))
            cluster = Production(wires, directory, journal_level="")
            stack.enter_context(cluster)
            streams = Streams(cluster, directory / "stream", GROUP)
            stack.callback(streams.close)
            streams.start()
            began = self._begin(cluster, streams)
            self._strike(cluster, streams, began)
            ended = clock.now()
            self.problems += streams.end()
            self.problems += map(str, cluster.look_who_ended())
            self.notes = streams.notes()
            self.measure(streams.silences(), ended)
            return self._line(streams, ended - began)

    def _begin(self, cluster: Cluster, streams: Streams) -> float:
        """All receive something, and three daemons hold the group."""
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            record = _record(cluster)
            if record is not None and len(record[1]) == 3 and streams.hearing >= 3:
                return clock.now()
            time.sleep(0.2)
        raise RuntimeError(f"the group has not begun in {READY_S:.0f} s: {_record(cluster)}")

    def _strike(self, cluster: Cluster, streams: Streams, began: float) -> None:
        rng, every_s, judged = random.Random(self.seed), 60.0 / self.per_minute, clock.now()
        ends, due, again = began + self.minutes * 60.0, began + 60.0 / self.per_minute / 2, dict[str, float]()
        while clock.now() < ends:
            for node in [node for node, at in again.items() if clock.now() >= at]:
                cluster.restart(node, wait=False)
                del again[node]
            if clock.now() >= due and not again and (kill := self._kill(cluster, rng)) is not None:
                self.kills.append(kill)
                again[kill.node] = kill.at + kill.down_s
                due += every_s
            if clock.now() - judged > JUDGE_EVERY_S:
                streams.order.judge()
                judged = clock.now()
                self._say(streams, judged - began)
            time.sleep(0.05)
        for node in again:
            cluster.restart(node, wait=False)
        cluster.wait_until_up(timeout=READY_S)
        _wait_for_receivers(streams)

    def _kill(self, cluster: Cluster, rng: random.Random) -> Kill | None:
        """None if there is nobody yet who could be killed without a copy being lost for good."""
        record = _record(cluster)
        if record is None or len(record[1]) < SERVERS_MIN:
            return None
        leader, wants_both = record[0], len(self.kills) % 2 == 1
        if wants_both and cluster.name_server() != leader:
            try:
                cluster.hand_over(leader, timeout=5.0)
            except GroupServiceError:
                return None
            record = _record(cluster)
            if record is None or record[0] != leader or len(record[1]) < SERVERS_MIN:
                return None
        both = cluster.name_server() == leader
        at = clock.now()
        cluster.kill(leader)
        return Kill(leader, at, both, rng.uniform(*DOWN_S))

    def _say(self, streams: Streams, seconds: float) -> None:
        order = streams.order
        print(
            f"{seconds:6.0f} s: {len(self.kills)} kills, {order.delivered} messages in one order,"
            f" {len(order.problems)} problems",
            flush=True,
        )

    def measure(self, logs: silences.Logs, ended: float) -> None:
        """What receivers wrote of their silences, by kill and in all."""
        found = silences.gaps(logs, [(kill.node, kill.at) for kill in self.kills], ended)
        self.gap_any_s = silences.longest(found)
        for number, kill in enumerate(self.kills):
            until = self.kills[number + 1].at if number + 1 < len(self.kills) else ended
            kill.gap_s = silences.after_kill(found, kill.node, kill.at, until)
            ((_, back),) = silences.away(logs.get(kill.node, ()), [kill.at])
            kill.back_s = back - kill.at if back < until else None

    def _line(self, streams: Streams, seconds: float) -> dict[str, Any]:
        gaps = sorted(kill.gap_s for kill in self.kills)
        delivered = streams.order.delivered
        return {
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "commit": commit(),
            "kind": "kills", "seconds": round(seconds, 1), "kills": len(self.kills),
            "of_both": sum(kill.both for kill in self.kills), "messages": delivered,
            "messages_per_s": round(delivered / seconds), "lives": len(streams.known()),
            "gap_s": round(max(gaps, default=0.0), 3),
            "gap_any_s": round(self.gap_any_s, 3), "gap_median_s": round(gaps[len(gaps) // 2], 3) if gaps else 0.0,
            "back_s": round(max((kill.back_s or 0.0 for kill in self.kills), default=0.0), 3),
            "load": round(os.getloadavg()[0], 1), "verdict": "red" if self.problems else "green",
            "problems": self.problems[:5],
        }  # fmt: skip


class Production(Cluster):
    """Daemons as they are: nobody stands around their reactors."""

    daemon_module = "groupsvcd"


def _record(cluster: Cluster) -> tuple[str, tuple[str, ...]] | None:
    """Leader and servers, by whoever answers."""
    for name in cluster.running:
        node = cluster.node(name)
        try:
            found = node.connection().look_up(GROUP, timeout=2.0)
        except GroupServiceError:
            node.disconnect()
            continue
        if found.exists and found.leader:
            return found.leader, found.servers
    return None


def _wait_for_receivers(streams: Streams) -> None:
    """Until every receiver is in the group again, so that senders can flush before everybody's eyes."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        if streams.receiving >= len(NAMES):
            return
        time.sleep(0.2)


def in_words(run: KillRun, line: dict[str, Any]) -> str:
    """For people."""
    rows = [
        f"  kill {number:3}: {kill.node}{', name server, too' if kill.both else ''}: gap {kill.gap_s:.3f} s,"
        f" its own programs back after {'never' if kill.back_s is None else f'{kill.back_s:.1f} s'}"
        f" (down {kill.down_s:.1f} s)"
        for number, kill in enumerate(run.kills, start=1)
    ]
    total = (
        f"{line['verdict']}: {line['kills']} kills in {line['seconds'] / 60:.1f} min ({line['of_both']} of the name"
        f" server, too), {line['messages']} messages in one order ({line['messages_per_s']} a second), longest gap in"
        f" service {line['gap_s']} s, median {line['gap_median_s']} s, of any receiver that had a daemon"
        f" {line['gap_any_s']} s, {line['lives']} lives of senders"
    )
    return "\n".join([*rows, total, *(f"    {problem}" for problem in run.problems[:20])])
