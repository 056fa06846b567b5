"""This node's part in one process group: its own processes in it, and what is kept for them.

A process of this node wants to join: the node carries the group's stream from then on, and applies every entry to its
copy of the ``ProcessGroup``. What follows from an entry is told to the processes here that it concerns. What they want
is submitted as commands, which the stream orders exactly once. Their votes go to the leader, all of this node's every
time, again to a new leader and now and then until the phase has ended: so one that is lost or doubled changes nothing.
While this node leads, it presides (``Chair``).

The node leaves the stream when none of its processes takes part any more. If it loses the group, so have they, and what
became of their proposals is not known.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from groupsvc.wire.notices import (
    FOR_SUBSCRIBERS,
    AnyNotice,
    Emptied,
    Ended,
    GroupView,
    Left,
    PhaseOpened,
    ProposalId,
    ProviderId,
    Refused,
)

from ..nodegroups.controls import Ruled, decode_control
from ..peer_messages import Votes
from ..stream.entries import Entry
from ..views import AttributeValue, NodeId
from . import commands as cmd
from .chair import Chair
from .papers import Paper
from .process_group import ProcessGroup

if TYPE_CHECKING:
    from .process_groups import ProcessGroups

WAITING_MAX = 10_000
"""Commands of this node's processes that the stream has no room for yet."""

Decided = Callable[[Ended | Refused | None], None]
"""Told once how a proposal ended; None: it is not known, and never will be."""


class Listener(Protocol):
    """A process of this node, as far as one group is concerned: a provider, somebody who wants to be, a subscriber."""

    def told(self, notice: AnyNotice, view: GroupView) -> None:
        """The next thing that happened; ``view`` is how the group is after the entry that it follows from."""

    def lost(self, reason: str) -> None:
        """Nothing more comes."""


