"""What an engine wants done. The driver executes effects in list order.

Durability order is data: what may leave only after a write is safe hangs in that write's ``then``.
A truth that only a lease makes true carries ``valid_until`` (the engine's clock); the driver compares it
with the clock right before the bytes leave and drops what is late.

They are made by the thousand, so they are msgspec's: a frozen class of attrs takes several times as long to make.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec

from groupsvc.wire.client_messages import ClientReply

from .peer_messages import PeerMessage
from .records import Record


class SendToPeer(msgspec.Struct, frozen=True):
    """One message for one node. May be lost; never waits."""

    node: str
    message: PeerMessage
    valid_until: float = math.inf


class Multicast(msgspec.Struct, frozen=True):
    """One message for every node that subscribes to ``topic``; never to ourselves."""

    topic: bytes
    message: PeerMessage
    valid_until: float = math.inf


class ReplyToClient(msgspec.Struct, frozen=True):
    """An answer for a local client."""

    client: int
    message: ClientReply
    valid_until: float = math.inf


class Persist(msgspec.Struct, frozen=True):
    """Write ``records`` in order and sync; then execute ``then`` and step with ``Persisted(number)``.

    Numbers grow by one. Writes are completed in the order they were asked for.
    """

    number: int
    records: tuple[Record, ...]
    then: tuple[SendToPeer | Multicast | ReplyToClient | Journal, ...] = ()


class Connect(msgspec.Struct, frozen=True):
    """From now on ``node`` is reached at ``address`` (which may have changed).

    With ``listen`` its multicasts are heard, too, as far as their topics are subscribed to. A second ``Connect`` to the
    same node replaces the first.
    """

    node: str
    address: str
    listen: bool = False


class Disconnect(msgspec.Struct, frozen=True):
    """Nothing is sent to ``node`` any more, and its multicasts are not heard."""

    node: str


class Subscribe(msgspec.Struct, frozen=True):
    """From now on multicasts on ``topic`` are wanted, from every node that we listen to."""

    topic: bytes


class Unsubscribe(msgspec.Struct, frozen=True):
    """Multicasts on ``topic`` are no longer wanted."""

    topic: bytes


class Journal(msgspec.Struct, frozen=True):
    """A line for the event journal; the driver adds clocks, node and numbering.

    The fields are those of ``groupsvc.wire.history.HistoryEvent``. A line about a word that leaves only while it is
    true has the same ``valid_until``: what was not said is not told either.
    """

    op: str
    group: int = 0
    epoch: int = 0
    seq: int = 0
    origin: str = ""
    n: int = 0
    crc: int = 0
    args: dict[str, Any] = {}
    valid_until: float = math.inf


class Afterwards(msgspec.Struct, frozen=True):
    """Call ``action`` in a step of its own (``LocalCall``), once everything that was laid down so far has left.

    For what others need not wait for: a leader hands up what it has just announced.
    """

    action: Callable[[], None]


class Adopt(msgspec.Struct, frozen=True):
    """The domain says this about the options of its daemons, from now on: (key, value, version), all of them."""

    options: tuple[tuple[str, str, int], ...]


class Halt(msgspec.Struct, frozen=True):
    """Stop the daemon now; ``reason`` is for the operator."""

    reason: str


class Stop(msgspec.Struct, frozen=True):
    """End the daemon as if it had been told to: it says goodbye to its peers. Nothing follows it."""

    reason: str


Effect = (
    SendToPeer
    | Multicast
    | ReplyToClient
    | Persist
    | Connect
    | Disconnect
    | Subscribe
    | Unsubscribe
    | Journal
    | Afterwards
    | Adopt
    | Halt
    | Stop
)
