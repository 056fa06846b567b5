"""The votes of one node's processes in the running phase, until they are counted.

B's daemon adds the votes of its processes together and sends them to the leader, all of them every time, again to a
new leader and now and then until the phase has ended: so one that is lost or doubled changes nothing (GS-24). With
them it says which of its processes do not answer and have not voted: nobody waits for those (GS-27). A process votes
once in a phase; who votes late, twice, or without a vote is told so, and nothing changes (G4).

All of it goes to the leader in one frame: what each says is bounded (``Ballot.message_bytes_max``), and of several
states that are proposed here only the oldest provider's is sent, because the others could not be taken anyway.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

from msgspec.structs import replace

from groupsvc.wire.limits import PAYLOAD_BYTES_MAX
from groupsvc.wire.notices import ProviderId

from ..parameters import Timers
from .ballots import Ballot
from .papers import Paper, Silent

VoteProblem = Literal["", "past phase", "no vote", "voted already", "too large"]


class BallotBox:
    """Papers of this node for one phase."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._papers: dict[int, Paper] = {}
        self.repeat_at = math.inf
        self._wait = timers.repeat_first

    def empty(self) -> None:
        """Another phase has begun."""
        self._papers = {}
        self.repeat_at = math.inf

    def take(self, running: Ballot | None, node: tuple[str, int], ballot: int, phase: int, paper: Paper) -> VoteProblem:
        """A process of this node votes in that phase; why that does not count, or ""."""
        if running is None or (ballot, phase) != (running.id, running.phase):
            return "past phase"
        if (*node, paper.provider) not in running.electorate:
            return "no vote"
        if paper.provider in self._papers:
            return "voted already"
        proposed = len(paper.state or b"") + len(running.subject.payload)
        if len(paper.message or b"") > running.message_bytes_max or proposed > PAYLOAD_BYTES_MAX:
            return "too large"
        self._papers[paper.provider] = paper
        if paper.state is not None:
            self._keep_one_state(running, node)
        return ""

    def _keep_one_state(self, running: Ballot, node: tuple[str, int]) -> None:
        papers = [self._papers[one[2]] for one in running.electorate if one[:2] == node and one[2] in self._papers]
        for younger in [paper for paper in papers if paper.state is not None][1:]:
            self._papers[younger.provider] = replace(younger, state=None)

    def hurry(self) -> None:
        """Send again soon: somebody has voted, or somebody else leads."""
        self._wait = self._timers.repeat_first

    def send(
        self, running: Ballot | None, silent: Mapping[ProviderId, int], now: float,
        send: Callable[[Ballot, tuple[Paper, ...], tuple[Silent, ...]], None],
    ) -> None:  # fmt: skip
        """Send all that were cast, and who of the ``silent`` has not voted, if there are any; again in a while."""
        self.repeat_at = math.inf
        if running is None:
            return
        waited_for = tuple(
            (provider[2], seq)
            for provider, seq in silent.items()
            if provider in running.electorate and provider[2] not in self._papers
        )
        if self._papers or waited_for:
            self.repeat_at = now + self._wait
            self._wait = min(2 * self._wait, self._timers.repeat_max)
            send(running, tuple(self._papers.values()), waited_for)
