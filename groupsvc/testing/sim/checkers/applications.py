"""The checkers of what applications called and were told, by invariant.

They read the applications' own lines, from which the ``Stories`` are made, and of the daemons' only when an entry was
first delivered and ordered, and which nodes were given up, by the domain and by each group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import attrs

from groupsvc.wire.history import HistoryEvent

from . import application_calls, ballots
from .application_stories import Stories
from .ballots import Known, Times
from .barriers import REPLY_SLACK_S, Barriers, r1, r2, r3, r4
from .earlier_messages import told_what_came_before
from .group_streams import GroupStream, Pieces, members_of
from .kept_rounds import r5
from .tables import g11
from .tasks import r6
from .verdict import Violation
from .void import runs_of


@attrs.define
class Head:
    """How far one node has come in a group. What it does in a step it may have decided before the step's last entry."""

    before: int = 0  # when the present step began
    seq: int = 0
    t: float = -1.0

    def moved(self, line: HistoryEvent) -> None:
        """An entry was delivered to it, or a checkpoint restored."""
        if line.t > self.t:
            self.before, self.t = self.seq, line.t
        self.seq = line.seq

    def at(self, t: float) -> tuple[int, int]:
        """How far it had come at this time: at least, and at most."""
        return (self.seq if t > self.t else self.before), self.seq


@attrs.frozen(kw_only=True)
class Audience:
    """All applications of a run, and what their checkers need beside their own lines."""

    stories: Stories
    barriers: Barriers
    domain: Sequence[HistoryEvent]
    delivered: Times
    ordered: Times
    known: Known
    converged: bool
    waiting: frozenset[str]  # names of groups that wait for their disks
    lost: frozenset[int]  # and their ids
    reply_slack_s: float = REPLY_SLACK_S

    @classmethod
    def of(
        cls, pieces: Pieces, streams: Sequence[GroupStream], *, converged: bool, reply_slack_s: float = REPLY_SLACK_S
    ) -> Audience:
        """From the pieces of a history, and the groups of which their lines tell."""
        stories = Stories(pieces.applications, runs_of(streams))
        lineages = {stream.id: stream.lineage for stream in streams if stream.lineage.cuts}
        delivered: Times = {}
        ordered: Times = {}
        known: Known = {}
        waiting: dict[int, str] = {}
        out = {group: _out(lines) for group, lines in pieces.groups.items() if group in stories.by_group}
        for group, lines in pieces.groups.items():
            heads: dict[tuple[str, int], Head] = {}
            lineage = lineages.get(group)
            for line in lines:
                if line.op == "disks_lost":
                    waiting[line.group] = str(line.args["name"])
                elif line.op == "delivered" and group in stories.by_group:
                    if lineage is None or not lineage.is_void(line.seq, line.epoch, line.crc):
                        delivered.setdefault((group, line.seq), line.t)
                    heads.setdefault((line.node, line.inc), Head()).moved(line)
                elif line.op == "restored" and group in stories.by_group:
                    heads.setdefault((line.node, line.inc), Head()).moved(line)
                elif lineage is not None and lineage.is_void(line.seq, line.epoch, line.crc):
                    continue
                elif line.op == "ordered" and group in stories.by_group:
                    ordered[group, line.seq] = line.t
                    known[group, line.seq] = heads.setdefault((line.node, line.inc), Head()).at(line.t)
        return cls(
            stories=stories, barriers=Barriers(stories, out), domain=pieces.domain, delivered=delivered,
            ordered=ordered, known=known, converged=converged, waiting=frozenset(waiting.values()),
            lost=frozenset(waiting), reply_slack_s=reply_slack_s,
        )  # fmt: skip


def _out(lines: Iterable[HistoryEvent]) -> dict[str, int]:
    """With which entry a node (name/incarnation) was taken off the list of members, and a provider was failing."""
    newest, listed, out, failing = 0, frozenset[str](), dict[str, int](), dict[str, int]()
    for line in lines:
        if line.op == "provider_failing":
            failing.setdefault("/".join(map(str, line.args["provider"])), line.seq)
        elif line.op == "members" and line.seq > newest:
            before, newest = listed, line.seq
            listed = frozenset(f"{name}/{inc}" for name, inc in members_of(line))
            out.update((node, newest) for node in before - listed)
            out = {node: seq for node, seq in out.items() if node not in listed}
    return out | failing


ApplicationChecker = Callable[[Audience], Iterable[Violation]]

APPLICATIONS: dict[str, ApplicationChecker] = {
    "G1": lambda found: chain(
        ballots.g1(found.stories, found.converged, found.lost), told_what_came_before(found.stories)
    ),
    "G2": lambda found: ballots.g2(found.stories),
    "G3": lambda found: ballots.g3(found.stories, found.delivered, found.ordered, found.known),
    "G9": lambda found: application_calls.g9(found.stories),
    "G10": lambda found: ballots.g10(found.stories, found.converged, found.lost),
    "G11": lambda found: g11(found.stories, found.domain),
    "K1": lambda found: application_calls.k1(found.stories, found.converged, found.waiting, found.lost),
    "K2": lambda found: application_calls.k2(found.stories, found.domain),
    "B1": lambda found: application_calls.b1(found.stories),
    "B5": lambda found: application_calls.b5(found.stories),
    "L6": lambda found: application_calls.l6(found.stories),
    "R1": lambda found: r1(found.barriers),
    "R2": lambda found: r2(found.barriers),
    "R3": lambda found: r3(found.barriers),
    "R4": lambda found: r4(found.barriers, reply_slack_s=found.reply_slack_s),
    "R5": lambda found: r5(found.barriers),
    "R6": lambda found: r6(found.barriers, found.converged),
}
"""G3 replays every story, and so is also the one to see G4, G5, G6 and G7; G1 lays them side by side, and sees G8."""
