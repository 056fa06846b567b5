"""What goes from a process to the leader alone: a vote, with all that it may carry (GS-25); who waits at a barrier."""

from __future__ import annotations

from typing import Literal

import msgspec

from groupsvc.wire.notices import DefaultVote, Vote


class Paper(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What one provider of a node has voted in the running phase; no vote: its callback has raised."""

    provider: int
    vote: Vote | None
    state: bytes | None = None
    message: bytes | None = None
    default_vote: DefaultVote | None = None


OnFailure = Literal["break", "continue"]
GivesUp = Literal["", "timeout", "cancelled"]


class Waiter(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A provider of a node has come to a round of a barrier; or wants it reset; or does not wait for it any longer."""

    provider: int
    barrier: str
    round: int
    since: int  # the entry that its node had applied last when it came
    parties: int
    on_failure: OnFailure
    payload: bytes = b""
    resets: bool = False
    gives_up: GivesUp = ""
    brought: int = 0  # the number under which the stream has its payload, if that is much
