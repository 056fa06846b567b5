"""How a group's stream leaves this node: to all who listen to its topic, as long as the lease is good.

Of a durable group the disk has, from the moment this node is a member, what the group is called; from the moment it is
to be a server, what it promised; and once it has opened a log as a server, that log. So after a restart it is known
which server a disk was, and what it had.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..domain.member import Member
from ..effects import Journal, SendToPeer
from ..peer_messages import PeerMessage, topic_of
from ..records import AboutRecord, ForgetRecord, PromiseRecord, Record
from ..stream.carrier import Carrier
from ..turn import Turn


class GroupCarrier(Carrier):
    """Carries one group's stream."""

    delivers_batches = True

    def __init__(
        self, turn: Turn, stream: int, member: Member, *, journals_entries: bool,
        journals_digests: bool = False, about: bytes | None = None,
    ) -> None:  # fmt: skip
        super().__init__(turn, stream, ())
        self.durable = about is not None
        self.is_stored = False
        self.journals_entries = journals_entries
        self.journals_digests = journals_digests
        self._about = about
        self._is_described = False
        self._member = member
        self._topic = topic_of(stream)

    @property
    def valid_until(self) -> float:
        """Until our lease ends, or our part in the group."""
        return -math.inf if self.is_over else self._member.lease_until

    def publish(self, message: PeerMessage) -> None:
        """Say something to everybody else who follows the stream; true only while we have our lease."""
        self.turn.publish(self._topic, message, self.valid_until)

    def persist(
        self, *records: Record, then: tuple[SendToPeer | Journal, ...] = (), done: Callable[[], None] | None = None
    ) -> None:
        """On disk if the group is durable; else memory is all there is, and that is safe at once."""
        if self._about is None:
            self.turn.remember(then, done)
            return
        if not self._is_described:
            self._is_described = True
            records = (AboutRecord(self.stream, self._about), *records)

        def safe() -> None:
            if done is not None and not self.is_over:  # else nobody is there any more to whom it matters
                done()

        self.turn.persist(*records, then=then, done=safe)

    def found_on_disk(self, *, is_described: bool, is_stored: bool) -> None:
        """A restart: the disk knows the group, or should; and perhaps a log of it."""
        self._is_described = is_described
        self.is_stored = is_stored

    def forget(self, promised: int) -> None:
        """The active view does not count on what we have; that we are a member, and our word, are still to be known."""
        if self._about is not None and self._is_described:
            self.is_stored = False
            about = AboutRecord(self.stream, self._about)
            self.turn.persist(ForgetRecord(self.stream), about, PromiseRecord(self.stream, promised))

    def describe(self, about: bytes) -> None:
        """What a restart has to know of the group has changed."""
        if self._about is not None:
            self._about = about
            if self._is_described:
                self.turn.persist(AboutRecord(self.stream, about))

    def forget_all(self) -> None:
        """We are no member any more, and say nothing as one."""
        self.is_over = True
        if self._is_described:
            self.is_stored = self._is_described = False
            self.turn.persist(ForgetRecord(self.stream))
