"""One membership or subscription, as a function of what the daemon tells: its view, its events, the open ballot.

A view is kept from notices: who came, who left, the new state. Everything that follows from one entry is taken
together, so that each of its events shows the group *after* the entry, as every other member sees it under the same
number. A message only moves the number on; nothing is made for it until somebody reads.

Pure: no clock of its own, no thread, no socket. What is to be said to the daemon goes through ``Speaker``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from .. import events
from ..attributes import GroupAttributes, attributes_of
from ..errors import GroupServiceError, Lost, PeerProtocolError, Rejected, TimedOut, UsageError
from ..positions import NOT_KNOWN, Numbering
from ..views import Provider, View, provider_of, stranger, text_of
from ..voting import MANUAL, Answer, Outcome, Proposal, messages_of, outcome_of, proposal_of, tally_of
from ..voting_words import Cause, Vote
from ..wire import client_messages as wire
from ..wire import notices
from .applying import Applying, CaughtUp, Item, Last, Restore, Snapshot
from .attendance import Attendance
from .event_buffer import EventBuffer, MessageRun
from .own_messages import OwnMessages
from .problems import error_of


class Speaker(Protocol):
    """The session, as its memberships see it."""

    def next_id(self) -> int:
        """For a request."""

    def say(self, request: wire.AnyClientRequest) -> None:
        """A request to the daemon whose answer nobody waits for."""

    def ask_for_vote(self, membership: Membership, proposal: Proposal) -> None:
        """The program's ``on_proposal`` is due."""

    def cast(self, membership: Membership, proposal: Proposal, answer: Answer | None) -> None:
        """The program votes, from whatever thread."""

    def vote_denied(self, membership: Membership, error: GroupServiceError) -> None:
        """A vote said what the program may not say; it is to be told."""

    def to_machine(self, membership: Membership, item: Item) -> None:
        """The program's state machine is due, behind what is due already."""

    def forget(self, membership: Membership) -> None:
        """It takes no part any more."""


