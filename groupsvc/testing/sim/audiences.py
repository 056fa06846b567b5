"""Who hears a multicast: those that listen to its sender and want its topic.

Every node hears what voters say on the domain's topic. Of a group's topic B hears what A says once B has both
connected to A (``Connect`` with ``listen``) and subscribed to the topic. A has to learn of either before it sends
anything to B, so both begin to work one way of the network later: whoever relies on having heard everything since
it asked finds out here that it has not. With its process a node's wishes end.

Senders speak far more often than wishes change, so an audience is put together once and kept until any does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsvcd.core.peer_messages import DOMAIN_TOPIC

if TYPE_CHECKING:
    from .world import World

Audience = tuple[tuple[str, float], ...]
"""(name, harness time from which it hears), in the order of the world's names."""


class Wishes:
    """Whom and what one process wants to hear, each with the harness time from which it works."""

    __slots__ = ("audiences", "senders", "topics")

    def __init__(self, audiences: Audiences) -> None:
        self.audiences = audiences
        self.senders: dict[str, float] = {}
        self.topics: dict[bytes, float] = {}

    def listen(self, sender: str, since: float) -> None:
        """Hear this node."""
        if sender not in self.senders:
            self.senders[sender] = since
            self.audiences.changed()

    def ignore(self, sender: str) -> None:
        """Hear this node no more."""
        if self.senders.pop(sender, None) is not None:
            self.audiences.changed()

    def subscribe(self, topic: bytes, since: float) -> None:
        """Want this topic."""
        if topic not in self.topics:
            self.topics[topic] = since
            self.audiences.changed()

    def unsubscribe(self, topic: bytes) -> None:
        """Want this topic no more."""
        if self.topics.pop(topic, None) is not None:
            self.audiences.changed()

    def forget(self) -> None:
        """The process is gone."""
        if self.senders or self.topics:
            self.senders.clear()
            self.topics.clear()
            self.audiences.changed()


class Audiences:
    """The audiences of all senders and topics."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._known: dict[tuple[str, bytes], Audience] = {}

    def changed(self) -> None:
        """Somebody wants something else than before."""
        self._known.clear()

    def of(self, sender: str, topic: bytes) -> Audience:
        """Who hears ``sender`` on ``topic``, from when on."""
        audience = self._known.get((sender, topic))
        if audience is None:
            audience = self._known[sender, topic] = tuple(self._hearers(sender, topic))
        return audience

    def _hearers(self, sender: str, topic: bytes) -> list[tuple[str, float]]:
        world = self.world
        if topic == DOMAIN_TOPIC:
            return [(name, 0.0) for name in world.names if name != sender] if sender in world.voters else []
        hearers: list[tuple[str, float]] = []
        for name in world.names:
            wishes = world.nodes[name].wishes
            if name != sender and sender in wishes.senders and topic in wishes.topics:
                hearers.append((name, max(wishes.senders[sender], wishes.topics[topic])))
        return hearers
