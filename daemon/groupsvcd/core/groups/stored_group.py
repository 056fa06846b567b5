"""A process group in a checkpoint of its stream: what a node begins with that has not seen the entries before.

All who have applied the same entries make the same bytes of them.
"""

from __future__ import annotations

import msgspec

from groupsvc.wire.codec import Reader
from groupsvc.wire.notices import AttributeValue, Cause, DefaultVote, Outcome, Provider, ProviderId

from ..views import NodeId
from .archive import StoredArchive
from .ballots import Ballot
from .pending import Pending
from .rounds import StoredRounds


class StoredGroup(msgspec.Struct, frozen=True, array_like=True):
    """Everything that the entries so far add up to. Fields are only ever added, at the end, with defaults."""

    attributes: dict[str, AttributeValue]
    seq: int
    providers: tuple[Provider, ...]
    failing: tuple[tuple[ProviderId, tuple[Cause, int]], ...]
    unresponsive: tuple[ProviderId, ...]
    state: bytes
    state_version: int
    default_vote: DefaultVote
    queue: tuple[Pending, ...]
    ballot: Ballot | None
    fence: int
    joins_ready: int
    leaves_ready: int
    outcomes: tuple[tuple[int, Outcome], ...] = ()
    has_ended: bool = False
    founding: dict[str, AttributeValue] | None = None
    held_back: tuple[ProviderId, ...] = ()
    archive: StoredArchive | None = None
    nodes: tuple[NodeId, ...] = ()
    unresponsive_since: tuple[int, ...] = ()
    rounds: StoredRounds | None = None
    quorum_lost_seq: int = 0


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_reader: Reader[StoredGroup] = Reader(StoredGroup, "process group in a checkpoint")


def encode_group(stored: StoredGroup) -> bytes:
    """The bytes of it."""
    return _encoder.encode(stored)


def decode_group(state: bytes) -> StoredGroup:
    """The group that the bytes stand for; raises ``PeerProtocolError``."""
    return _reader.read(state)
