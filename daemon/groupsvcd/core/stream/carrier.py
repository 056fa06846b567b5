"""How the words of a stream leave this node, and where its records go.

The stream's parts do not know whether they carry the domain's stream or a group's. What differs outside the protocol
is here: the domain stream goes to the voters one by one and through the disk; a group's goes to everybody who listens
to its topic, through the disk only if the group is durable, and what a node says of its own accord (an order, a
``Held``, a stable number) is good only as long as its lease is. Promises, reports and repairs are true for ever.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..effects import Journal, SendToPeer
from ..peer_messages import PeerMessage
from ..records import Record
from ..turn import Turn


class Carrier:
    """Carries the domain stream: to each of ``followers``, no lease, on disk."""

    durable = True
    is_stored = True  # whether the log is on disk; what is promised is there anyway
    journals_entries = True  # one line of history per entry, or one per batch
    journals_digests = False  # whether a line per batch has the running digest
    is_over = False  # whether our part in the stream has ended
    delivers_batches = False  # whether the host takes many entries at once, or looks at its state between any two

    def __init__(self, turn: Turn, stream: int, followers: tuple[str, ...]) -> None:
        self.turn = turn
        self.stream = stream
        self._followers = followers

    @property
    def valid_until(self) -> float:
        """Until when our own word is good."""
        return math.inf

    def send(self, node: str, message: PeerMessage) -> None:
        """Say something to one node that stays true."""
        self.turn.send(node, message)

    def vouch(self, node: str, message: PeerMessage) -> None:
        """Say something to one node that is true only while we have our lease."""
        self.turn.send(node, message, self.valid_until)

    def vouching(self, node: str, message: PeerMessage) -> SendToPeer:
        """The same as an effect that waits for a write."""
        return SendToPeer(node, message, self.valid_until)

    def publish(self, message: PeerMessage) -> None:
        """Say something to everybody else who follows the stream; true only while we have our lease."""
        for name in self._followers:
            if name != self.turn.node:
                self.turn.send(name, message, self.valid_until)

    def persist(
        self, *records: Record, then: tuple[SendToPeer | Journal, ...] = (), done: Callable[[], None] | None = None
    ) -> None:
        """Make records last; then ``then`` leaves and ``done`` is called."""
        self.turn.persist(*records, then=then, done=done)

    def forget(self, promised: int) -> None:
        """The log is nobody's business any more. The domain stream always is."""
