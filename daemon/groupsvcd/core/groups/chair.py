"""What the leader does about ballots: it collects the votes of the running phase, and rules when it is over.

A leads. B's daemon sends the votes of its providers, all of them every time, so that a lost, doubled or late message
changes nothing: nobody votes twice in a phase, so what a node has said is only ever added to. They may come before A
itself has been handed up the phase that they are for, because the second server to hold an entry delivers it first;
they are kept. When everybody in the electorate has voted, or is dead, or does not answer its daemon, or the time is up,
A orders what the votes were. For who has not voted it casts the group's default vote, and says why.

Who does not answer its daemon may have voted before that, and the vote was lost on its way here. So it is not enough
that it was announced: A waits until that daemon says, in the same word as the votes, that there is none in this phase.
Who votes nevertheless, before the others have, is heard (GS-27).

None of this survives A, and none of it has to: a phase without a ruling is open for whoever leads next. It is sent
all of it again and gives the phase its whole time. A ruling that does not appear in the stream after a while, because A
had no lease just then or its view changed, is ordered again: what fits no longer changes nothing.

It also ends the windows in which joins and leaves are collected, and says of nodes that were down that they are gone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Literal

from groupsvc.wire.notices import Cast, DefaultVote, ProviderId, Vote

from ..views import NodeId
from . import commands as cmd
from .ballots import Ballot
from .commands import NodesGone, PhaseEnded, WindowEnded
from .papers import Paper, Said, Silent
from .process_group import ProcessGroup

RULE_AGAIN_S = 1.0
"""After so long a ruling that was not delivered is taken for lost."""


class Chair:
    """Presides over the ballots of one group while its node leads."""

    def __init__(
        self, group: ProcessGroup, order: Callable[[bytes], None], is_gone: Callable[[NodeId], bool] = lambda node: True
    ) -> None:
        self._group = group
        self._order = order
        self._is_gone = is_gone
        self._gone_at = -math.inf  # when it was said of the nodes that we wait for
        self._look_again_at = math.inf  # whether another one is: of an old incarnation the list does not tell
        self._phase = (0, 0)  # the ballot and phase that is presided over
        self._said: dict[NodeId, Said] = {}
        self._early: dict[NodeId, tuple[tuple[int, int], Said]] = {}  # of a phase that is still to come
        self._ends_at = math.inf
        self._rule_at = -math.inf  # not before: a ruling is on its way
        self._windows: dict[Literal["joins", "leaves"], float] = {}  # when each ends
        self._ended: dict[
            Literal["joins", "leaves"], tuple[int, float]
        ] = {}  # up to which entry, as we ruled, and when

    # --- Votes ---

    def take(
        self, node: NodeId, ballot: int, phase: int, papers: Iterable[Paper], silent: Iterable[Silent] = ()
    ) -> None:
        """All votes that the providers of one node have cast so far in this phase, and who of them does not answer."""
        if (ballot, phase) == self._phase:
            self._said.setdefault(node, Said()).add(papers, silent)
        elif (ballot, phase) > self._phase:
            known, said = self._early.get(node, (self._phase, Said()))
            if (ballot, phase) > known:
                known, said = self._early[node] = ((ballot, phase), Said())
            if (ballot, phase) == known:  # else it is late, and what is newer is here already
                said.add(papers, silent)

    def look(self, now: float) -> None:
        """After something was delivered, voted, or time has passed: rule if there is something to rule on."""
        self._look_at_windows(now)
        self._look_at_nodes(now)
        ballot = self._group.ballot
        if ballot is None:
            self._phase, self._ends_at, self._rule_at = (0, 0), math.inf, -math.inf
            return
        if (ballot.id, ballot.phase) != self._phase:
            self._phase = (ballot.id, ballot.phase)
            self._said = {node: said for node, (of, said) in self._early.items() if of == self._phase}
            self._early = {node: early for node, early in self._early.items() if early[0] > self._phase}
            self._rule_at = -math.inf
            self._ends_at = now + ballot.time_limit if ballot.time_limit > 0 else math.inf
        if now >= self._rule_at:
            casts = self._casts(ballot, is_late=now >= self._ends_at)
            if casts is not None:
                self._rule_at = now + RULE_AGAIN_S
                self._order(cmd.encode(self._ruling(ballot, casts)))

    def _paper(self, provider: ProviderId) -> Paper | None:
        """Its vote. One that says more than its share is none: its daemon had to refuse it, and did not."""
        said, ballot = self._said.get(provider[:2]), self._group.ballot
        paper = None if said is None else said.papers.get(provider[2])
        if paper is None or ballot is None or len(paper.message or b"") > ballot.message_bytes_max:
            return None
        return paper

    def _is_silent(self, provider: ProviderId) -> bool:
        """Whether it was announced that it does not answer, and its daemon, which knew, had no vote of it."""
        since, said = self._group.unresponsive.get(provider), self._said.get(provider[:2])
        return since is not None and said is not None and said.silent.get(provider[2], -1) >= since

    def _casts(self, ballot: Ballot, *, is_late: bool) -> tuple[Cast, ...] | None:
        """Everybody's vote, if the phase is over."""
        default: Vote = self._group.default_vote
        casts: list[Cast] = []
        for provider in ballot.electorate:
            paper = self._paper(provider)
            if paper is not None:
                vote = default if paper.vote is None else paper.vote
                casts.append(Cast(provider, vote, "raised" if paper.vote is None else ""))
            elif provider in self._group.failing:
                casts.append(Cast(provider, default, "failed"))
            elif self._is_silent(provider) or (is_late and provider in self._group.unresponsive):
                casts.append(Cast(provider, default, "unresponsive"))
            elif is_late:
                casts.append(Cast(provider, default, "late"))
            else:
                return None
        return tuple(casts)

    def _ruling(self, ballot: Ballot, casts: tuple[Cast, ...]) -> PhaseEnded:
        """Of several proposed states the oldest provider's is taken; of several default votes REJECT (GS-25, GS-26)."""
        papers = [(one, paper) for one in ballot.electorate if (paper := self._paper(one)) is not None]
        states = [(one, paper.state) for one, paper in papers if paper.state is not None]
        messages = tuple((one, paper.message) for one, paper in papers if paper.message is not None)
        defaults = {paper.default_vote for _, paper in papers if paper.default_vote is not None}
        default: DefaultVote | None = "reject" if "reject" in defaults else "approve" if defaults else None
        return PhaseEnded(ballot.id, ballot.phase, casts, states[0] if states else None, messages, default)

    # --- Nodes that are gone ---

    def _look_at_nodes(self, now: float) -> None:
        nodes = dict.fromkeys(provider[:2] for provider in self._group.held_back)
        gone = tuple(node for node in nodes if self._is_gone(node))
        self._look_again_at = now + RULE_AGAIN_S if len(gone) < len(nodes) else math.inf
        if not gone:
            self._gone_at = -math.inf  # nothing is to be repeated
        elif now >= self._gone_at + RULE_AGAIN_S:
            self._gone_at = now
            self._order(cmd.encode(NodesGone(gone)))

    # --- Windows ---

    def _look_at_windows(self, now: float) -> None:
        group = self._group
        waiting: dict[Literal["joins", "leaves"], bool] = {
            "joins": any(isinstance(one.command, cmd.Join) and one.seq > group.ready["joins"] for one in group.queue),
            "leaves": any(seq > group.ready["leaves"] for _, seq in group.failing.values())
            or any(isinstance(one.command, cmd.Leave) and one.seq > group.ready["leaves"] for one in group.queue),
        }
        for what, are_waiting in waiting.items():
            if what in self._ended and self._ended[what][0] <= group.ready[what]:
                del self._ended[what]  # it is delivered: who comes now waits for another window
                self._windows.pop(what, None)
            upto, ruled_at = self._ended.get(what, (0, -math.inf))
            is_ruled = upto > group.ready[what] and now < ruled_at + RULE_AGAIN_S
            if not (are_waiting and group.rules.batches(what)):
                self._windows.pop(what, None)
            elif is_ruled:
                self._windows[what] = ruled_at + RULE_AGAIN_S
            elif now >= self._windows.setdefault(what, now + group.rules.batch_window):
                self._ended[what] = (group.seq, now)
                self._windows[what] = now + RULE_AGAIN_S
                self._order(cmd.encode(WindowEnded(what, group.seq)))

    @property
    def deadline(self) -> float:
        """When time alone decides something, or a ruling is taken for lost."""
        at = max(self._ends_at, self._rule_at) if self._rule_at == -math.inf else self._rule_at
        if self._gone_at > -math.inf:
            at = min(at, self._gone_at + RULE_AGAIN_S)
        return min((at, self._look_again_at, *self._windows.values()))
