"""Which messages are worth a line of history when they leave, and what a play calls those who hear them."""

from __future__ import annotations

from groupsvcd.core.peer_messages import (
    DOMAIN_TOPIC,
    AliveAck,
    Answered,
    Claim,
    Held,
    LeaderAlive,
    Open,
    Opened,
    Order,
    PeerMessage,
    Promised,
    Tell,
)

SPOKEN: dict[type[PeerMessage], str] = {
    kind: kind.__name__ for kind in (Promised, Claim, Open, Opened, Order, Held, LeaderAlive)
}
"""Messages that use an epoch; the first of each is worth a line of history."""

ACKNOWLEDGING: dict[type[PeerMessage], str] = {kind: kind.__name__ for kind in (AliveAck, Answered, Tell)}
"""Messages by which a name server commits itself."""


def words_for(topic: bytes) -> str:
    """Whom a multicast is for, in a play."""
    return "all" if topic == DOMAIN_TOPIC else f"group {int.from_bytes(topic[-8:], 'big')}"
