"""How a group's stream leaves this node: to all who listen to its topic, as long as the lease is good."""

from __future__ import annotations

from collections.abc import Callable

from ..domain.member import Member
from ..effects import Journal, SendToPeer
from ..peer_messages import PeerMessage, topic_of
from ..records import Record
from ..stream.carrier import Carrier
from ..turn import Turn


class GroupCarrier(Carrier):
    """Carries one group's stream."""

    delivers_batches = True

    def __init__(self, turn: Turn, stream: int, member: Member, *, durable: bool, journals_entries: bool) -> None:
        super().__init__(turn, stream, ())
        self.durable = durable
        self.journals_entries = journals_entries
        self._member = member
        self._topic = topic_of(stream)

    @property
    def valid_until(self) -> float:
        """Until our lease ends."""
        return self._member.lease_until

    def publish(self, message: PeerMessage) -> None:
        """Say something to everybody else who follows the stream; true only while we have our lease."""
        self.turn.publish(self._topic, message, self.valid_until)

    def persist(
        self, *records: Record, then: tuple[SendToPeer | Journal, ...] = (), done: Callable[[], None] | None = None
    ) -> None:
        """On disk if the group is durable; else memory is all there is, and that is safe at once."""
        if self.durable:
            self.turn.persist(*records, then=then, done=done)
        else:
            self.turn.remember(then, done)
