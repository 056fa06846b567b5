"""What can happen to an engine. The driver (daemon or simulator) makes these, nobody else.

A frame carries every message the sender had for us at that moment, so one frame is one step.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from groupsvc.wire.client_messages import ClientRequest

from .peer_messages import PeerMessage


@attrs.frozen
class PeerFrame:
    """A valid frame of our domain, or of a node that is in none yet (``domain`` all zero)."""

    sender: str
    incarnation: int
    domain: bytes
    messages: tuple[PeerMessage, ...]


@attrs.frozen
class PeerRefused:
    """Nothing listens at the peer's address any more: its process is gone, not merely silent."""

    node: str


@attrs.frozen
class ClientFrame:
    """A request from a local client; ``client`` names the connection and is never reused."""

    client: int
    message: ClientRequest


@attrs.frozen
class ClientGone:
    """The client's connection ended or its process died; nothing can be said to it any more."""

    client: int


@attrs.frozen
class Persisted:
    """The ``Persist`` with this number is on disk; its ``then`` effects have been executed."""

    number: int


@attrs.frozen
class LocalCall:
    """A program inside the daemon wants something of the engine: ``action`` is called within the step."""

    action: Callable[[], None]


@attrs.frozen
class Tick:
    """Time has passed; all sockets were drained first."""


Event = PeerFrame | PeerRefused | ClientFrame | ClientGone | Persisted | LocalCall | Tick
