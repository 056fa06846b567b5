"""What can happen to an engine. The driver (daemon or simulator) makes these, nobody else.

A frame carries every message the sender had for us at that moment, so one frame is one step.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from groupsvc.wire import versions
from groupsvc.wire.client_messages import ClientRequest

from .access import Principal
from .peer_messages import PeerMessage


class PeerFrame(msgspec.Struct, frozen=True):
    """A valid frame of our domain, or of a node that is in none yet (``domain`` all zero)."""

    sender: str
    incarnation: int
    domain: bytes
    messages: tuple[PeerMessage, ...]
    wire: int = versions.OWN  # which wire versions the sender writes and reads


class PeerRefused(msgspec.Struct, frozen=True):
    """Nothing listens at the peer's address any more: its process is gone, not merely silent."""

    node: str


class ClientCame(msgspec.Struct, frozen=True):
    """A new connection of a client, before its first request, and who is at its other end as far as that is proven."""

    client: int
    principal: Principal


class ClientFrame(msgspec.Struct, frozen=True):
    """A request from a local client; ``client`` names the connection and is never reused."""

    client: int
    message: ClientRequest


class ClientGone(msgspec.Struct, frozen=True):
    """The client's connection is over; nothing can be said over it any more.

    Its process may live, and come back on another connection. If it has ended that is said: at once, or in a second
    event about the same connection.
    """

    client: int
    process_ended: bool = False


class Persisted(msgspec.Struct, frozen=True):
    """The ``Persist`` with this number is on disk; its ``then`` effects have been executed."""

    number: int


class LocalCall(msgspec.Struct, frozen=True):
    """A program inside the daemon wants something of the engine: ``action`` is called within the step."""

    action: Callable[[], None]


class Tick(msgspec.Struct, frozen=True):
    """Time has passed; all sockets were drained first."""


Event = PeerFrame | PeerRefused | ClientCame | ClientFrame | ClientGone | Persisted | LocalCall | Tick
