"""The leader dies, and its successor dies too: before each single message that it sends or gets while it recovers.

D leads five servers, and three must hold an entry. D, G and H hold "stable" when D dies; E, which succeeds it, and F,
which succeeds E, have never heard of it. First E is let live, and every message of its recovery is written down. Then
the same is played again as often as there are messages, and E dies before the first, before the second, and so on.
"""

from __future__ import annotations

import math
from typing import Any

from groupsvcd.core.events import Event, PeerFrame
from groupsvcd.core.nodegroups.controls import ViewStarted, decode_control
from groupsvcd.core.peer_messages import (
    Alive,
    AliveAck,
    Beat,
    LeaderAlive,
    NodeList,
    NodeListAsk,
    Order,
    PeerMessage,
    Repair,
    Suspect,
)
from tests.unit.core.nodegroups.carriers import Carriers

SUCCESSOR = "E"
NOT_OF_THE_RECOVERY = (LeaderAlive, Alive, AliveAck, NodeList, NodeListAsk, Suspect)
ALL_TEXTS = ["a", "stable", "after"]


class Mortal(Carriers):
    """The successor's messages are counted, and it dies before the one that it is told to."""

    def __init__(self, voters: str = "ABC", others: str = "DEFGH", **arguments: Any) -> None:
        super().__init__(voters, others, **arguments)
        self.steps: list[str] | None = None
        self.dies_before: float = math.inf

    def lead_on(self, dies_before: float) -> None:
        """From now on its messages count."""
        self.steps, self.dies_before = [], dies_before
        self.loses = lambda sender, receiver, message: sender == SUCCESSOR and self._dies(f"to {receiver}", message)

    def _dies(self, way: str, message: PeerMessage) -> bool:
        """Whether the successor is dead by the time of this message."""
        if SUCCESSOR not in self.engines:
            return True
        if self.steps is None or isinstance(message, NOT_OF_THE_RECOVERY):
            return False
        self.steps.append(f"{type(message).__name__} {way}")
        if len(self.steps) <= self.dies_before:
            return False
        self.kill(SUCCESSOR)
        self._at(self.now, lambda: self.refuse(SUCCESSOR, *self.engines))
        return True

    def step(self, name: str, event: Event) -> None:
        """One event for one engine; what comes for the successor may be what it does not live to see."""
        if name == SUCCESSOR and isinstance(event, PeerFrame):
            if any(self._dies(f"from {event.sender}", message) for message in event.messages):
                return
        super().step(name, event)


def _played(dies_before: float) -> Mortal:
    nodes = Mortal()
    nodes.boot(*nodes.names)
    nodes.run(2.0)
    nodes.assemble("DEFGH", replicas=5)
    nodes.submit("D", "a")
    nodes.run(0.5)
    nodes.lose((Order, Beat, Repair), "D>E D>F")
    nodes.submit("D", "stable")
    nodes.run(0.005)
    assert [["a"], ["a"], ["a", "stable"]] == [nodes.texts(name) for name in "EFG"]
    nodes.lead_on(dies_before)
    nodes.die("D")
    nodes.submit("G", "after")
    leader, living = (SUCCESSOR, "EFGH") if dies_before == math.inf else ("F", "FGH")
    nodes.run_until(
        lambda: (
            nodes.record().active.leader == leader and all(len(nodes.texts(name)) >= len(ALL_TEXTS) for name in living)
        )
    )
    return nodes


def _assert_nothing_lost(nodes: Mortal, names: str, when: str) -> None:
    for name in names:
        user = nodes.user(name)
        assert (ALL_TEXTS, []) == (user.texts, user.losses), f"{name}, if {SUCCESSOR} dies {when}"
        controls = [decode_control(entry.body) for _, entry in user.entries if not entry.origin]
        assert not any(one.tail_may_be_lost for one in controls if isinstance(one, ViewStarted)), when
    numbered = {(seq, entry) for name in names for seq, entry in nodes.user(name).entries}
    assert len(numbered) == len({seq for seq, _ in numbered}), when


def test_the_third_server_recovers_and_nothing_stable_is_lost() -> None:
    """L4, SAM-10. Whatever the successor had said, and to whom."""
    honest = _played(math.inf)
    _assert_nothing_lost(honest, "EFGH", "never")
    steps = honest.steps
    assert steps is not None
    kinds = {step.split()[0] for step in steps}
    assert {"Grant", "Claim", "Promised", "RepairAsk", "Repair", "Open", "Opened", "Order", "Held"} <= kinds
    for number, step in enumerate(steps):
        _assert_nothing_lost(_played(number), "FGH", f"before {step}, its message {number}")
