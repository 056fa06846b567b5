"""Programs that send and read all the time, while daemons come and go; and what must be true of what they saw."""

from __future__ import annotations

import threading
from itertools import pairwise

import attrs

import groupsvc
from groupsvc.errors import GroupServiceError
from groupsvc.testing import LocalDomain

Place = tuple[int, int]
"""Which group, and which entry of it: entries are counted anew in a group that was formed when all had been thrown out
of the one before, as can happen on a slow machine."""

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
    lives: list[list[tuple[Place, bytes]]] = attrs.field(factory=list)  # of each membership: what it was told
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
            told: list[tuple[Place, bytes]] = []
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
                messages = (one for one in group.events(timeout=0) if isinstance(one, groupsvc.Message))
                told += [((one.view.position.numbering[0], one.seq), one.payload) for one in messages]


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
        at: dict[Place, bytes] = {}
        for worker in self.workers:
            for told in worker.lives:
                assert all(one[0] < other[0] for one, other in pairwise(told))
                for place, payload in told:
                    assert payload == at.setdefault(place, payload), self._what_became_of_the_quorum()
        assert len(at) == len(set(at.values())), self._what_became_of_the_quorum()
        assert set() == set(at.values()) - {payload for worker in self.workers for payload in worker.sent}
        assert set() == {payload for worker in self.workers for payload in worker.certain} - set(at.values())
        everything = sorted(at)
        for worker in self.workers:
            for told in worker.lives:
                if told:
                    between = [place for place in everything if told[0][0] <= place <= told[-1][0]]
                    assert between == [place for place, _ in told]

    def _what_became_of_the_quorum(self) -> list[str]:
        """A group in memory goes on without it, and what was lost is no broken promise then."""
        domain = self.workers[0].domain
        return [line for name in domain.names for line in domain.logs(name).splitlines() if "quorum" in line]