class LocalGroup:
    """One process group on one node: a user of the node group, and its machine."""

    def __init__(self, groups: ProcessGroups, name: str) -> None:
        self.name = name
        self.id = 0
        self._groups = groups
        self._attributes: dict[str, AttributeValue] = {}
        self.group = ProcessGroup({})
        self._processes: dict[int, Listener] = {}  # providers, and who wants to be one, by number
        self._subscribers: dict[int, Listener] = {}
        self._proposals: dict[int, Decided] = {}
        self._waiting: deque[bytes] = deque()
        self._papers: dict[int, Paper] = {}  # votes in the running phase
        self._chair: Chair | None = None
        self._repeat_at = math.inf
        self._wait = groups.timers.repeat_first
        self._is_in = False  # whether our own insertion was delivered here

    # --- Processes come and go ---

    @property
    def is_idle(self) -> bool:
        """Whether no process of this node takes part."""
        return not self._processes and not self._subscribers

    def join(self, listener: Listener, number: int, name: str, data: bytes, decided: Decided) -> int:
        """A process wants to be a provider, under this number; returns that of its proposal."""
        self._processes[number] = listener
        proposal = self._groups.next_number()
        self.propose(cmd.Join(proposal, number, cmd.BY_DEFAULT, cmd.BY_DEFAULT, name, data), decided)
        return proposal

    def subscribe(self, listener: Listener, number: int) -> None:
        """A process wants to watch."""
        self._subscribers[number] = listener

    def unsubscribe(self, number: int) -> None:
        """It does not any more."""
        self._subscribers.pop(number, None)
        self._leave_if_idle()

    def is_no_more(self, number: int, cause: cmd.FailureCause) -> None:
        """A process has ended, or says goodbye."""
        if self._processes.pop(number, None) is not None:
            self._submit(cmd.encode(cmd.ProvidersFailed(((number, cause),))))

    def responds(self, number: int, *, does: bool) -> None:
        """A provider does not answer its daemon, or does so again."""
        self._submit(cmd.encode(cmd.Responds(number, does)))

    def _leave_if_idle(self) -> None:
        if self.is_idle and not self._waiting and not self._has_providers_here:
            self._groups.leave(self)

    @property
    def _has_providers_here(self) -> bool:
        """Whether the stream still has processes of ours: until it says that they have left, we carry it."""
        me = self._groups.me
        return any(provider[:2] == me for provider in self.group.providers)

    # --- Proposals and messages ---

    def propose(self, command: cmd.AnyProposal, decided: Decided) -> None:
        """A proposal of a process of this node."""
        self._proposals[command.number] = decided
        self._submit(cmd.encode(command))

    def withdraw(self, proposal: int) -> None:
        """Nobody waits for it any more; whether it had its turn before is told to whoever proposed it."""
        self._submit(cmd.encode(cmd.Withdraw(proposal)))

    def say(self, number: int, payloads: Sequence[bytes]) -> int:
        """Plain messages of a provider; the number of the first in this node's submissions, 0 if there is no room."""
        prefix = cmd.message_prefix(number)
        if self._waiting or not self._is_in:
            return 0
        return self._groups.submit(self, [prefix + payload for payload in payloads])

    def _submit(self, body: bytes) -> None:
        if self._waiting or not self._is_in or not self._groups.submit(self, (body,)):
            self._waiting.append(body)

    def _submit_what_waits(self) -> None:
        while self._waiting and self._groups.submit(self, (self._waiting[0],)):
            self._waiting.popleft()

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be proposed here."""
        return len(self._waiting) >= WAITING_MAX

    # --- Votes ---

    def vote(self, ballot: int, phase: int, paper: Paper) -> bool:
        """A provider of this node votes; False if that phase is over, or it has no vote in it."""
        running = self.group.ballot
        voter = (*self._groups.me, paper.provider)
        if running is None or (ballot, phase) != (running.id, running.phase) or voter not in running.electorate:
            return False
        self._papers[paper.provider] = paper
        self._groups.look_at(self)
        self._wait = self._groups.timers.repeat_first
        self._send_votes()
        return True

    def _send_votes(self) -> None:
        running = self.group.ballot
        if running is None or not self._papers:
            self._repeat_at = math.inf
            return
        self._repeat_at = self._groups.now + self._wait
        self._wait = min(2 * self._wait, self._groups.timers.repeat_max)
        papers = tuple(self._papers.values())
        if self._chair is not None:
            self._chair.take(self._groups.me, running.id, running.phase, papers)
            self._chair.look(self._groups.now)
        else:
            self._groups.send_to_leader(self, Votes(self.id, running.id, running.phase, papers))

    def on_votes(self, node: NodeId, votes: Votes) -> None:
        """Votes of another node, or of this one by another way."""
        if self._chair is not None:
            self._groups.look_at(self)
            self._chair.take(node, votes.ballot, votes.phase, votes.papers)
            self._chair.look(self._groups.now)

    # --- The node group's user ---

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """This node carries the group."""
        self.id = group
        self._attributes = self._groups.attributes_of(self)  # as whoever formed the group settled them
        if not self.group.seq:
            self.group = ProcessGroup(self._attributes)
        self._groups.carries(self)

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next entries."""
        self._groups.look_at(self)
        for seq, entry in enumerate(entries, first_seq):
            if entry.origin:
                notices = self.group.apply(seq, (entry.origin, entry.incarnation), entry.body)
            else:
                control = decode_control(entry.body)
                if isinstance(control, Ruled):
                    notices = self.group.rule(seq, control.body)
                else:
                    notices = self.group.control(seq, control)
            if notices:
                self._tell(notices)
        self._submit_what_waits()
        self._look_who_leads()
        self._leave_if_idle()

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Somebody else leads, perhaps: it gets our votes. Or we are in.

        Before our copy has come to our own insertion nothing is submitted: it might come to us in a checkpoint, and
        nobody would be told what became of it.
        """
        self._groups.look_at(self)
        if not self._is_in and self._groups.me in members:
            self._is_in = True
            self._submit_what_waits()
        self._look_who_leads()
        self._wait = self._groups.timers.repeat_first
        self._send_votes()

    def lost(self, reason: str) -> None:
        """This node carries the group no longer."""
        self._groups.forget(self)
        processes, self._processes = self._processes, {}
        subscribers, self._subscribers = self._subscribers, {}
        proposals, self._proposals = self._proposals, {}
        self._repeat_at, self._chair = math.inf, None
        for decided in proposals.values():
            decided(None)
        for listener in (*processes.values(), *subscribers.values()):
            listener.lost(reason)

    # --- Its machine ---

    def snapshot(self) -> bytes:
        """The group as it is."""
        return self.group.snapshot()

    def restore(self, seq: int, state: bytes) -> None:
        """Go on from another's copy. What processes here missed meanwhile they have lost."""
        group = ProcessGroup(self._attributes)
        if state:
            group.restore(state)
        group.seq = max(group.seq, seq)
        self.group = group
        self._chair = None
        if self._is_in:
            self._groups.lost_entries(self)

    # --- Telling ---

    def _tell(self, notices: list[AnyNotice]) -> None:
        view = self.group.view
        me = self._groups.me
        for notice in notices:
            if isinstance(notice, Refused):
                self._decide((notice.proposal,), notice)
                continue
            if isinstance(notice, PhaseOpened):
                self._papers = {}
                self._repeat_at = math.inf
            for number, listener in list(self._processes.items()):
                if (*me, number) in self.group.providers or _is_about(notice, (*me, number)):
                    listener.told(notice, view)
            if isinstance(notice, FOR_SUBSCRIBERS):
                for listener in list(self._subscribers.values()):
                    listener.told(notice, view)
            if isinstance(notice, Ended):
                self._decide(notice.outcome.subject.proposals, notice)
                self._turn_away(notice)
            elif isinstance(notice, Left):
                self._part_with(notice)
            elif isinstance(notice, Emptied):
                self._dissolve()

    def _decide(self, proposals: Sequence[ProposalId], how: Ended | Refused) -> None:
        for node, incarnation, number in proposals:
            if (node, incarnation) == self._groups.me:
                decided = self._proposals.pop(number, None)
                if decided is not None:
                    decided(how)

    def _turn_away(self, ended: Ended) -> None:
        """Who was not let in is no process of ours any more."""
        outcome = ended.outcome
        for joiner in outcome.subject.joining:
            if joiner.node == self._groups.me and joiner.id not in self.group.providers:
                self._processes.pop(joiner.id[2], None)

    def _part_with(self, left: Left) -> None:
        for provider in left.providers:
            if provider[:2] == self._groups.me:
                self._processes.pop(provider[2], None)

    def _dissolve(self) -> None:
        subscribers, self._subscribers = self._subscribers, {}
        for listener in subscribers.values():
            listener.lost("the group has dissolved: its last provider has left")

    # --- Leading, and time ---

    def _look_who_leads(self) -> None:
        leads = self._groups.leads(self)
        if not leads:
            self._chair = None
        elif self._chair is None:
            self._chair = Chair(self.group, lambda body: self._groups.rule(self, body))
            self._send_votes()
        if self._chair is not None:
            self._chair.look(self._groups.now)

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        return min(self._repeat_at, self._chair.deadline if self._chair is not None else math.inf)

    def tick(self) -> None:
        """Time has passed."""
        self._look_who_leads()
        if self._groups.now >= self._repeat_at:
            self._send_votes()


def _is_about(notice: AnyNotice, process: ProviderId) -> bool:
    """Whether this is the last thing that a provider is told: that it is one no longer."""
    return isinstance(notice, Left) and process in notice.providers
