"""What groups cost: who carries which bytes, what receivers can hold up, and what an idle group needs.

Driven by hand, without faults: the simulated network counts every byte, and nothing happens that the test did not ask
for.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence

from groupsvc.testing.sim import World
from groupsvcd.core.engine import Engine
from groupsvcd.core.events import LocalCall
from groupsvcd.core.nodegroups.group_status import GroupStatus
from groupsvcd.core.stream.entries import Entry
from groupsvcd.core.views import NodeId

IDLE_GROUP_BYTES_MAX = 20 * 1024


class Listener:
    """A program that counts what it gets."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.lost_because = ""

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """Nothing to do."""

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """Keep what programs sent."""
        self.bodies += [entry.body for entry in entries if entry.origin]

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Nothing to do."""

    def lost(self, reason: str) -> None:
        """Keep the reason."""
        self.lost_because = reason


class Stage:
    """A calm world in which groups are used by hand."""

    def __init__(self, nodes: int, **parameters: object) -> None:
        self.world = World(1, nodes, voters=3, parameters=parameters, drift=False)
        self.world.run(until=3.0)
        self.listeners: dict[str, Listener] = {}
        self.all_listeners: list[Listener] = []

    def engine(self, name: str) -> Engine:
        """The engine of a node."""
        engine = self.world.nodes[name].engine
        assert isinstance(engine, Engine)
        return engine

    def join(self, name: str, group: str = "g") -> Listener:
        """A program at ``name`` joins."""
        listener = self.listeners[name] = Listener()
        self.all_listeners.append(listener)
        groups = self.engine(name).groups
        self.world.nodes[name].step(LocalCall(lambda: groups.join(group, {}, listener)))
        return listener

    def leave(self, name: str, group: str = "g") -> None:
        """The program at ``name`` leaves."""
        groups, listener = self.engine(name).groups, self.listeners[name]
        self.world.nodes[name].step(LocalCall(lambda: groups.leave(group, listener)))

    def submit(self, name: str, *bodies: bytes, group: str = "g") -> None:
        """The program at ``name`` submits."""
        groups = self.engine(name).groups
        self.world.nodes[name].step(LocalCall(lambda: groups.submit(group, bodies)))

    def run(self, seconds: float) -> None:
        """Time passes; nothing may break."""
        self.world.run(until=self.world.t + seconds)
        assert [] == self.world.failures

    def status(self, name: str, group: str = "g") -> GroupStatus:
        """How the node sees the group."""
        return next(one for one in self.engine(name).groups.status() if one.name == group)

    def bytes_sent(self, name: str) -> int:
        """By this node to all others, all topics."""
        traffic = self.world.network.traffic()
        return sum(counted.bytes for (source, _, _), counted in traffic.items() if source == name)


def _bytes_by_the_leader(payload: bytes) -> int:
    stage = Stage(5)
    for name in ("n4", "n1", "n2", "n5"):
        stage.join(name)
        stage.run(0.5)
    assert ("leader", "server", "receiver") == tuple(stage.status(name).role for name in ("n4", "n2", "n5"))
    before = stage.bytes_sent("n4")
    for _ in range(5):
        stage.submit("n2", payload)
        stage.run(0.1)
    assert [[payload] * 5] * 4 == [stage.listeners[name].bodies for name in ("n4", "n1", "n2", "n5")]
    return stage.bytes_sent("n4") - before


def test_the_leader_does_not_carry_what_others_send_in_bulk() -> None:
    """SAM-04: ten times the payload, the same bytes from the leader; small messages ride with their order."""
    small, large, larger = (_bytes_by_the_leader(bytes(size)) for size in (1_000, 100_000, 1_000_000))
    assert small > 5 * 1_000
    assert abs(larger - large) < 500
    assert larger < 10_000


def test_receivers_that_come_and_go_never_pause_ordering() -> None:
    """SAM-12: a hundred receivers join and leave while a member sends; no message waits longer than without them."""
    stage = Stage(104)
    for name in ("n4", "n1", "n2"):
        stage.join(name)
        stage.run(0.3)
    epoch = stage.status("n4").epoch
    receivers = [f"n{number}" for number in range(5, 105)]

    def longest_wait() -> float:
        waits = []
        for number in range(200):
            body = b"%d" % number
            stage.submit("n1", body)
            began = stage.world.t
            assert stage.world.run_until(
                lambda body=body: stage.listeners["n2"].bodies[-1:] == [body], within=1.0, every=0.002
            )  # type: ignore[misc]
            waits.append(stage.world.t - began)
            if churn:
                name = receivers[number % len(receivers)]
                if number < len(receivers):
                    stage.join(name)
                else:
                    stage.leave(name)
        return max(waits)

    churn = False
    calm = longest_wait()
    churn = True
    assert longest_wait() <= 2 * calm + 0.01
    stage.run(3.0)
    assert epoch == stage.status("n4").epoch
    assert 3 == len(stage.status("n4").members)


def test_an_idle_group_costs_a_member_little() -> None:
    """What a thousand messages left behind is gone once everybody has them; what stays is the machinery."""
    groups = 40
    stage = Stage(3)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(groups):
        for name in ("n1", "n2", "n3"):
            stage.join(name, f"g{number}")
    stage.run(1.0)
    for number in range(groups):
        for _ in range(10):
            stage.submit("n2", *([bytes(100)] * 10), group=f"g{number}")
        stage.run(0.02)
    stage.run(2.0)
    assert 3 * groups * 100 == sum(len(listener.bodies) for listener in stage.all_listeners)
    for listener in stage.all_listeners:
        listener.bodies = []
    stage.world.history.rows.clear()
    gc.collect()
    spent = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert {("g1", 0)} == {(one.name, one.last - one.delivered) for one in [stage.status("n3", "g1")]}
    assert spent / (3 * groups) < IDLE_GROUP_BYTES_MAX
