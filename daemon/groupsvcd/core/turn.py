"""One turn of the engine: what time it is, and everything the parts want done.

The parts of an engine (election, server, office, …) share one ``Turn``. Each adds effects to it and never
sees the others' effects; the engine empties it at the end of the step.

Two things make the parts simpler. A message to one's own node is not an effect but goes round: the engine
handles it at the end of the same step, so the name server talks to its own node like to any other. And a
``Persist`` may name a function to be called once the records are safe.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from groupsvc.wire.client_messages import ClientReply

from .effects import Afterwards, Effect, Halt, Journal, Multicast, Persist, ReplyToClient, SendToPeer, Stop
from .peer_messages import PeerMessage
from .records import Record
from .tally import Tally, add


class Turn:
    """Collects the effects of one step, and remembers writes that are not safe yet."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.now = -math.inf
        self.is_audited = True  # whether anybody reads what is for audits alone
        self.effects: list[Effect] = []
        self.round_trip: deque[PeerMessage | Callable[[], None]] = deque()
        self.to_session: Callable[[int, Any], None] = lambda session, message: None
        self._writes: dict[int, tuple[float, Callable[[], None]]] = {}
        self._write_number = 0
        self.tally = Tally()

    def send(self, node: str, message: PeerMessage, valid_until: float = math.inf) -> None:
        """One message to one node, which may be ourselves."""
        if node == self.node:
            self.round_trip.append(message)
        else:
            self.effects.append(SendToPeer(node, message, valid_until))

    def multicast(self, topic: bytes, message: PeerMessage, valid_until: float = math.inf) -> None:
        """One message to all that listen, and to ourselves."""
        self.effects.append(Multicast(topic, message, valid_until))
        self.round_trip.append(message)

    def publish(self, topic: bytes, message: PeerMessage, valid_until: float = math.inf) -> None:
        """One message to all others that listen."""
        self.effects.append(Multicast(topic, message, valid_until))

    def reply(self, client: int, message: ClientReply, valid_until: float = math.inf) -> None:
        """One answer to a local client, or to the session of one, whose number is below 0."""
        if client < 0:
            self.to_session(-client, message)
        else:
            self.effects.append(ReplyToClient(client, message, valid_until))

    def journal(
        self,
        op: str,
        *,
        epoch: int = 0,
        seq: int = 0,
        group: int = 0,
        origin: str = "",
        n: int = 0,
        crc: int = 0,
        **args: Any,
    ) -> None:
        """One line of history."""
        self.effects.append(Journal(op, group, epoch, seq, origin, n, crc, args))

    def audit(self, op: str, *, group: int = 0, epoch: int = 0, seq: int = 0, crc: int = 0, **args: Any) -> None:
        """One line of history that only an audit reads: none where no journal is kept."""
        if self.is_audited:
            self.effects.append(Journal(op, group, epoch, seq, crc=crc, args=args))

    def mark(self, name: str) -> None:
        """A place worth knowing that a run came by."""
        self.effects.append(Journal("mark", args={"name": name}))
        add(self.tally.marks, name)

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do this in a step of its own, when the effects of this one have left."""
        self.effects.append(Afterwards(action))

    def halt(self, reason: str) -> None:
        """Stop this daemon."""
        self.effects.append(Halt(reason))

    def stop(self, reason: str) -> None:
        """End this daemon in good order."""
        self.effects.append(Stop(reason))

    def persist(
        self, *records: Record, then: tuple[SendToPeer | Journal, ...] = (), done: Callable[[], None] | None = None
    ) -> None:
        """Write records. When they are safe, ``then`` leaves and ``done`` is called."""
        own = [effect.message for effect in then if isinstance(effect, SendToPeer) and effect.node == self.node]
        if own:
            then = tuple(effect for effect in then if not isinstance(effect, SendToPeer) or effect.node != self.node)

        def safe() -> None:
            if done is not None:
                done()
            self.round_trip.extend(own)

        self._write_number += 1
        self._writes[self._write_number] = (self.now, safe)
        self.effects.append(Persist(self._write_number, records, then))

    def remember(self, then: tuple[SendToPeer | Journal, ...] = (), done: Callable[[], None] | None = None) -> None:
        """As ``persist``, for what memory alone holds: ``then`` leaves and ``done`` is called within this step."""
        if done is not None:
            self.round_trip.append(done)
        for effect in then:
            if isinstance(effect, SendToPeer) and effect.node == self.node:
                self.round_trip.append(effect.message)
            else:
                self.effects.append(effect)

    def persisted(self, number: int) -> None:
        """The driver says that write ``number`` is safe."""
        _, safe = self._writes.pop(number)
        safe()

    @property
    def oldest_write_age(self) -> float:
        """How long the oldest unfinished write has been under way."""
        for asked, _ in self._writes.values():
            return self.now - asked
        return 0.0
