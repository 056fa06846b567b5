"""What an application and its daemon say about barriers; part of ``client_messages``, where all of them are listed."""

from __future__ import annotations

from typing import Literal

from .client_forms import ClientReply, ClientRequest
from .kinds import Kind
from .notices import ProviderId, Round


class BarrierAsk(ClientRequest, tag=int(Kind.BARRIER_ASK)):
    """A provider comes to a barrier and waits for ``RoundIs``; or, with ``resets``, wants a broken one reset."""

    id: int
    member: int
    barrier: str
    parties: int  # how many it takes, 0: all providers
    on_failure: Literal["break", "continue", "wait"]
    payload: bytes
    resets: bool
    timeout: float


class BreakAsk(ClientRequest, tag=int(Kind.BREAK_ASK)):
    """Whoever came to this barrier with that request does not want to wait any more: the round breaks."""

    id: int
    member: int
    barrier: str
    request: int


class RoundAsk(ClientRequest, tag=int(Kind.ROUND_ASK)):
    """How did this round of a barrier end? It is over, and kept: parties have come with ``wait``."""

    id: int
    member: int
    barrier: str
    number: int


class RoundPart(ClientReply, tag=int(Kind.ROUND_PART)):
    """What some parties of a round have brought, if it is much: comes before ``RoundIs``, whose id it has."""

    id: int
    payloads: tuple[tuple[ProviderId, bytes], ...]


class RoundIs(ClientReply, tag=int(Kind.ROUND_IS)):
    """How the round of a barrier ended to which somebody came, and by which entry."""

    id: int
    seq: int
    round: Round
