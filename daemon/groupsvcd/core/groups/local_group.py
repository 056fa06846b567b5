"""This node's part in one process group: its own processes in it, and what is kept for them.

A process of this node wants to join: the node carries the group's stream from then on, and applies every entry to its
copy of the ``ProcessGroup``. What follows from an entry is told to the processes here that it concerns. What they want
is submitted as commands (``Line``), which the stream orders exactly once. Their votes go to the leader (``BallotBox``).
While this node leads, it presides (``Chair``).

Plain messages are the most frequent entries by far, and come many in a row from one sender. They change nothing in the
group, so a run of them is told as one, and nothing is made of it on the way.

The node leaves the stream when none of its processes takes part any more, or the group has ended: who wanted to join
and came too late for it asks for the group again, and finds the next one of that name. If it loses the group, so have
they, and what became of their proposals is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from groupsvc.wire.notices import (
    FOR_SUBSCRIBERS,
    AnyNotice,
    Emptied,
    Ended,
    Failing,
    Fenced,
    Joined,
    Left,
    PhaseOpened,
    ProposalId,
    ProviderId,
    Refused,
    Responsive,
)

from ..nodegroups.controls import Ruled, decode_control
from ..nodegroups.roll import decode_checkpoint
from ..nodegroups.user import HAS_ENDED, WhyNot
from ..peer_messages import ForChair, Votes, Waits
from ..stream.entries import Entry, Run, runs_of
from ..views import AttributeValue, NodeId
from . import commands as cmd
from .archive import Kept
from .ballot_box import BallotBox, VoteProblem
from .ballots import Ballot
from .barriers import Barriers
from .chair import Chair
from .line import RETRY_S, Line
from .papers import Paper, Silent
from .process_group import ProcessGroup
from .replay import messages_in
from .shares import shares_of
from .stretches import is_plain, payload_of, stretches

if TYPE_CHECKING:
    from .arrivals import Arrival
    from .process_groups import ProcessGroups

DISSOLVED = "the group has dissolved: its last provider has left"

Decided = Callable[[Ended | Refused | None], None]
"""Told once how a proposal ended; None: it is not known, and never will be."""


class Listener(Protocol):
    """A process of this node, as far as one group is concerned: a provider, somebody who wants to be, a subscriber."""

    def told(self, run: Sequence[AnyNotice], group: ProcessGroup) -> None:
        """All that follows from one entry and concerns this process; ``group`` is as it is after that entry."""

    def heard(self, seq: int, sender: ProviderId, payloads: Sequence[bytes]) -> None:
        """The same as so many ``Message`` notices in a row, of one sender: entries from ``seq`` on."""

    def is_scribe(self, seq: int) -> None:
        """A checkpoint of its machine is wanted, as that is after entry ``seq``."""

    def lost(self, reason: str) -> None:
        """Nothing more comes."""


class LocalGroup:
    """One process group on one node: a user of the node group, and its machine."""

    def __init__(self, groups: ProcessGroups, name: str, entered_for: Arrival | None = None) -> None:
        self.name = name
        self.entered_for = entered_for  # for whose sake this node asked for the group
        self.is_kept = False  # it was formed for somebody who takes no part: it stays until somebody does
        self.id = 0
        self.refusal: WhyNot | Literal[""] = ""  # why this node does not get in
        self.is_steward = False  # carries the group for the sake of its disk, until a provider of it leaves
        self._groups = groups
        self._attributes: dict[str, AttributeValue] = {}
        self.group = ProcessGroup({})
        self._processes: dict[int, Listener] = {}  # providers, and who wants to be one, by number
        self._told_in: set[int] = set()  # those of them that were told that they are in, and not that they are out
        self._subscribers: dict[int, Listener] = {}
        self._proposals: dict[int, Decided] = {}
        self._line = Line(lambda bodies: groups.submit(self, bodies))
        self._retry_at = math.inf
        self._box = BallotBox(groups.timers)
        self._chair: Chair | None = None
        self.barriers = Barriers(groups, self, self._submit)
        self._answers: dict[int, bool] = {}  # whether providers answer, of whom that was asked
        self._saying: set[int] = set()  # of whom that is on its way
        self._errands: dict[int, Callable[[str], None]] = {}  # who waits for the stream, and is told if it is lost
        self._errand = 0
        self._scribe_turns = 0  # how many were to take a checkpoint, when we last looked

    # --- Processes come and go ---

    @property
    def is_in(self) -> bool:
        """Whether our own insertion was delivered here."""
        return self._line.is_open

    @property
    def is_idle(self) -> bool:
        """Whether no process of this node takes part, or is still to come."""
        return not self._processes and not self._subscribers and not self.is_kept

    def join(self, listener: Listener, command: cmd.Join, decided: Decided) -> None:
        """A process wants to be a provider, under the number of its own in the proposal."""
        self._processes[command.provider] = listener

        def is_decided(how: Ended | Refused | None) -> None:
            if isinstance(how, Refused):  # it never had its turn, and is none of ours
                self._processes.pop(command.provider, None)
                self._groups.soon(self.leave_if_idle)
            decided(how)

        self.propose(command, is_decided)

    def subscribe(self, listener: Listener, number: int) -> None:
        """A process wants to watch."""
        self._subscribers[number] = listener

    def unsubscribe(self, number: int) -> None:
        """It does not any more."""
        self._subscribers.pop(number, None)
        self.leave_if_idle()

    def is_no_more(self, number: int, cause: cmd.FailureCause | None) -> None:
        """A process has ended, or says goodbye; without a cause it goes with its node. Until then it may count."""
        if self._processes.pop(number, None) is not None and cause is not None:
            self._submit(cmd.encode(cmd.ProvidersFailed(((number, cause),))))

    def take_back(self, number: int, proposal: int, cause: cmd.FailureCause | None) -> None:
        """Whoever wanted to join does not any more. What came of its proposal is told to it all the same."""
        if self._take_out(proposal):
            self._processes.pop(number, None)
            self._groups.soon(self.leave_if_idle)
        else:
            self.is_no_more(number, cause)

    def responds(self, number: int, *, does: bool) -> None:
        """A provider does not answer its daemon, or does so again.

        While what was said last is on its way nothing is added to it: a program may change its mind very often.
        """
        self._answers[number] = does
        provider = (*self._groups.me, number)
        if number not in self._saying and does == (provider in self.group.unresponsive):
            self._saying.add(number)
            self._submit(cmd.encode(cmd.Responds(number, does)))

    def _was_said(self, number: int) -> None:
        """Whether this provider of ours answers was ordered; if it is not so any more, that follows."""
        self._saying.discard(number)
        if number in self._answers:  # else it is none of those that we have now
            self.responds(number, does=self._answers[number])

    def leave_if_idle(self) -> None:
        """Nobody on this node takes part, or waits to: then it does not carry the group."""
        if self.has_ended:
            self._groups.leave(self)
            return
        is_kept = self.is_steward or self._groups.is_without_heir(self)
        is_busy = is_kept or len(self._line) > 0 or self._errands or self._groups.arrivals.awaits(self.name)
        if self.is_idle and not is_busy and not self._has_providers_here:
            self._groups.leave(self)

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes in this stream for anybody."""
        return self.group.has_ended

    @property
    def _has_providers_here(self) -> bool:
        """Whether the stream still has processes of ours: until it says that they have left, we carry it."""
        me = self._groups.me
        return any(provider[:2] == me for provider in self.group.providers)

    # --- Proposals and messages ---

    def propose(self, command: cmd.AnyProposal, decided: Decided) -> None:
        """A proposal of a process of this node."""
        self._proposals[command.number] = self._groups.timed(command, decided)
        self._submit(cmd.encode(command), proposal=command.number)

    def withdraw(self, proposal: int) -> None:
        """Nobody waits for it any more; whether it had its turn before is told to whoever proposed it."""
        if not self._take_out(proposal):
            self._submit(cmd.encode(cmd.Withdraw(proposal)))

    def _take_out(self, proposal: int) -> bool:
        """Whether it was not even submitted: then it certainly does not happen."""
        if not self._line.take_out(proposal):
            return False
        self._plan_retry()  # perhaps nothing waits any more
        whole = (*self._groups.me, proposal)
        self._decide((whole,), Refused(self.group.seq, whole, "withdrawn"))
        return True

    def say(self, number: int, payloads: Sequence[bytes]) -> None:
        """Plain messages of a provider, in this order; they come back to it."""
        prefix = cmd.message_prefix(number)
        self._put([prefix + payload for payload in payloads])

    def take_checkpoint(self, command: cmd.StoreBlock | cmd.SealCheckpoint) -> None:
        """A provider takes a checkpoint of its machine."""
        self._submit(cmd.encode(command))

    @property
    def oldest_kept(self) -> int:
        """Messages after this entry are still kept here for who wants them."""
        if self.group.archive is not None:
            return self.group.archive.begins
        seat = self._groups.seat_of(self)
        return seat.replica.log.checkpoint_seq if seat is not None else self.group.seq

    @property
    def numbering(self) -> tuple[int, int]:
        """What the numbers of entries are of: the group, and its newest view that may have lost what was delivered."""
        seat = self._groups.seat_of(self)
        return self.id, 0 if seat is None else seat.group.roll.beginning

    def messages_since(self, seq: int) -> Iterator[Kept]:
        """The messages after entry ``seq``, which are kept, up to what was told here last."""
        if self.group.archive is not None:
            return self.group.archive.since(seq)
        seat = self._groups.seat_of(self)
        assert seat is not None
        log, group = seat.replica.log, ProcessGroup(self._attributes)
        if log.checkpoint_seq:
            group.restore(decode_checkpoint(log.checkpoint).application)
        entries = seat.replica.entries_between(log.checkpoint_seq + 1, self.group.seq)
        return (one for one in messages_in(group, log.checkpoint_seq + 1, entries) if one[0] > seq)

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
        self._box.send(self.group.ballot, self._silent, self._groups.now, self._pass_on)

    @property
    def _silent(self) -> dict[ProviderId, int]:
        """Providers of this node that are known not to answer, by the entry that announced it; and it is still so."""
        me, known = self._groups.me, self.group.unresponsive
        return {one: seq for one, seq in known.items() if one[:2] == me and self._answers.get(one[2]) is False}

    def _pass_on(self, running: Ballot, papers: tuple[Paper, ...], silent: tuple[Silent, ...]) -> None:
        if self._chair is not None:
            self._chair.take(self._groups.me, running.id, running.phase, papers, silent)
            self._chair.look(self._groups.now)
        else:
            self._groups.send_to_leader(self, Votes(self.id, running.id, running.phase, papers, silent))

    def on_message(self, node: NodeId, message: ForChair) -> None:
        """Something for whoever leads, from another node; or from this one, by another way."""
        self.look_who_leads()
        if isinstance(message, Waits):
            self.barriers.on_waits(node, message.waiters)
        elif isinstance(message, Votes) and self._chair is not None:
            self._groups.look_at(self)
            self._chair.take(node, message.ballot, message.phase, message.papers, message.silent)
            self._chair.look(self._groups.now)

    # --- The node group's user ---

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """This node carries the group."""
        self.id = group
        self._attributes = self._groups.attributes_of(self)  # as whoever formed the group settled them
        if not self.group.seq:
            self.group = ProcessGroup(self._attributes)
        self._groups.carries(self)
        if self._groups.me in members:
            self._groups.soon(self._is_now_in)  # the node was in before us; what we missed is delivered after this

    def refused(self, why: WhyNot) -> None:
        """This node cannot take part; in words it is told as ``lost``."""
        self.refusal = why

    def _is_now_in(self) -> None:
        """Our own insertion was delivered here: what our processes say from now on comes back to them."""
        if self.has_ended:
            self.leave_if_idle()
        elif not self.is_in and self._groups.get(self.name) is self:
            self._line.is_open = True
            self._disown_strays()
            self._move_line()
            self._groups.arrivals.entered(self)

    def _disown_strays(self) -> None:
        """Processes of this node that have lost the group, which the node then did not leave, are none any more."""
        ours = {process[2] for process in self.group.processes_of((self._groups.me,))}
        self._disown(sorted(ours - self._processes.keys()))

    def _disown_unasked(self, ended: Ended) -> None:
        """The same for who gets in only now: its join was on its way when it lost the group, and is none of ours."""
        if not self.is_in:
            return
        subject, me = ended.outcome.subject, self._groups.me
        joins = zip(subject.proposals, subject.joining, strict=False)  # of a ballot about something else nobody joins
        self._disown([
            joiner.id[2]
            for proposal, joiner in joins
            if joiner.node == me and joiner.id in self.group.providers and proposal[2] not in self._proposals
        ])  # fmt: skip

    def _disown(self, strays: Sequence[int]) -> None:
        if strays:
            self._submit(cmd.encode(cmd.ProvidersFailed(tuple((number, "failure") for number in strays))))

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next entries."""
        seq = first_seq
        has_changed = False
        for run in runs_of(entries):
            for bodies in stretches(run.bodies):
                if run.origin and is_plain(bodies[0]):
                    self._hear(seq, run, bodies)
                else:
                    has_changed = True
                    self._apply(seq, run, bodies[0])
                seq += len(bodies)
        self._move_line()
        if has_changed:  # by plain messages nobody's turn comes, and nothing ends
            self._groups.look_at(self)
            self.look_who_leads()
            self.barriers.look()
            self.leave_if_idle()

    def _apply(self, seq: int, run: Run, body: bytes) -> None:
        """A command, a ruling, or something about nodes."""
        if run.origin:
            notices = self.group.apply(seq, (run.origin, run.incarnation), body)
        else:
            control = decode_control(body)
            if isinstance(control, Ruled):
                notices = self.group.rule(seq, control.body)
            else:
                notices = self.group.control(seq, control)
        if self.group.rounds.has_news:
            self.barriers.applied()
        if notices:
            self._tell(notices)
            if self._silent and any(isinstance(one, PhaseOpened | Responsive) for one in notices):
                self._box.hurry()
                self._send_votes()
        if self.group.archive is not None:
            self._look_for_a_scribe()

    def _hear(self, seq: int, run: Run, bodies: Sequence[bytes]) -> None:
        """So many plain messages of one sender, in a row."""
        sender = (run.origin, run.incarnation, cmd.sender_of(bodies[0]))
        if self.group.hear(seq, len(bodies), sender):
            if self.group.archive is not None:
                self.group.keep(seq, sender, tuple(map(payload_of, bodies)))
            listeners = [one for number, one in self._processes.items() if number in self._told_in]
            if listeners:
                payloads = tuple(map(payload_of, bodies))
                for listener in listeners:
                    listener.heard(seq, sender, payloads)
            if self.group.archive is not None:
                self._look_for_a_scribe()

    def _look_for_a_scribe(self) -> None:
        """Messages have gathered: perhaps a provider of ours is to take a checkpoint of its machine, now."""
        turns = self.group.scribe_turns
        if turns > self._scribe_turns:
            scribe = self.group.scribe(turns)
            if scribe is not None and scribe[:2] == self._groups.me and scribe[2] in self._processes:
                self._processes[scribe[2]].is_scribe(self.group.seq)
        self._scribe_turns = turns

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
        if self._groups.me in members:
            self._is_now_in()
        self.look_who_leads()
        self._box.hurry()
        self._send_votes()
        self.barriers.leader_changed()

    def lost(self, reason: str) -> None:
        """This node carries the group no longer."""
        self._groups.forget(self)
        processes, self._processes = self._processes, {}
        self._told_in = set()
        subscribers, self._subscribers = self._subscribers, {}
        proposals, self._proposals = self._proposals, {}
        self._box.empty()
        self._retry_at, self._chair = math.inf, None
        errands, self._errands = self._errands, {}
        if self.has_ended or (reason == HAS_ENDED and not self.is_in):
            self._groups.arrivals.come_again(self)
        elif not self.is_in:
            self._groups.arrivals.lost(self, reason)
        for failed in errands.values():
            failed(reason)
        self.barriers.lose(reason)
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
        self.barriers.start_again()
        if self.is_in:
            self._groups.lost_entries(self)

    # --- Telling ---

    def _tell(self, notices: list[AnyNotice]) -> None:
        """What follows from one entry: everybody is told all of it, and then it has its consequences here."""
        self._groups.journal(self, notices)
        me, happened = self._groups.me, [notice for notice in notices if not isinstance(notice, Refused)]
        for number, share in shares_of(happened, me, tuple(self._processes), self._told_in):
            self._processes[number].told(share, self.group)
        if public := [notice for notice in happened if isinstance(notice, FOR_SUBSCRIBERS)]:
            for listener in list(self._subscribers.values()):
                listener.told(public, self.group)
        for notice in self._groups.counted(self, notices):
            if isinstance(notice, Refused):
                self._decide((notice.proposal,), notice)
            elif isinstance(notice, PhaseOpened):
                self._box.empty()
            elif isinstance(notice, Joined):
                self.is_kept = False  # from now on it lives as long as its providers
                self._told_in.update(provider.id[2] for provider in notice.providers if provider.node == me)
            elif isinstance(notice, Ended):
                self._disown_unasked(notice)
                self._decide(notice.outcome.subject.proposals, notice)
                self._turn_away(notice)
            elif isinstance(notice, Responsive) and notice.provider[:2] == me:
                self._was_said(notice.provider[2])
            elif isinstance(notice, Failing) and notice.provider[:2] == me:
                self.barriers.drop(notice.provider[2])
            elif isinstance(notice, Left):
                self._part_with(notice)
            elif isinstance(notice, Fenced) and notice.tail_may_be_lost:
                self._groups.quorum_was_lost(self, notice.seq)
            elif isinstance(notice, Emptied):
                self._dissolve()

    def _decide(self, proposals: Sequence[ProposalId], how: Ended | Refused) -> None:
        for node, incarnation, number in proposals:
            if (node, incarnation) == self._groups.me:
                if (decided := self._proposals.pop(number, None)) is not None:
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
                self.barriers.drop(provider[2])
                self._told_in.discard(provider[2])
                self._saying.discard(provider[2])
                self._answers.pop(provider[2], None)
                self.is_steward = False

    def _dissolve(self) -> None:
        """The group has ended. What is still on its way from here never has its turn: it is told so now."""
        subscribers, self._subscribers = self._subscribers, {}
        for listener in subscribers.values():
            listener.lost(DISSOLVED)
        self._processes = {}  # they wanted to join
        for number in list(self._proposals):
            whole = (*self._groups.me, number)
            self._decide((whole,), Refused(self.group.seq, whole, "ended"))

    # --- Leading, and time ---

    def look_who_leads(self) -> None:
        """Whether this node presides over the ballots, and what that demands now."""
        if self.has_ended:
            self._groups.close(self)
        leads = self._groups.leads(self)
        if not leads:
            self._chair = None
        elif self._chair is None:
            self._chair = Chair(self.group, lambda body: self._groups.rule(self, body), self._groups.is_gone)
            self._send_votes()
        self.barriers.lead(leads=leads)
        if self._chair is not None:
            self._chair.look(self._groups.now)

    @property
    def deadline(self) -> float:
        """When something is to be done without a message."""
        at = min(self._box.repeat_at, self._retry_at, self.barriers.deadline)
        return at if self._chair is None else min(at, self._chair.deadline)

    def tick(self) -> None:
        """Time has passed."""
        self.look_who_leads()
        if self._groups.now >= self._box.repeat_at:
            self._send_votes()
        if self._groups.now >= self._retry_at:
            self._move_line()
        self.barriers.tick()
