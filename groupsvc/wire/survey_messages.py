"""What an operator's question about all nodes is asked and answered with; part of ``client_messages``.

A *survey* goes from a daemon to all others, and each tells what nobody else can know of it: its version, its wall
clock, and how it gets on with those it is connected to. Nothing depends on the answers.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .client_forms import ClientReply, ClientRequest
from .kinds import Kind

LinkState = Literal["connected", "connecting", "broken", "refused", "not let in", "not listed"]
"""connecting: nobody has answered yet, and nobody has refused, as behind a firewall that drops. not listed: the other
end does not know our key, and says so; not let in: who is there has another key, or none, or was just ending."""

BARRED = "the key of this node was revoked, or never listed, at"
"""How the trouble of a node begins that nobody lets in."""


class LinkFinding(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """How one node gets on with another one: its own connection to it, and when it last heard it (-1: never)."""

    node: str
    state: LinkState
    heard_s: float


class NodeFindings(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What one node says of itself; if it did not answer, only ``node`` says anything.

    ``skew_s``: how much its wall clock is ahead of that of the node that asked, give or take half of ``round_trip_s``.
    """

    node: str
    answered: bool
    version: str = ""
    skew_s: float = 0.0
    round_trip_s: float = 0.0
    suspended: bool = False
    links: tuple[LinkFinding, ...] = ()


class SurveyAsk(ClientRequest, tag=int(Kind.SURVEY_ASK)):
    """How are all nodes? Answered when all have answered, or after a while without those that have not."""

    id: int
    timeout: float


class SurveyIs(ClientReply, tag=int(Kind.SURVEY_IS)):
    """What they say, by name; ``left_out``: so many were not asked, because there are too many."""

    id: int
    nodes: tuple[NodeFindings, ...]
    left_out: int = 0
