"""Programs that send and read all the time, while daemons come and go; and what must be true of what they saw."""

from __future__ import annotations

import threading
from itertools import pairwise

import attrs

import groupsvc
from groupsvc.errors import GroupServiceError
from groupsvc.testing import LocalDomain

GROUP = "under-load"
PATIENCE_S = 30.0
BURST = 20
"""Messages that a worker sends before it waits for all of them."""


@attrs.define
class Worker:
    """A program at one node that sends and reads all the time, and comes again when its daemon was replaced."""

    domain: LocalDomain
    node: str
    all_are_done: threading.Barrier  # who left earlier could leave the group to end, and to be another one
    stop: threading.Event = attrs.field(factory=threading.Event)
    certain: set[bytes] = attrs.field(factory=set)  # it was told that these are sent
    sent: set[bytes] = attrs.field(factory=set)
    lives: list[list[tuple[int, bytes]]] = attrs.field(factory=list)  # of each membership: what it was told
    problem: BaseException | None = None

    def run(self) -> None:
        """Until it is stopped."""
        try:
            while True:
                try:
                    self._live()
                    return
                except GroupServiceError:
                    self.domain.wait_until(lambda: self.domain.status(self.node) is not None, f"{self.node} runs again")
        except BaseException as problem:
            self.problem = problem

    def _live(self) -> None:
        life = len(self.lives)
        with self.domain.connect(self.node, default_timeout=10.0) as session:
            group = session.join(GROUP, name=f"{self.node}-{life}", events=True)
            told: list[tuple[int, bytes]] = []
            self.lives.append(told)
            try:
                for burst in range(1_000_000):
                    payloads = [f"{self.node}/{life}/{burst}/{n}".encode() for n in range(BURST)]
                    for payload in payloads:
                        self.sent.add(payload)
                        group.multicast(payload)
                    group.flush()
                    self.certain.update(payloads)
                    if self.stop.is_set():
                        group.sync()
                        self.all_are_done.wait(PATIENCE_S)
                        return
                    self.stop.wait(0.02)
            finally:
                told += [(one.seq, one.payload) for one in group.events(timeout=0) if isinstance(one, groupsvc.Message)]


@attrs.define
class Load:
    """A worker at every node, and what must be true of what they saw."""

    workers: list[Worker]
    threads: list[threading.Thread]

    @classmethod
    def on(cls, domain: LocalDomain, *nodes: str) -> Load:
        """Begins at once, at these nodes or at all."""
        nodes = nodes or domain.names
        barrier = threading.Barrier(len(nodes))
        workers = [Worker(domain, node, barrier) for node in nodes]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        for thread in threads:
            thread.start()
        return cls(workers, threads)

    def wait_for_more(self, domain: LocalDomain) -> None:
        """Until every worker has got some more messages out."""
        before = {worker.node: len(worker.certain) for worker in self.workers}
        domain.wait_until(
            lambda: all(len(worker.certain) > before[worker.node] for worker in self.workers), "messages go on"
        )

    def end(self) -> None:
        """Ends it and judges: B1 (nothing twice or invented), B4 (one order, no gap), Q1 (nothing certain is lost)."""
        for worker in self.workers:
            worker.stop.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert [None] * len(self.workers) == [worker.problem for worker in self.workers]
        at: dict[int, bytes] = {}
        for worker in self.workers:
            for told in worker.lives:
                assert all(one[0] < other[0] for one, other in pairwise(told))
                for seq, payload in told:
                    assert payload == at.setdefault(seq, payload)
        assert len(at) == len(set(at.values()))
        assert set() == set(at.values()) - {payload for worker in self.workers for payload in worker.sent}
        assert set() == {payload for worker in self.workers for payload in worker.certain} - set(at.values())
        everything = sorted(at)
        for worker in self.workers:
            for told in worker.lives:
                if told:
                    between = [seq for seq in everything if told[0][0] <= seq <= told[-1][0]]
                    assert between == [seq for seq, _ in told]
