"""What daemons ask one another on behalf of an operator; part of ``peer_messages``, where all messages are listed."""

from __future__ import annotations

from groupsvc.wire.kinds import Kind
from groupsvc.wire.survey_messages import LinkFinding

from .peer_forms import PeerMessage


class Survey(PeerMessage, tag=int(Kind.SURVEY)):
    """Somebody at my node wants to know how you are. ``sent``: my clock, which is none of yours; say it back."""

    number: int
    sent: float


class Findings(PeerMessage, tag=int(Kind.FINDINGS)):
    """The answer: ``wall_us`` is what the wall clock of my machine says, in microseconds since 1970."""

    number: int
    sent: float
    version: str
    wall_us: int
    suspended: bool
    links: tuple[LinkFinding, ...]
