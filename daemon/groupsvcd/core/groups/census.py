"""Counting what happens in process groups, each thing by one node of the domain only.

A, B and C carry a group, and see the same votes. If all of them counted, the sum over the domain would depend on how
many carry what. So A counts, which leads: votes, ballots, joins and leaves, rounds of barriers. Who proposed something
counts how long it took: only its node knows when that was.

A failure has no proposer. It takes from its announcement to the removal of who failed, by the clock of who leads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groupsvc.wire.notices import AnyNotice, Cast, Ended, Failing, Joined, Left, PhaseClosed, ProviderId, Refused

from ..tally import Tally, add
from . import commands as cmd

Decided = Callable[[Ended | Refused | None], None]

KINDS: dict[type, str] = {
    cmd.Join: "join",
    cmd.Leave: "leave",
    cmd.Expel: "expel",
    cmd.ChangeState: "state",
    cmd.SendMessage: "message",
    cmd.ChangeAttributes: "attributes",
}
"""What is proposed, in the words of ``Subject.kind``; that is also "failure", which nobody proposes."""


class Census:
    """Counts for all groups of one node."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._failing: dict[tuple[int, ProviderId], float] = {}  # by group; since when

    def timed(self, command: cmd.AnyProposal, began: float, now: Callable[[], float], decided: Decided) -> Decided:
        """The same, and how long it took is taken down; not if nobody will ever know how it ended."""

        def is_decided(how: Ended | Refused | None) -> None:
            if how is not None:
                self._tally.took(KINDS[type(command)], now() - began)
            if isinstance(how, Refused):
                add(self._tally.refused_proposals, how.why)
            decided(how)

        return is_decided

    def note(self, group: int, notices: Sequence[AnyNotice], now: float) -> None:
        """What follows from one entry, in a group that this node leads."""
        tally = self._tally
        for notice in notices:
            if isinstance(notice, Joined | Left):
                tally.view_changes += 1
                if isinstance(notice, Left):
                    self._have_left(group, notice.providers, now)
            elif isinstance(notice, PhaseClosed):
                self._votes(notice.votes)
            elif isinstance(notice, Ended):
                self._votes(notice.outcome.votes)
                how = (notice.outcome.subject.kind, "approved" if notice.outcome.approved else "rejected")
                tally.ballots[how] = tally.ballots.get(how, 0) + 1
            elif isinstance(notice, Failing):
                self._failing[group, notice.provider] = now

    def is_over(self, group: int) -> None:
        """This node leads the group no longer, or it has ended: who takes over counts on."""
        for key in [key for key in self._failing if key[0] == group]:
            del self._failing[key]

    def round_ended(self, how: str) -> None:
        """A round of a barrier has, in a group that this node leads."""
        add(self._tally.barrier_rounds, how)

    def _have_left(self, group: int, providers: Sequence[ProviderId], now: float) -> None:
        for provider in providers:
            since = self._failing.pop((group, provider), None)
            if since is not None:
                self._tally.took("failure", now - since)

    def _votes(self, casts: Sequence[Cast]) -> None:
        votes = self._tally.votes
        for cast in casts:
            key = (cast.vote, "default" if cast.why else "provider")
            votes[key] = votes.get(key, 0) + 1
            if cast.why:
                add(self._tally.default_votes, cast.why)
