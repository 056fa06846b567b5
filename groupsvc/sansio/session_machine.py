"""A session, without socket, clock or thread: what it says, what became of calls, what happened, what is due.

A driver (``session.py`` blocking, ``aio.py``) owns the connection. It tells the machine what happens to it
(``connected``, ``received``, ``disconnected``, ``tick``) and the machine fills three boxes that the driver empties:

- ``outbox``: requests to be sent on the present connection, in order;
- ``due``: code of the application that is to be run, one at a time (votes, changes of state);
- the ends of ``Call`` objects, and the event buffers of memberships.

The session outlives connections. What it says is kept until the daemon has counted it (``counting.py``), so a broken
connection costs nothing but time: on the next one the session is resumed, and each side repeats what the other has not
counted. If that cannot be had within the time the daemon waits, or it has forgotten us, everything is LOST.

Whether what we know is true is decided by our own clock (``session_states.py``): that a connection stands proves
nothing. That it broke does: the daemon may be dead, so the session is SUSPENDED until it is resumed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, get_args

import attrs

from .. import events
from ..errors import DaemonUnreachable, GroupServiceError, PeerProtocolError, Suspended, UsageError, WouldBlock
from ..positions import Numberings
from ..session_states import IS_OVER, LEGAL, Lease, SessionState
from ..views import text_of
from ..voting import Answer, Proposal
from ..wire import client_messages as wire
from ..wire import notices
from ..wire.limits import GRACE_S, REQUESTS_WAITING_MAX, RESPONSIVE_S, SESSION_ALIVE_S
from .applying import Item, MachineDue
from .calls import REPLY_SLACK_S, Call, Calls, Convert
from .counting import Heard, Said
from .event_buffer import EventBuffer
from .membership_machine import Membership


@attrs.frozen
class VoteDue:
    """``membership.on_proposal`` is to be asked."""

    membership: Membership
    proposal: Proposal


@attrs.frozen
class StateDue:
    """Whoever listens for it is to be told."""

    state: SessionState


@attrs.frozen
class DenialDue:
    """A vote was not taken: the program is to be told."""

    membership: Membership
    error: GroupServiceError


Due = VoteDue | StateDue | MachineDue | DenialDue

QUESTIONS_MAX = 100
"""A daemon that has not answered so many is stopped: it is not asked again before it does."""

SILENT_QUESTIONS = 4
"""A connection is given up for its silence only if so many were asked: who was stopped for a while has asked one."""

UNTAKEN_MAX = 2 * REQUESTS_WAITING_MAX
"""Requests that it has not counted. Callers give up after their time, and what they asked for is kept all the same."""

SILENT = "the daemon did not answer in time"
UNREACHED = "the connection to the daemon broke, and it could not be reached again in time"

_ABOUT_THE_SESSION = (wire.SessionIs, wire.SessionAliveAck, wire.Welcome)
_TELLINGS = frozenset(get_args(wire.AnyTelling))
CastHook = Callable[[Membership, Proposal, Answer | None], None]


class Chore(Protocol):
    """Something that is to be done at a certain time."""

    @property
    def deadline(self) -> float:
        """When."""

    def tick(self, now: float) -> None:
        """It is that time."""


class SessionMachine:
    """One session, from before it is opened until it is closed."""

    def __init__(
        self, name: str, cast_hook: CastHook, numberings: Numberings | None = None, silence_s_max: float = math.inf
    ) -> None:
        self.name = name
        self.state = SessionState.SUSPENDED
        self.id = 0
        self.end_reason = ""
        self.refused: wire.Problem | None = None  # why the session was not even opened
        self.is_hung_up = False  # the daemon knows this connection no longer, or is not heard on it: we need a new one
        self.outbox: list[wire.AnyClientRequest] = []
        self.due: deque[Due] = deque()
        self.members: dict[int, Membership] = {}
        self.numberings = Numberings() if numberings is None else numberings  # of all sessions with this daemon
        self.parted = 0  # how many were left by their own will: whoever reads them is to be woken
        self.unapplied = 0  # what state machines have before them
        self.merged: EventBuffer | None = None
        self.busy_since: float | None = None  # code of the application runs since then
        self.has_spoken: set[Membership] = set()  # whose messages gather
        self.lease = Lease()
        self.chores: list[Chore] = []  # what recipes have to do in time
        self._cast_hook = cast_hook
        self._silence_s_max = silence_s_max  # without an answer; then the connection is given up
        self._secret = b""
        self._proposals: notices.ProposalId | None = None  # what the numbers of requests are added to
        self._last_id = 1  # Hello is the first
        self._said = Said()
        self._heard = Heard()
        self._calls = Calls(self._unwanted)
        self._opening = 0  # the request that is to open or resume, on this connection
        self._is_on = False  # whether it was answered
        self._alive_at = math.inf
        self._give_up_at = math.inf
        self._heard_at = -math.inf
        self._now = -math.inf

    @property
    def now(self) -> float:
        """When something was last heard, or the time last looked at."""
        return self._now

    # --- The connection ---

    def connected(self, now: float) -> None:
        """A new connection was greeted: open the session on it, or go on with it."""
        self._now = now
        if self.state in IS_OVER:
            return
        self.outbox.clear()
        self._opening = self.next_id()
        self.lease.asked(self._opening, now)
        if self.id:
            self.outbox.append(wire.ResumeSession(self._opening, self.id, self._secret, self._heard.said()))
        else:
            self.outbox.append(wire.OpenSession(self._opening, self.name))

    def disconnected(self, now: float) -> None:
        """The connection is over, and with it what the daemon vouched for.

        If it died, the others may go on without this node at once: they need not wait until our lease is over.
        """
        self._now = now
        self.outbox.clear()
        self.lease.forget_questions()
        self.lease.revoked()
        self._is_on = self.is_hung_up = False
        self._opening = 0
        self._alive_at = math.inf
        if self.state not in IS_OVER and self._give_up_at == math.inf:
            self._give_up_at = now + GRACE_S
        if self.state not in IS_OVER:
            self._become(SessionState.SUSPENDED, "the connection to the daemon broke")

    @property
    def is_on(self) -> bool:
        """Whether the session is open on the present connection."""
        return self._is_on

    @property
    def give_up_at(self) -> float:
        """When a session without a connection is lost."""
        return self._give_up_at

    def received(self, messages: Sequence[wire.AnyClientReply], now: float, size: int = 0) -> None:
        """What came in one frame of ``size`` bytes."""
        self._now = self._heard_at = now
        heard = self._heard
        heard.bytes += size
        for message in messages:
            if self.state in IS_OVER:
                return
            if isinstance(message, _ABOUT_THE_SESSION):
                self._not_counted(message)
                continue
            if isinstance(message, wire.Problem) and self._is_about_the_session(message):
                continue
            if not self._is_on:
                raise PeerProtocolError(f"the daemon sent {type(message).__name__} before the session was open")
            heard.count += 1
            if type(message) in _TELLINGS:
                self._told(message)
            else:
                self._calls.answer(message)  # type: ignore[arg-type]  # it is none of the others
        if self._is_on and heard.is_much:
            self._say_alive()

    def _told(self, message: wire.AnyClientReply) -> None:
        match message:
            case wire.Told():
                membership = self.members.get(message.member)
                if membership is not None:
                    membership.told(message.notice, self._now, more=message.more)
                    self._look_whether_it_ended(membership)
            case wire.MessagesCame():
                membership = self.members.get(message.member)
                if membership is not None:
                    membership.messages_came(message.seq, message.sender, message.payloads)
                    self._look_whether_it_ended(membership)
            case wire.MemberLost():
                membership = self.members.pop(message.member, None)
                if membership is not None and message.dissolved:
                    membership.end(message.reason, events.Dissolved(message.reason, group=membership.group))
                elif membership is not None:
                    membership.lose(message.reason)
            case wire.NoticesMissed():
                membership = self.members.get(message.member)
                if membership is not None:
                    membership.missed(message.missed, message.view)
            case wire.SessionNews():
                self._news(message)
            case wire.CheckpointBlock():
                if (membership := self.members.get(message.member)) is not None:
                    membership.block_came(message.index, message.block)
            case wire.CheckpointTold():
                if (membership := self.members.get(message.member)) is not None:
                    membership.checkpoint_came(message.at, message.blocks)
            case wire.SnapshotWanted():
                if (membership := self.members.get(message.member)) is not None:
                    membership.snapshot_wanted(message.seq)

    def _look_whether_it_ended(self, membership: Membership) -> None:
        if membership.has_ended:
            self.members.pop(membership.number, None)

    def _unwanted(self, answer: wire.AnyAnswer) -> None:
        """No call waits for it: messages or a vote were refused, or what was entered too late is left again."""
        if isinstance(answer, wire.JoinedAs | wire.Subscribed):
            self.say(wire.GoodbyeAsk(self.next_id(), answer.member))
        elif isinstance(answer, wire.Problem):
            for membership in self.members.values():
                if membership.own.is_waiting_for(answer.id):
                    membership.own.refused(answer, membership.group)
                    break
                if answer.code == "permission denied" and membership.is_vote(answer.id):
                    membership.vote_denied(answer)
                    break

    # --- Opening, resuming, the lease ---

    def _not_counted(self, message: wire.SessionIs | wire.SessionAliveAck | wire.Welcome) -> None:
        if isinstance(message, wire.Welcome):
            raise PeerProtocolError("the daemon greeted twice")
        if not self.lease.granted(message.id, message.good_for):
            raise PeerProtocolError(f"the daemon answered with {type(message).__name__} what nobody asked")
        self._said.taken(message.taken)
        if isinstance(message, wire.SessionIs):
            if self.id and message.session != self.id:
                raise PeerProtocolError(
                    f"session {self.id} was to be resumed, and the daemon resumed {message.session}"
                )
            is_resumed = bool(self.id)
            self.id, self._secret, self._proposals = message.session, message.secret, message.proposals
            self._is_on, self._opening, self._give_up_at = True, 0, math.inf
            self._alive_at = self._now + SESSION_ALIVE_S
            if is_resumed:
                # What was missed comes behind this: nothing is true before, and the answer to a question is after it.
                self.lease.revoked()
                self._say_alive()
            self.outbox.extend(self._said.after(message.taken))
        self._look_at_the_lease()

    def _is_about_the_session(self, problem: wire.Problem) -> bool:
        """A refusal that is no answer to a call."""
        if problem.id and problem.id != self._opening and not self.lease.waits_for(problem.id):
            return False
        if not problem.id and problem.code == "hello":
            self.is_hung_up = True
            return True
        if not self.id:
            self.refused = problem
        self.lose(problem.text)
        return True

    def _news(self, news: wire.SessionNews) -> None:
        if news.state == "lost":
            self.lose(news.reason)
        elif news.state == "suspended":
            self.lease.revoked()
            self._become(SessionState.SUSPENDED, news.reason)
        else:
            self._say_alive()  # its answer says for how long

    def _look_at_the_lease(self) -> None:
        if self.state is SessionState.CONNECTED and self._now >= self.lease.until:
            self._become(SessionState.SUSPENDED, "the daemon has not vouched for this session in time")
        elif self.state is SessionState.SUSPENDED and self._now < self.lease.until:
            self._become(SessionState.CONNECTED)

    def _become(self, state: SessionState, reason: str = "") -> None:
        if state is self.state:
            return
        assert state in LEGAL[self.state], f"{self.state} -> {state}"
        self.state = state
        self.due.append(StateDue(state))
        for membership in list(self.members.values()):
            if state is SessionState.SUSPENDED:
                membership.happened(Suspended(reason, group=membership.group))
            elif state is SessionState.CONNECTED:
                membership.happened(events.Resumed(group=membership.group))
            for callback in membership.on_doubt:
                callback(state is SessionState.SUSPENDED)
            self._look_whether_it_ended(membership)

    def lose(self, reason: str) -> None:
        """Everything this session had is gone, for ever."""
        if self.state not in IS_OVER:
            self._end(SessionState.LOST, reason)

    def end(self) -> None:
        """The program has closed it."""
        if self.state is not SessionState.CLOSED:
            self._end(SessionState.CLOSED, "the session was closed")

    def _end(self, state: SessionState, reason: str) -> None:
        self._become(state)
        self.end_reason = reason
        self._is_on = False
        self._alive_at = self._give_up_at = math.inf
        self.lease.revoked()
        self.outbox.clear()
        self.chores.clear()
        members, self.members = self.members, {}
        for membership in members.values():
            if state is SessionState.LOST:
                membership.lose(reason)
            else:
                membership.end(reason, None)
        self._calls.end_all(reason)

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When ``tick`` is due, whatever happens."""
        lease = self.lease.until if self.state is SessionState.CONNECTED else math.inf
        at = min(self._alive_at, self._give_up_at, lease, self._calls.deadline)
        return min(at, *(chore.deadline for chore in self.chores)) if self.chores else at

    def tick(self, now: float) -> None:
        """Time has passed."""
        self._now = now
        if now >= self._give_up_at:
            self.lose(f"the connection broke, and the daemon could not be reached again within {GRACE_S:g} s")
        if now >= self._alive_at:
            self._look_for_silence()
            self._say_alive()
        if (now < self.lease.until) is not (self.state is SessionState.CONNECTED):
            self._look_at_the_lease()
        if now >= self._calls.deadline:
            for call in self._calls.tick(now, SILENT if self._is_on else UNREACHED):
                self._take_back(call)  # the daemon may have been stopped, and believe that somebody still waits
        if self.chores:
            for chore in [one for one in self.chores if now >= one.deadline]:
                chore.tick(now)

    def _look_for_silence(self) -> None:
        """All that had come was read."""
        since = max(self.lease.waits_since, self._heard_at)
        if self.lease.questions >= SILENT_QUESTIONS and self._now - since >= self._silence_s_max:
            self.is_hung_up = True

    def _say_alive(self) -> None:
        if not self._is_on:
            return
        self._alive_at = self._now + SESSION_ALIVE_S
        if self.lease.questions >= QUESTIONS_MAX:
            return
        busy = 0.0 if self.busy_since is None else self._now - self.busy_since
        id = self.next_id()
        self.lease.asked(id, self._now)
        self.outbox.append(wire.SessionAlive(id, self._heard.said(), busy < RESPONSIVE_S))

    def valid_for(self, now: float) -> float:
        """Seconds for which what is known here is certainly true; 0 if it is not."""
        return max(0.0, self.lease.until - now)

    # --- Saying things ---

    def next_id(self) -> int:
        """For a request."""
        self._last_id += 1
        return self._last_id

    def say(self, request: wire.AnyClientRequest) -> None:
        """A request whose answer nobody waits for."""
        if self.state in IS_OVER:
            return
        self._said.say(request)
        if self._is_on:
            self.outbox.append(request)

    def ask(
        self,
        make: Callable[[int], wire.AnyClientRequest],
        expected: type[Any] | tuple[type[Any], ...],
        what: str,
        *,
        now: float,
        timeout: float,
        harmless: bool = False,
        group: str | None = None,
        convert: Convert | None = None,
        proposes: bool = False,
    ) -> Call:
        """A request and the call that waits for its answer.

        ``harmless``: it changes nothing. ``proposes``: it has an id, by which somebody can ask later what became of it.
        """
        if now > self._now:
            self._now = now
        if self.state in IS_OVER:
            self.check_open(what, group)
        if len(self._calls) >= REQUESTS_WAITING_MAX:
            text = f"could not {what}: {REQUESTS_WAITING_MAX} calls of this session wait already; wait for some"
            raise WouldBlock(text, group=group)
        if len(self._said) >= UNTAKEN_MAX:
            text = f"could not {what}: the daemon has not taken the {UNTAKEN_MAX} requests before it"
            text += "; it is stopped or overloaded"
            raise WouldBlock(text, group=group, advice="try later or connect again")
        id = self.next_id()
        ids = (self._proposal_of(id),) if proposes and self._proposals is not None else ()
        call = Call(id, expected, what, harmless=harmless, group=group, convert=convert, ids=ids)
        if self.has_spoken:
            self.say_what_gathers()
        self._calls.add(call, now + timeout + REPLY_SLACK_S)
        self.say(make(call.id))
        return call

    def _proposal_of(self, id: int) -> str:
        """The id of the proposal that this request makes, by which its outcome can be asked for."""
        assert self._proposals is not None
        node, incarnation, base = self._proposals
        return text_of((node, incarnation, base + id))

    def abandon(self, call: Call) -> None:
        """Whoever waited for it was interrupted; what it has entered meanwhile is nobody's, and left again."""
        if not call.is_done:
            self._calls.abandon(call)
            self._take_back(call)
        elif call.error is None and isinstance(call.result, Membership) and not call.result.has_ended:
            self.say(wire.GoodbyeAsk(self.next_id(), call.result.number))
            self.part(call.result, "whoever joined was interrupted")

    def _take_back(self, call: Call) -> None:
        if call.take_back is not None:
            self.say(call.take_back(self.next_id()))

    def check_open(self, what: str, group: str | None = None) -> None:
        """Raise if nothing can be done any more."""
        if self.state is SessionState.CLOSED:
            raise UsageError(f"could not {what}: this session was closed", group=group, advice="connect again")
        if self.state is SessionState.LOST:
            text = f"could not {what}: this session is lost ({self.end_reason})"
            raise DaemonUnreachable(text, group=group, advice="connect and join again")

    def say_what_gathers(self) -> None:
        """Messages that wait for company go out now."""
        while self.has_spoken:
            membership = self.has_spoken.pop()
            if not membership.has_ended:
                for request in membership.own.requests(membership.number, self.next_id):
                    self.say(request)

    # --- Memberships ---

    def enter(self, membership: Membership) -> Membership:
        """It takes part from now on."""
        self.members[membership.number] = membership
        self.numberings.note(membership.group, membership.numbering)
        if self.merged is not None:
            membership.reads = None
        return membership

    def part(self, membership: Membership, reason: str) -> None:
        """It takes no part any more, by its own will."""
        self.members.pop(membership.number, None)
        self.parted += 1
        if membership.applying is not None:
            membership.applying.is_stopped = True
        membership.end(reason, None)

    def buffer_for_new(self, *, reads: bool) -> EventBuffer | None:
        """Where the events of a new member go, if anywhere."""
        if self.merged is not None:
            return self.merged
        return EventBuffer() if reads else None

    def start_reading(self, membership: Membership) -> EventBuffer:
        """Its events are kept from now on."""
        if membership.reads is None:
            if self.merged is not None:
                text = (
                    f"could not read the events of group {membership.group!r} alone: session.events() was called, and"
                    " gives those of all groups; read them there, event.group says where"
                )
                raise UsageError(text, group=membership.group)
            membership.reads = membership.buffer = EventBuffer()
        return membership.reads

    def start_reading_all(self) -> EventBuffer:
        """The events of all are kept from now on, in one place and one order."""
        if self.merged is None:
            for membership in self.members.values():
                if membership.reads is not None and membership.reads.reader:
                    text = (
                        f"could not read the events of all groups: another thread reads those of {membership.group!r}"
                    )
                    raise UsageError(f"{text}; read all of them in one place", group=membership.group)
            self.merged = EventBuffer()
            for membership in self.members.values():
                if membership.reads is not None:
                    self.merged.take_all_from(membership.reads)
                membership.buffer, membership.reads = self.merged, None
        return self.merged

    # --- What memberships need (Speaker) ---

    def ask_for_vote(self, membership: Membership, proposal: Proposal) -> None:
        """The program is to be asked."""
        self.due.append(VoteDue(membership, proposal))

    def to_machine(self, membership: Membership, item: Item) -> None:
        """Its state machine is due, with what is due to it already if nothing else came between."""
        last = self.due[-1] if self.due else None
        if not isinstance(last, MachineDue) or last.membership is not membership:
            assert membership.applying is not None
            last = MachineDue(self, membership, membership.applying)
            self.due.append(last)
        last.add(item)

    def forget(self, membership: Membership) -> None:
        """It takes no part any more."""
        self.members.pop(membership.number, None)

    def cast(self, membership: Membership, proposal: Proposal, answer: Answer | None) -> None:
        """``proposal.vote`` was called, from whatever thread: that is the driver's affair."""
        self._cast_hook(membership, proposal, answer)

    def vote_denied(self, membership: Membership, error: GroupServiceError) -> None:
        """A vote of it was not taken."""
        self.due.append(DenialDue(membership, error))