class Membership:
    """A provider (``me``), or a subscription (``me`` is None)."""

    def __init__(
        self,
        speaker: Speaker,
        group: str,
        number: int,
        attributes: dict[str, notices.AttributeValue],
        view: notices.GroupView,
        *,
        my_id: notices.ProviderId | None = None,
        on_proposal: object = None,
        buffer: EventBuffer | None = None,
        applying: Applying | None = None,
        catches_up: bool = False,
        numbering: Numbering = NOT_KNOWN,
    ) -> None:
        self.group = group
        self.number = number
        self.numbering = numbering
        self.my_id = my_id
        self.on_proposal = on_proposal
        self.buffer = buffer  # where events go,
        self.reads = buffer  # and where those who read this group alone find them
        self.applying = applying
        self.is_caught_up = not catches_up  # with what came before it
        self._catches_up = catches_up
        self.attendance = Attendance()
        self.own = OwnMessages("" if my_id is None else text_of(my_id))
        self.seq = view.seq
        self.end_reason: str | None = None
        self.on_end: list[Callable[[], None]] = []
        self.on_doubt: list[Callable[[bool], None]] = []  # whether nobody vouches for it, when that changes
        self._speaker = speaker
        self._attributes = attributes
        self._providers: dict[notices.ProviderId, Provider] = {}
        self._start_seq = view.seq
        self._run: list[notices.AnyNotice] = []  # the entry that is being told
        self._parted: dict[notices.ProviderId, Provider] = {}  # who left with the entry in hand
        self._view = self._start_from(view)
        self.me = None if my_id is None else self.who(my_id)
        self._proposal: Proposal | None = None
        self._last_vote = (0, 0)  # ballot and phase
        self._cast: tuple[int, Proposal, bool] | None = None  # its request, on what, whether on_proposal returned it

    # --- What is known ---

    @property
    def view(self) -> View:
        """The newest."""
        self._view = view = self._view.at(self.seq)
        return view

    @property
    def attributes(self) -> GroupAttributes:
        """Of the group, as of now."""
        return attributes_of(self._attributes)

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is told to it."""
        return self.end_reason is not None

    @property
    def nothing_more(self) -> bool:
        """Whether nothing more is shown of it."""
        return self.has_ended and (self.applying is None or self.applying.is_idle)

    def is_provider(self, id: str) -> bool:
        """Whether somebody of this id is listed."""
        return any(provider.id == id for provider in self._providers.values())

    def outcome(self, found: notices.Outcome, seq: int) -> Outcome:
        """An outcome, with the view of its entry if that is the newest."""
        return outcome_of(self.group, found, self.who, self.view if seq == self.seq else None)

    def _start_from(self, view: notices.GroupView) -> View:
        self._providers = {one.id: provider_of(one) for one in view.providers}
        return View(
            view.seq, view.fence, tuple(self._providers.values()), view.state, view.state_version,
            Vote(view.default_vote), self.numbering, view.quorum_lost_seq,
        )  # fmt: skip

    def applies_to(self, machine: object) -> bool:
        """Whether that is its machine."""
        return self.applying is not None and self.applying.machine is machine

    def who(self, id: notices.ProviderId) -> Provider:
        """Whom this id stands for, as far as is known here."""
        return self._providers.get(id) or self._parted.get(id) or stranger(id)

    def saw(self, round_: notices.Round, seq: int) -> None:
        """A round of a barrier is over to which it had come."""
        self.attendance.ended(round_, seq, self._providers.keys())

    # --- What is told ---

    def told(self, notice: notices.AnyNotice, now: float, *, more: bool) -> None:
        """The next thing that follows from an entry; nothing is shown of it until all of it is here."""
        self._run.append(notice)
        if not more:
            run, self._run = self._run, []
            self._told(run, now)

    def _told(self, run: Sequence[notices.AnyNotice], now: float) -> None:
        self._parted.clear()
        self.seq = run[0].seq
        if self.seq > self._start_seq:  # else the view that we began with has it all
            for notice in run:
                self._apply(notice, now)
        if self._catches_up:  # the first that is told is our own Joined: all behind it is to be read
            self._catches_up = False
            self._put(CaughtUp())
        for notice in run:
            if isinstance(notice, notices.Message):  # by ballot; plain ones come in rows
                self._show_messages(notice.seq, notice.sender, (notice.payload,))
            else:
                self._show(notice, now)
            if isinstance(notice, notices.Left) and self.my_id in notice.providers:
                self.end(f"it left: {notice.cause}", None)
                break  # what comes behind it is in the view, and no event of this member

    def messages_came(self, seq: int, sender: notices.ProviderId, payloads: tuple[bytes, ...]) -> None:
        """Plain messages of one sender, entries from ``seq`` on."""
        if not payloads:
            raise PeerProtocolError(f"the daemon told of no messages at entry {seq} of group {self.group!r}")
        self.seq = max(self.seq, seq + len(payloads) - 1)  # what came before our own Joined is told late
        if sender == self.my_id:
            self.own.came_back(len(payloads))
        self._show_messages(seq, sender, payloads)

    def _show_messages(self, seq: int, sender: notices.ProviderId, payloads: tuple[bytes, ...]) -> None:
        if self.buffer is not None or self.applying is not None:
            provider = self.who(sender) if sender[2] else None
            self._append(MessageRun(self.group, seq, provider, text_of(sender), payloads, self._view))

    def missed(self, count: int, view: notices.GroupView) -> None:
        """A subscription was told too much at once; this is the group after it."""
        self.seq = view.seq
        self._view = self._start_from(view)
        self.happened(events.Overrun(count, group=self.group))

    def happened(self, event: events.Event) -> None:
        """Something that did not come through the stream."""
        if self.buffer is not None:
            self._append(event)

    def end(self, reason: str, last: events.Event | None) -> None:
        """Nothing more is told, and nobody needs to wait for what has not come back."""
        if self.end_reason is not None:
            return
        self.end_reason = reason
        self._proposal = None
        self.own.give_up(reason, self.group)
        if last is not None:
            self._put(Last(last))
        for callback in self.on_end:
            callback()

    def lose(self, reason: str) -> None:
        """The node, or the session, has lost it."""
        self.end(reason, Lost(reason, group=self.group))

    def _append(self, event: events.Event | MessageRun) -> None:
        if self.applying is not None and isinstance(event, MessageRun):
            if self.is_caught_up and not self.applying.has_room(len(event)):
                self._leave_overrun()  # a machine cannot go on without it
                return
            self.applying.waiting += len(event)
        self._put(event)

    def _put(self, item: Item) -> None:
        """Show this; if there is a machine, behind what it is still to apply."""
        if self.applying is None or self.applying.is_stopped:
            self.shown(item)
        else:
            self.applying.queued += 1
            self._speaker.to_machine(self, item)

    def shown(self, item: Item) -> None:
        """What the machine had to do with it is done: it is for the program to read."""
        match item:
            case CaughtUp():
                self.is_caught_up = True
            case Snapshot():
                self._send_checkpoint(item)
            case Restore():
                pass
            case Last():
                if self.buffer is not None:
                    self.buffer.append_anyway(item.event, group=self.group)
            case MessageRun() if self.applying is not None and not self.is_caught_up:
                pass  # it is in the state that the provider begins with; its first event is its own Joined
            case _:
                if self.buffer is not None and not self.buffer.append(item, group=self.group):
                    self._leave_overrun()

    def _leave_overrun(self) -> None:
        """A provider leaves rather than miss anything. Nothing is told to it after that, not even that it left."""
        if self.my_id is None or self.has_ended:
            return
        if self.applying is not None:
            self.applying.is_stopped = True
        self._speaker.say(wire.Overrun(self._speaker.next_id(), self.number))
        self.lose("its events were not read, and no more of them could be kept (limits.events_max)")

    # --- Its machine ---

    def block_came(self, index: int, block: bytes) -> None:
        """The next block of what the machine begins with."""
        if self.applying is not None and index == len(self.applying.blocks):
            self.applying.blocks.append(block)

    def checkpoint_came(self, at: int, count: int) -> None:
        """That was the last one."""
        if self.applying is None:
            return
        blocks, self.applying.blocks = tuple(self.applying.blocks), []
        if len(blocks) != count:
            raise PeerProtocolError(f"the daemon told {len(blocks)} blocks of a checkpoint that has {count}")
        self._put(Restore(at, blocks))

    def snapshot_wanted(self, seq: int) -> None:
        """A checkpoint is to be taken of the state after entry ``seq``."""
        if self.applying is not None:
            self._put(Snapshot(seq))

    def _send_checkpoint(self, snapshot: Snapshot) -> None:
        if snapshot.blocks is None or self.has_ended:
            return
        say, next_id, number = self._speaker.say, self._speaker.next_id, self.number
        for index, block in enumerate(snapshot.blocks):
            say(wire.StoreBlock(next_id(), number, snapshot.at, index, block))
        say(wire.SealCheckpoint(next_id(), number, snapshot.at, len(snapshot.blocks)))

    def machine_failed(self, reason: str) -> None:
        """It must not go on with a state that the others do not have: it leaves."""
        assert self.applying is not None
        self.applying.is_stopped = True
        if not self.has_ended:
            self._speaker.say(wire.GoodbyeAsk(self._speaker.next_id(), self.number))
            self._speaker.forget(self)
            self.lose(reason)

    # --- The view ---

    def _apply(self, notice: notices.AnyNotice, now: float) -> None:
        view = self._view
        match notice:
            case notices.Joined():
                self._providers.update((one.id, provider_of(one)) for one in notice.providers)
                self._view = attrs.evolve(view, providers=tuple(self._providers.values()), fence=notice.fence)
            case notices.Responsive():
                self.attendance.responds(notice.provider, does=notice.does, now=now)
            case notices.Left():
                self.attendance.has_left(notice.providers)
                for id in notice.providers:
                    if id in self._providers:
                        self._parted[id] = self._providers.pop(id)
                providers = tuple(self._providers.values())
                self._view = view = attrs.evolve(view, providers=providers, fence=notice.fence)
                is_on_disks = self._attributes.get("durable") is True and notice.cause == "node_failure"
                if not providers and not is_on_disks:  # state and version are kept as long as somebody is there
                    version = view.state_version + bool(view.state)  # that it is empty now is another value
                    self._view = attrs.evolve(view, state=b"", state_version=version)
            case notices.StateChanged():
                self._view = attrs.evolve(view, state=notice.value, state_version=notice.version)
            case notices.Fenced():
                lost_seq = notice.seq if notice.tail_may_be_lost else view.quorum_lost_seq
                self._view = attrs.evolve(view, fence=notice.fence, quorum_lost_seq=lost_seq)
            case notices.AttributesChanged():
                self._attributes = {**self._attributes, **dict(notice.changes)}
            case notices.PhaseClosed() | notices.Ended():
                if view.default_vote.value != notice.default_vote:
                    self._view = attrs.evolve(view, default_vote=Vote(notice.default_vote))
            case _:
                pass

    # --- Events ---

    def _show(self, notice: notices.AnyNotice, now: float) -> None:
        if isinstance(notice, notices.PhaseOpened):
            self._open(notice, now)
        if self.buffer is not None:
            event = self._event(notice)
            if isinstance(event, events.Left) and self.my_id in getattr(notice, "providers", ()):
                self._put(Last(event))
            elif event is not None:
                self._append(event)
        if isinstance(notice, notices.PhaseClosed | notices.Ended):
            self._proposal = None

    def _event(self, notice: notices.AnyNotice) -> events.Event | None:
        seq, view, group, who = self.seq, self.view, self.group, self.who
        match notice:
            case notices.Joined():
                joined = tuple(who(one.id) for one in notice.providers)
                return events.Joined(joined, seq=seq, view=view, group=group)
            case notices.Failing():
                return events.Failing(who(notice.provider), Cause(notice.cause), seq=seq, view=view, group=group)
            case notices.Left():
                left = tuple(who(one) for one in notice.providers)
                cause = Cause(notice.cause)
                return events.Left(left, cause, notice.code, notice.reason, seq=seq, view=view, group=group)
            case notices.StateChanged():
                return events.StateChanged(notice.value, notice.version, seq=seq, view=view, group=group)
            case notices.PhaseOpened():
                assert self._proposal is not None
                return events.Proposed(self._proposal, seq=seq, view=view, group=group)
            case notices.PhaseClosed():
                tally = tally_of(notice.votes, who)
                return events.PhaseEnded(self._proposal, notice.phase, tally, seq=seq, view=view, group=group)
            case notices.Ended():
                outcome = outcome_of(group, notice.outcome, who, view)
                if outcome.approved:
                    return events.Approved(outcome, seq=seq, view=view, group=group)
                return Rejected(outcome, seq=seq, view=view, group=group)
            case notices.AttributesChanged():
                return events.AttributesChanged(notice.changes, seq=seq, view=view, group=group)
            case notices.Responsive():
                kind = events.Responsive if notice.does else events.Unresponsive
                return kind(who(notice.provider), seq=seq, view=view, group=group)
            case _:
                return None

    # --- Votes ---

    def _open(self, opened: notices.PhaseOpened, now: float) -> None:
        has_a_vote = self.my_id in opened.electorate
        proposal = proposal_of(
            self.group, opened.subject, self.who, ballot=opened.ballot, phase=opened.phase,
            messages=messages_of(opened.messages, self.who), time_limit=opened.time_limit,
            electorate=tuple(self.who(one) for one in opened.electorate), deadline=now + opened.time_limit,
            cast=(lambda this, answer: self._speaker.cast(self, this, answer)) if has_a_vote else None,
        )  # fmt: skip
        self._proposal = proposal
        if not has_a_vote or self.on_proposal is MANUAL:
            return
        if self.on_proposal is None:
            self.vote(proposal, Answer(Vote.APPROVE))
        else:
            self._speaker.ask_for_vote(self, proposal)

    def is_open(self, proposal: Proposal) -> bool:
        """Whether this phase is the one that runs."""
        running = self._proposal
        return running is not None and (running.ballot, running.phase) == (proposal.ballot, proposal.phase)

    def vote(self, proposal: Proposal, answer: Answer | None) -> None:
        """Vote, once; None: the code that should has failed."""
        where = f"{proposal.in_words} in group {self.group!r}"
        if self._last_vote == (proposal.ballot, proposal.phase):
            text = (
                f"a vote on {where} was cast already in phase {proposal.phase};"
                " a provider has one vote in each phase, and it stands"
            )
            raise UsageError(text, group=self.group)
        if not self.is_open(proposal):
            text = (
                f"could not vote on {where}: phase {proposal.phase} is over, and the default vote was counted;"
                " vote before proposal.deadline, or let the phases of this group take longer (time_limit)"
            )
            raise TimedOut(text, group=self.group)
        self._last_vote = (proposal.ballot, proposal.phase)
        id = self._speaker.next_id()
        self._cast = (id, proposal, False)
        if answer is None:
            self._speaker.say(wire.CastVote(id, self.number, proposal.ballot, proposal.phase, None))
            return
        default = answer.default_vote
        self._speaker.say(
            wire.CastVote(
                id, self.number, proposal.ballot, proposal.phase, answer.vote.value, answer.state, answer.message,
                None if default is None else "approve" if default is Vote.APPROVE else "reject",
            )
        )  # fmt: skip

    def vote_as_returned(self, proposal: Proposal, answer: Answer | None) -> None:
        """The same for what ``on_proposal`` returned; nobody asks it again, so if that is denied it has failed."""
        self.vote(proposal, answer)
        assert self._cast is not None
        self._cast = (*self._cast[:2], True)

    def is_vote(self, id: int) -> bool:
        """Whether this request is the newest vote."""
        return self._cast is not None and self._cast[0] == id

    def vote_denied(self, problem: wire.Problem) -> None:
        """The daemon did not take it, as something was said with it that the program may not say: it has not voted."""
        assert self._cast is not None
        _, proposal, is_returned = self._cast
        self._cast = None
        what = f"vote on {proposal.in_words} with what was said"
        self._speaker.vote_denied(self, error_of(problem, what, group=self.group))
        if self.is_open(proposal):
            self._last_vote = (0, 0)
            if is_returned:
                self.vote(proposal, None)
