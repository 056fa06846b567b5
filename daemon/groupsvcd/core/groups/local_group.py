"""This node's part in one process group: its own processes in it, and what is kept for them.

A process of this node wants to join: the node carries the group's stream from then on, and applies every entry to its
copy of the ``ProcessGroup``. What follows from an entry is told to the processes here that it concerns. What they want
is submitted as commands (``Line``), which the stream orders exactly once. Their votes go to the leader (``BallotBox``).
While this node leads, it presides (``Chair``).

Plain messages are the most frequent entries by far, and come many in a row from one sender. They change nothing in the
group, so a run of them is told as one, and nothing is made of it on the way.

The node leaves the stream when none of its processes takes part any more. If it loses the group, so have they, and what
became of their proposals is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from groupsvc.wire.notices import (
    FOR_SUBSCRIBERS,
    AnyNotice,
    Emptied,
    Ended,
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
from .ballot_box import BallotBox, VoteProblem
from .ballots import Ballot
from .chair import Chair
from .line import RETRY_S, Line
from .papers import Paper
from .process_group import ProcessGroup

if TYPE_CHECKING:
    from .arrivals import Arrival
    from .process_groups import ProcessGroups

DISSOLVED = "the group has dissolved: its last provider has left"

Decided = Callable[[Ended | Refused | None], None]
"""Told once how a proposal ended; None: it is not known, and never will be."""


class Listener(Protocol):
    """A process of this node, as far as one group is concerned: a provider, somebody who wants to be, a subscriber."""

    def told(self, notice: AnyNotice, group: ProcessGroup) -> None:
        """The next thing that happened; ``group`` is as it is after the entry that it follows from."""

    def heard(self, seq: int, sender: ProviderId, payloads: Sequence[bytes]) -> None:
        """The same as so many ``Message`` notices in a row, of one sender: entries from ``seq`` on."""

    def lost(self, reason: str) -> None:
        """Nothing more comes."""


class LocalGroup:
    """One process group on one node: a user of the node group, and its machine."""

    def __init__(self, groups: ProcessGroups, name: str, entered_for: Arrival | None = None) -> None:
        self.name = name
        self.entered_for = entered_for  # for whose sake this node asked for the group
        self.id = 0
        self._groups = groups
        self._attributes: dict[str, AttributeValue] = {}
        self.group = ProcessGroup({})
        self._processes: dict[int, Listener] = {}  # providers, and who wants to be one, by number
        self._subscribers: dict[int, Listener] = {}
        self._proposals: dict[int, Decided] = {}
        self._line = Line(lambda bodies: groups.submit(self, bodies))
        self._retry_at = math.inf
        self._box = BallotBox(groups.timers)
        self._chair: Chair | None = None
        self._errands: dict[int, Callable[[str], None]] = {}  # who waits for the stream, and is told if it is lost
        self._errand = 0

    # --- Processes come and go ---

    @property
    def is_in(self) -> bool:
        """Whether our own insertion was delivered here."""
        return self._line.is_open

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
        self.leave_if_idle()

    def is_no_more(self, number: int, cause: cmd.FailureCause) -> None:
        """A process has ended, or says goodbye."""
        if self._processes.pop(number, None) is not None:
            self._submit(cmd.encode(cmd.ProvidersFailed(((number, cause),))))

    def responds(self, number: int, *, does: bool) -> None:
        """A provider does not answer its daemon, or does so again."""
        self._submit(cmd.encode(cmd.Responds(number, does)))

    def leave_if_idle(self) -> None:
        """Nobody on this node takes part, or waits to: then it does not carry the group."""
        is_busy = len(self._line) > 0 or self._errands or self._groups.arrivals.awaits(self.name)
        if self.is_idle and not is_busy and not self._has_providers_here:
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
        self._submit(cmd.encode(command), proposal=command.number)

    def withdraw(self, proposal: int) -> None:
        """Nobody waits for it any more; whether it had its turn before is told to whoever proposed it."""
        if self._line.take_out(proposal):
            self._plan_retry()  # perhaps nothing waits any more
            whole = (*self._groups.me, proposal)
            self._decide((whole,), Refused(self.group.seq, whole, "withdrawn"))
        else:
            self._submit(cmd.encode(cmd.Withdraw(proposal)))

    def say(self, number: int, payloads: Sequence[bytes]) -> None:
        """Plain messages of a provider, in this order; they come back to it."""
        prefix = cmd.message_prefix(number)
        self._put([prefix + payload for payload in payloads])

    def say_from_outside(
        self, payloads: Sequence[bytes], held: Callable[[], None], lost: Callable[[str], None]
    ) -> None:
        """Plain messages of somebody who is no member, who is called back when k servers hold them."""
        is_held = self._wait_for(lambda _: held(), lost)
        prefix = cmd.message_prefix(0)
        bodies = [prefix + payload for payload in payloads]
        self._put(bodies, submitted=lambda n: self._groups.when_held(self, n, is_held))

    def sync(self, told: Callable[[int], None], lost: Callable[[str], None]) -> None:
        """Call back when everything that was ordered until now was told here."""
        if not self._groups.sync(self, self._wait_for(told, lost)):
            del self._errands[self._errand]
            lost("this node does not carry the group at the moment")

    def _wait_for(self, told: Callable[[int], None], lost: Callable[[str], None]) -> Callable[[int], None]:
        self._errand += 1
        number = self._errand

        def is_so(seq: int) -> None:
            if self._errands.pop(number, None) is not None:
                told(seq)
                self._groups.soon(self.leave_if_idle)  # the node group is busy with telling us

        self._errands[number] = lost
        return is_so

    def _submit(self, body: bytes, *, proposal: int = 0) -> None:
        self._put((body,), proposal=proposal)

    def _put(
        self, bodies: Sequence[bytes], *, proposal: int = 0, submitted: Callable[[int], None] | None = None
    ) -> None:
        self._line.put(bodies, proposal=proposal, submitted=submitted)
        self._plan_retry()

    def _plan_retry(self) -> None:
        if self._line.is_open and len(self._line):
            self._retry_at = self._groups.now + RETRY_S
            self._groups.look_at(self)
        else:
            self._retry_at = math.inf

    @property
    def is_full(self) -> bool:
        """Whether nothing more should be proposed here."""
        return self._line.is_full

    # --- Votes ---

    def vote(self, ballot: int, phase: int, paper: Paper) -> VoteProblem:
        """A provider of this node votes; why that does not count, or ""."""
        problem = self._box.take(self.group.ballot, self._groups.me, ballot, phase, paper)
        if not problem:
            self._groups.look_at(self)
            self._box.hurry()
            self._send_votes()
        return problem

    def _send_votes(self) -> None:
        self._box.send(self.group.ballot, self._groups.now, self._pass_on)

    def _pass_on(self, running: Ballot, papers: tuple[Paper, ...]) -> None:
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
        position, count = 0, len(entries)
        while position < count:
            entry, seq = entries[position], first_seq + position
            end = end_of_run(entries, position) if entry.origin else position
            if end > position:
                self._hear(seq, entries[position:end])
                position = end
                continue
            position += 1
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
        self._move_line()
        self._look_who_leads()
        self.leave_if_idle()

    def _hear(self, seq: int, run: Sequence[Entry]) -> None:
        """So many plain messages of one sender, in a row."""
        first = run[0]
        sender = (first.origin, first.incarnation, cmd.sender_of(first.body))
        if self.group.hear(seq, len(run), sender):
            me, providers = self._groups.me, self.group.providers
            listeners = [one for number, one in self._processes.items() if (*me, number) in providers]
            if listeners:
                payloads = tuple([entry.body[cmd.MESSAGE_HEAD_BYTES :] for entry in run])
                for listener in listeners:
                    listener.heard(seq, sender, payloads)

    def _move_line(self) -> None:
        if len(self._line):
            self._line.move()
            self._plan_retry()

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Somebody else leads, perhaps: it gets our votes. Or we are in.

        Before our copy has come to our own insertion nothing is submitted: it might come to us in a checkpoint, and
        nobody would be told what became of it.
        """
        self._groups.look_at(self)
        if not self.is_in and self._groups.me in members:
            self._line.is_open = True
            self._move_line()
            self._groups.arrivals.entered(self)
        self._look_who_leads()
        self._box.hurry()
        self._send_votes()

    def lost(self, reason: str) -> None:
        """This node carries the group no longer."""
        self._groups.forget(self)
        processes, self._processes = self._processes, {}
        subscribers, self._subscribers = self._subscribers, {}
        proposals, self._proposals = self._proposals, {}
        self._box.empty()
        self._retry_at, self._chair = math.inf, None
        errands, self._errands = self._errands, {}
        if not self.is_in:
            self._groups.arrivals.lost(self, reason)
        for failed in errands.values():
            failed(reason)
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
        if self.is_in:
            self._groups.lost_entries(self)

    # --- Telling ---

    def _tell(self, notices: list[AnyNotice]) -> None:
        group, me = self.group, self._groups.me
        for notice in notices:
            if isinstance(notice, Refused):
                self._decide((notice.proposal,), notice)
                continue
            if isinstance(notice, PhaseOpened):
                self._box.empty()
            for number, listener in list(self._processes.items()):
                if (*me, number) in group.providers or _is_about(notice, (*me, number)):
                    listener.told(notice, group)
            if isinstance(notice, FOR_SUBSCRIBERS):
                for listener in list(self._subscribers.values()):
                    listener.told(notice, group)
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
            listener.lost(DISSOLVED)

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
        at = min(self._box.repeat_at, self._retry_at)
        return at if self._chair is None else min(at, self._chair.deadline)

    def tick(self) -> None:
        """Time has passed."""
        self._look_who_leads()
        if self._groups.now >= self._box.repeat_at:
            self._send_votes()
        if self._groups.now >= self._retry_at:
            self._move_line()


def _is_about(notice: AnyNotice, process: ProviderId) -> bool:
    """Whether this is the last thing that a provider is told: that it is one no longer."""
    return isinstance(notice, Left) and process in notice.providers


def end_of_run(entries: Sequence[Entry], position: int) -> int:
    """The end of the run of plain messages of one sender that begins here; ``position`` itself if this is none."""
    first = entries[position]
    head = first.body[: cmd.MESSAGE_HEAD_BYTES]
    if head[:1] != b"\0" or len(head) < cmd.MESSAGE_HEAD_BYTES:
        return position
    origin, incarnation = first.origin, first.incarnation
    end, count = position + 1, len(entries)
    while end < count:
        entry = entries[end]
        if entry.body[: cmd.MESSAGE_HEAD_BYTES] != head or entry.origin != origin or entry.incarnation != incarnation:
            break
        end += 1
    return end
