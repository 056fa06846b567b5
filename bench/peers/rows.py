"""The rows of the comparison, and how each is measured at any peer.

A *visit* is one start of a peer's servers, all rows of it, and their end; what a row needs of a peer is in ``peer``.
The rows that kill come last. Every row checks what it measures: barriers, that nobody leaves a round before all have
come; messages, that none is missing, doubled, or in another order elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import attrs

from ..beside import run_beside
from ..companions import WAIT_S, found, process_context, ready, received, together
from ..load import Load
from .peer import START_WAIT_S, Cluster, Peer
from .witness import Witness, WitnessNotes, compared

MEMBERS = 3
GONE_WAIT_S = 30.0
FAILOVER_WAIT_S = 30.0
IDLE_S = 1.0
BEFORE_KILL_S = 0.3


@attrs.frozen
class Row:
    """One line of the table."""

    name: str
    title: str
    unit: str
    promise: str  # where a peer says what it promises here
    is_better_higher: bool = False
    needs: str = ""  # a row that must come before it


ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        Row("barrier-2", "barrier, 2 processes", "ms", "barrier"),
        Row("barrier-8", "barrier, 8 processes", "ms", "barrier"),
        Row("barrier-32", "barrier, 32 processes", "ms", "barrier"),
        Row("spark", "barrier of 8 Spark tasks", "ms", "spark"),
        Row("single", "100 B, one at a time, delivered at all 3", "ms", "multicast"),
        Row("one", "100 B, one sender, 256 under way", "per s", "multicast", is_better_higher=True),
        Row("three", "100 B, three senders, 256 under way each", "per s", "multicast", is_better_higher=True),
        Row("large", "10 kB, one sender, 256 under way", "per s", "multicast", is_better_higher=True),
        Row("client", "client killed, others told", "ms", "client"),
        Row("daemon", "server killed, members elsewhere told", "ms", "daemon"),
        Row("silent", "server paused, members elsewhere told", "ms", "silent"),
        Row("cut", "server cut off, members elsewhere told", "ms", "silent"),
        Row("leader", "leader killed, next write done", "ms", "write"),
        Row("start", "three servers: start to first replicated write", "s", "write"),
        Row("idle", "memory of a server, idle", "MiB", ""),
        Row("loaded", "memory of a server, after the load", "MiB", ""),
        Row("alarms", "false alarms: elections and changes of the servers under the load", "in all", ""),
    )
}

BARRIERS = {"barrier-2": 2, "barrier-8": 8, "barrier-32": 32}
LOADS = {
    "single": Load(senders=1, window=1),
    "one": Load(senders=1),
    "three": Load(senders=3),
    "large": Load(senders=1, size=10_000),
}

Found = Callable[[str, str, float], None]
"""Called with peer, row and figure."""

Failed = Callable[[str, str], None]
"""Called with a row and why it has no figure."""


@attrs.frozen
class Pace:
    """How long each thing is looked at."""

    seconds: float = 0.8
    rounds: float = 1.0  # of barriers, as a part of what the peer says

    def load(self, row: str) -> Load:
        """As the row has it, for as long as this."""
        load = LOADS[row]
        return Load(load.senders, load.size, load.window, self.seconds)


WHOLE, QUICK = Pace(), Pace(seconds=0.3, rounds=0.1)


def visit(
    peer: Peer, rows: frozenset[str], directory: Path, pace: Pace, found_at: Found, failed: Failed | None = None
) -> None:
    """Start the servers, measure those of ``rows`` that this peer has, and end them.

    A barrier or a load that fails is told to ``failed``, if that is given, and the visit goes on.
    """
    wanted = rows & peer.rows

    def tell(row: str, value: float) -> None:
        found_at(peer.name, row, value)

    def attempt(row: str, measure: Callable[[], float]) -> None:
        try:
            tell(row, measure())
        except Exception as error:
            if failed is None:
                raise
            failed(row, f"{type(error).__name__}: {error}")

    if "spark" in wanted:
        for name, value in peer.spark_barriers_ms().items():
            found_at(name, "spark", value)
    if not wanted - {"spark"}:
        return
    with peer.cluster(directory) as cluster:
        began = time.monotonic()
        cluster.start()
        if wanted & {"start", "daemon", "leader"} or "start" in peer.rows:
            peer.new_writer(0, cluster.where)(START_WAIT_S)
            if "start" in wanted:
                tell("start", time.monotonic() - began)
        cluster.settle()
        if "idle" in wanted:
            time.sleep(IDLE_S)
            tell("idle", cluster.resident_mib())
        formed = cluster.formations() if "alarms" in wanted else 0
        for row, parties in BARRIERS.items():
            if row in wanted:
                rounds = max(5, int(peer.barrier_rounds[parties] * pace.rounds))
                attempt(row, partial(barrier, peer, cluster, parties, rounds))
        for row in LOADS:
            if row in wanted:
                attempt(row, partial(multicast, peer, cluster, row, pace))
        if "loaded" in wanted:
            tell("loaded", cluster.resident_mib())
        if "alarms" in wanted:
            tell("alarms", cluster.formations() - formed)
        if "client" in wanted:
            tell("client", 1000 * statistics.median(client_killed(peer, cluster) for _ in range(peer.client_kills)))
        if "silent" in wanted:
            tell("silent", 1000 * server_paused(peer, cluster))
        if "cut" in wanted:
            attempt("cut", partial(_cut_off, peer, cluster, directory))
        if "daemon" in wanted:
            tell("daemon", 1000 * daemon_killed(peer, cluster, is_last="leader" not in wanted))
        if "leader" in wanted:
            tell("leader", 1000 * leader_killed(peer, cluster))


# --- Barriers ---


def barrier(peer: Peer, cluster: Cluster, parties: int, rounds: int) -> float:
    """Milliseconds of a round as the first party sees it, the median; nobody may leave before all have come."""
    cluster.ready_for(parties)
    warm_up = max(3, rounds // 5)
    name = f"barrier-{parties}-{time.monotonic_ns()}"
    arguments = ((peer, me, parties, name, cluster.where, warm_up + rounds) for me in range(parties))
    with together(_party, arguments) as ends:
        times = [received(end) for end in ends]
    for number in range(warm_up + rounds):
        last_came = max(of_one[number][0] for of_one in times)
        first_left = min(of_one[number][1] for of_one in times)
        if first_left < last_came:
            raise AssertionError(f"round {number} of {name} at {peer.name} let somebody go before all had come")
    return 1000 * statistics.median(left - came for came, left in times[0][warm_up:])


def _party(peer: Peer, me: int, parties: int, name: str, where: object, rounds: int, connection: Connection) -> None:
    wait = peer.new_party(me, parties, name, where)
    ready(connection)
    times = []
    for _ in range(rounds):
        came = time.perf_counter()
        wait()
        times.append((came, time.perf_counter()))
    found(connection, times)


# --- Messages ---


def multicast(peer: Peer, cluster: Cluster, row: str, pace: Pace) -> float:
    """Milliseconds of a message, the median, or messages per second."""
    cluster.ready_for(None)
    load = pace.load(row)
    seen: list[int] = []
    outcome = run_beside(
        load, peer.new_role, cluster.where, also=cluster.pids, new_program=Witness, noted=WitnessNotes,
        check=lambda notes: seen.append(compared(notes)),
    )  # fmt: skip
    if not seen or not seen[0]:
        raise AssertionError(f"nothing was delivered at all of {peer.name}")
    return outcome.rate if ROWS[row].is_better_higher else 1000 * outcome.latency


# --- Deaths ---


def client_killed(peer: Peer, cluster: Cluster) -> float:
    """Seconds until the last of the others, which are at other servers, is told that one was killed."""
    with _members(peer, cluster, range(MEMBERS)) as (ends, pids):
        killed = time.monotonic()
        os.kill(pids[0], signal.SIGKILL)
        return max(received(end) for end in ends[1:]) - killed


def daemon_killed(peer: Peer, cluster: Cluster, *, is_last: bool) -> float:
    """The same for a server with a member; it does not lead, if any does. It is started again if more is to come."""
    took, victim = _told_of_a_server(peer, cluster, cluster.kill)
    if not is_last:
        cluster.revive(victim)
    return took


def server_paused(peer: Peer, cluster: Cluster) -> float:
    """The same for a server that stands still, with all its connections open. It goes on afterwards."""
    took, victim = _told_of_a_server(peer, cluster, cluster.pause)
    cluster.resume(victim)
    return took


def _cut_off(peer: Peer, running: Cluster, directory: Path) -> float:
    """The same in milliseconds for a server that nobody can reach any more. It is connected again afterwards."""
    with peer.wired(directory, running) as cluster:
        took, victim = _told_of_a_server(peer, cluster, cluster.cut)
        cluster.mend(victim)
    return 1000 * took


def _told_of_a_server(peer: Peer, cluster: Cluster, strike: Callable[[int], None]) -> tuple[float, int]:
    """Seconds until the last member elsewhere is told, and which server it was."""
    victim = (cluster.leader() + 1) % MEMBERS
    order = [victim, *(number for number in range(MEMBERS) if number != victim)]
    with _members(peer, cluster, order) as (ends, _):
        struck = time.monotonic()
        strike(victim)
        return max(received(end) for end in ends[1:]) - struck, victim


@contextlib.contextmanager
def _members(peer: Peer, cluster: Cluster, servers: range | list[int]) -> Iterator[tuple[list[Connection], list[int]]]:
    """Three processes that are members and see each other; their ends and process ids."""
    context = process_context()
    ends, started = [], []
    try:
        for server in servers:
            mine, its = context.Pipe()
            listens = bool(started)  # the first one is to die
            process = context.Process(target=_member, args=(peer, server, cluster.where, listens, its), daemon=True)
            process.start()
            started.append(process)
            ends.append(mine)
        for end in ends:
            received(end)
        time.sleep(BEFORE_KILL_S)
        yield ends, [process.pid or 0 for process in started]
    finally:
        for process in started:
            process.kill()
            process.join()


def _member(peer: Peer, server: int, where: object, listens: bool, connection: Connection) -> None:
    member = peer.new_member(server, where)
    member.wait_for(MEMBERS, WAIT_S)
    connection.send(None)
    if listens:
        found(connection, member.wait_gone(GONE_WAIT_S))
    time.sleep(GONE_WAIT_S)


def leader_killed(peer: Peer, cluster: Cluster) -> float:
    """Seconds until somebody at another server has written again."""
    leader = cluster.leader()
    write = peer.new_writer((leader + 1) % MEMBERS, cluster.where)
    for _ in range(3):
        write(START_WAIT_S)
    time.sleep(BEFORE_KILL_S)
    killed = time.monotonic()
    cluster.kill(leader)
    write(FAILOVER_WAIT_S)
    return time.monotonic() - killed
