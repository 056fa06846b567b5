"""Who hears a multicast: those that listen to its sender and want its topic.

Every node hears what voters say on the domain's topic. Of a group's topic B hears what A says once B has both
connected to A (``Connect`` with ``listen``) and subscribed to the topic. A has to learn of either before it sends
anything to B, so both begin to work one way of the network later: whoever relies on having heard everything since
it asked finds out here that it has not. With its process a node's wishes end.

Senders speak far more often than wishes change, so an audience is put together once and kept until a wish that
concerns its topic does.
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

    __slots__ = ("audiences", "name", "position", "senders", "topics")

    def __init__(self, audiences: Audiences, name: str) -> None:
        self.audiences = audiences
        self.name = name
        self.position = audiences.newcomer()
        self.senders: dict[str, float] = {}
        self.topics: dict[bytes, float] = {}

    def listen(self, sender: str, since: float) -> None:
        """Hear this node."""
        if sender not in self.senders:
            self.senders[sender] = since
            self.audiences.changed(self.topics)

    def ignore(self, sender: str) -> None:
        """Hear this node no more."""
        if self.senders.pop(sender, None) is not None:
            self.audiences.changed(self.topics)

    def subscribe(self, topic: bytes, since: float) -> None:
        """Want this topic."""
        if topic not in self.topics:
            self.topics[topic] = since
            self.audiences.wanted(topic, self)

    def unsubscribe(self, topic: bytes) -> None:
        """Want this topic no more."""
        if self.topics.pop(topic, None) is not None:
            self.audiences.unwanted(topic, self)

    def forget(self) -> None:
        """The process is gone."""
        self.senders.clear()
        for topic in self.topics:
            self.audiences.unwanted(topic, self)
        self.topics.clear()


class Audiences:
    """The audiences of all senders and topics."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._positions = 0
        self._wanting: dict[bytes, dict[int, Wishes]] = {}
        self._known: dict[bytes, dict[str, Audience]] = {}

    def newcomer(self) -> int:
        """The place of one more node; they come in the order of the world's names."""
        self._positions += 1
        return self._positions

    def wanted(self, topic: bytes, wishes: Wishes) -> None:
        """Somebody wants this topic."""
        self._wanting.setdefault(topic, {})[wishes.position] = wishes
        self._known.pop(topic, None)

    def unwanted(self, topic: bytes, wishes: Wishes) -> None:
        """Somebody wants this topic no more."""
        del self._wanting[topic][wishes.position]
        if not self._wanting[topic]:
            del self._wanting[topic]
        self._known.pop(topic, None)

    def changed(self, topics: dict[bytes, float]) -> None:
        """Somebody who wants these topics listens to others than before."""
        for topic in topics:
            self._known.pop(topic, None)

    def of(self, sender: str, topic: bytes) -> Audience:
        """Who hears ``sender`` on ``topic``, from when on."""
        known = self._known.get(topic)
        if known is None:
            known = self._known[topic] = {}
        audience = known.get(sender)
        if audience is None:
            audience = known[sender] = tuple(self._hearers(sender, topic))
        return audience

    def _hearers(self, sender: str, topic: bytes) -> list[tuple[str, float]]:
        world = self.world
        if topic == DOMAIN_TOPIC:
            return [(name, 0.0) for name in world.names if name != sender] if sender in world.voters else []
        return [
            (wishes.name, max(wishes.senders[sender], wishes.topics[topic]))
            for _, wishes in sorted(self._wanting.get(topic, {}).items())
            if wishes.name != sender and sender in wishes.senders
        ]
