"""What goes from a node to the leader alone: votes, with all that they may carry (GS-25), and who waits at barriers.

C's process does not answer its daemon. Whether it had voted before that, only C's daemon knows: a vote may be lost on
its way, and that the process hangs is told by another one. So nobody is taken for silent in a phase before its own
daemon has said so of this phase, in the same word that has all the votes which were cast there. It names the entry
that announced it: who answered again, voted, and hangs once more is not silent by a word from before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import attrs
import msgspec

from groupsvc.wire.notices import DefaultVote, Vote

Silent = tuple[int, int]
"""A provider of a node that had not voted when its daemon knew by this entry that it does not answer."""


class Paper(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What one provider of a node has voted in the running phase; no vote: its callback has raised."""

    provider: int
    vote: Vote | None
    state: bytes | None = None
    message: bytes | None = None
    default_vote: DefaultVote | None = None


@attrs.define
class Said:
    """All that one node has said in one phase. It is only ever added to: words may come late, twice, or not at all."""

    papers: dict[int, Paper] = attrs.field(factory=dict)
    silent: dict[int, int] = attrs.field(factory=dict)  # and by which entry, the newest

    def add(self, papers: Iterable[Paper], silent: Iterable[Silent]) -> None:
        """Another word of it."""
        self.papers.update((paper.provider, paper) for paper in papers)
        for provider, seq in silent:
            self.silent[provider] = max(seq, self.silent.get(provider, 0))


OnFailure = Literal["break", "continue", "wait"]
"""wait: as continue, and the rounds are kept for who takes the place of a dead party."""

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
