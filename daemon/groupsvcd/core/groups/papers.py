"""A vote on its way from a process to the leader, with all that it may carry (GS-25)."""

from __future__ import annotations

import msgspec

from groupsvc.wire.notices import DefaultVote, Vote


class Paper(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What one provider of a node has voted in the running phase; no vote: its callback has raised."""

    provider: int
    vote: Vote | None
    state: bytes | None = None
    message: bytes | None = None
    default_vote: DefaultVote | None = None
