"""The forms that all messages between daemons have."""

from __future__ import annotations

import msgspec


class PeerMessage(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of all messages between daemons."""


class StreamMessage(PeerMessage):
    """What concerns one stream: the domain's, or that of a group."""

    stream: int
