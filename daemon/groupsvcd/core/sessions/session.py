"""One session: what a program does in groups, whatever becomes of its connections.

A program opens a session on its connection to node A and is given a secret. What it asks for is counted here, what it
is told is counted there (see ``tellings``). Its connection breaks: for ``GRACE_S`` everything goes on, and is kept. It
resumes the session on another connection, each side says how far it has counted, the other repeats what comes after:
nothing is lost, and nothing done twice. What still comes over the old connection is no part of the session any more.

    open  -- connection lost -->  in grace  -- resumed -->  open
    open, in grace  -- closed, process ended, grace over, overrun, node declared down -->  over

A session that is over is never resumed, nor a part of it. Its providers fail, with the cause; its subscriptions end.

A program is *responsive* while it says that it is alive, and that the code which answers proposals is not stuck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from groupsvc.wire.client_messages import (
    REPLY_CODEC,
    AnyClientReply,
    AnyClientRequest,
    BarrierAsk,
    CloseSession,
    Done,
    JoinAsk,
    LeaveAsk,
    MemberLost,
    MessagesCame,
    Multicast,
    NoticesMissed,
    Problem,
    ProposalAsk,
    SessionAlive,
    SessionAliveAck,
    SessionIs,
    SessionNews,
    SubmitOutside,
    SubscribeAsk,
    Told,
)
from groupsvc.wire.limits import (
    FRAME_BYTES_MAX,
    GRACE_S,
    MEMBERS_PER_SESSION_MAX,
    REQUESTS_WAITING_MAX,
    RESPONSIVE_S,
    SESSION_ALIVE_S,
    TIMEOUT_S_MAX,
)
from groupsvc.wire.notices import AnyNotice

from ..access import UNKNOWN, Principal, Verb
from ..effects import ReplyToClient
from ..groups.commands import FailureCause
from .alarms import Alarm
from .calls import Call
from .checks import problem_with
from .rights import missing_right
from .tellings import TELLING_BYTES_MAX, Tellings

if TYPE_CHECKING:
    from .desk import Desk

Handler = Callable[["Session", Any], None]

REQUEST_IDS = 2**32
"""A session has so many numbers for requests; the ids of its proposals are made of them, and never used again."""

PROPOSING = (JoinAsk, LeaveAsk, ProposalAsk)
"""Requests that become proposals."""


BEGINNING = (JoinAsk, SubscribeAsk, ProposalAsk, Multicast, SubmitOutside, BarrierAsk)
"""Requests that begin something: not at a node that is about to end. Who is in may still vote, leave, and ask."""


class Part(Protocol):
    """What a session has in a group: a membership, a subscription, or what is to become one."""

    member: int
    group: str
    needs: Verb  # without which it may not be there

    def end(self, cause: FailureCause) -> None:
        """It is over; nothing is told to it any more."""

    def revoke(self, reason: str) -> None:
        """Its program may not be here any more, and is told so."""

    def responds(self, *, does: bool) -> None:
        """The program answers, or does not."""


class Session:
    """One of them."""

    def __init__(
        self, desk: Desk, number: int, name: str, secret: bytes, handlers: dict[type, Handler],
        principal: Principal = UNKNOWN,
    ) -> None:  # fmt: skip
        self.desk = desk
        self.principal = principal
        self.number = number
        self.name = name
        self.secret = secret
        self.connection = 0  # 0: none at the moment
        self.last_connection = 0  # whose process may still live
        self.opened_by = 0  # the request that opened it, or resumed it last: their numbers grow
        self.taken = 0  # requests that were counted
        self._last_proposing = 0  # the newest of them that proposed something
        self.calls: set[Call] = set()
        self.parts: dict[int, Part] = {}
        self.names: set[tuple[str, str]] = set()  # group and name of its providers, and of who is to be one
        self.behind: dict[int, Callable[[], None]] = {}  # who has missed something, and how it catches up
        self.is_over = False
        self.is_drained = False  # it was, because its node ends
        self.ended: Callable[[Session], None] = lambda session: None
        self.is_responsive = True
        self._handlers = handlers
        self._tellings = Tellings(self._send)
        self._alive_at = desk.turn.now
        self._vouched_until = desk.turn.now + desk.good_for  # as its program was told, at the latest
        self._grace: Alarm | None = None
        self._silence = desk.alarms.after(RESPONSIVE_S, self._is_silent)

    # --- Connections ---

    def connect(self, client: int, request_id: int, seen: int) -> None:
        """It is used on this connection from now on."""
        self.opened_by = request_id
        self.connection = self.last_connection = client
        if self._grace is not None:
            self._grace.take_back()
            self._grace = None
        self._alive_at = self.desk.turn.now
        proposals = (*self.desk.processes.me, self.proposal_of(0))
        self._send(SessionIs(request_id, self.number, self.secret, self.taken, self.desk.good_for, proposals))
        self._tellings.connect(seen)

    def can_resume(self, seen: int) -> bool:
        """Whether everything that comes after this is here, and nothing before it is missing there."""
        return self._tellings.can_be_counted(seen)

    def disconnect(self) -> None:
        """Its connection is lost; the process may still live."""
        self.connection = 0
        self._tellings.disconnect()
        self._grace = self.desk.alarms.after(GRACE_S, lambda: self.end("failure"))

    # --- What it is told ---

    def _send(self, reply: AnyClientReply) -> None:
        if self.connection:
            self.desk.turn.effects.append(ReplyToClient(self.connection, reply))

    def tell(self, telling: AnyClientReply, size: int = 0) -> None:
        """The next thing, an answer or something that happened; of so many bytes, if that is known."""
        size = size or len(REPLY_CODEC.encode_one(telling))
        if size > TELLING_BYTES_MAX:
            self._cannot_be_told(telling, size)
        else:
            self.put(telling, size)

    def tell_in_passing(self, telling: Done) -> None:
        """The same for an answer that nobody waits for, and that is worth no frame of its own."""
        if not self.is_over:
            self._tellings.lay_aside(telling, len(REPLY_CODEC.encode_one(telling)))

    def tell_run(
        self, member: int, run: Sequence[AnyNotice], put: Callable[[AnyClientReply, int], None] | None = None
    ) -> None:
        """What follows from one entry: its program takes it together, in however many frames it comes."""
        put = put or self.put
        for left, notice, size in zip(range(len(run) - 1, -1, -1), run, self.desk.sizes_of(run), strict=True):
            telling = Told(member, notice, more=left > 0)
            if size > TELLING_BYTES_MAX:
                self._cannot_be_told(telling, size)
                return
            put(telling, size)

    def tell_messages(self, messages: MessagesCame, size: int) -> None:
        """The same for what comes most: its size is known."""
        self.put(messages, size)

    def put(self, telling: AnyClientReply, size: int) -> None:
        """Something of a known size that fits into a frame."""
        if self.is_over:
            return
        self._tellings.put(telling, size)
        if self._tellings.is_over_full:
            reason = (
                "its program has not counted what it was told for too long (UNCOUNTED_ITEMS_MAX, UNCOUNTED_BYTES_MAX)"
            )
            self.desk.turn.round_trip.append(lambda: self.lose(reason, "overrun"))  # whoever tells us is busy with it

    def _cannot_be_told(self, telling: AnyClientReply, size: int) -> None:
        """More than a frame holds: whoever it is for cannot take part in this, and is told so."""
        text = (
            f"{size} bytes are more than one frame holds ({FRAME_BYTES_MAX}); use fewer or smaller values in this group"
        )
        number = getattr(telling, "id", None)
        if number is not None:
            self.tell(Problem(number, "unknown", "too large", text))
        member = getattr(telling, "member", None)
        part = self.parts.pop(member, None) if member is not None else None
        if part is not None:
            self.desk.turn.round_trip.append(lambda: part.end("overrun"))
            if isinstance(telling, Told | NoticesMissed):
                self.tell(MemberLost(part.member, dissolved=False, reason=text))

    @property
    def vouched_for(self) -> float:
        """For how long its program may still rely on what it was told, by its own clock."""
        return max(0.0, self._vouched_until - self.desk.turn.now)

    @property
    def is_crowded(self) -> bool:
        """Whether who only watches has to miss something."""
        return self._tellings.is_crowded

    # --- What it asks ---

    def take(self, request: AnyClientRequest) -> None:
        """The next request."""
        if isinstance(request, SessionAlive):
            self._on_alive(request)
            return
        self.taken += 1
        found = problem_with(request)
        if found is not None:
            self.tell(Problem(request.id, "usage", *found))
            return
        if isinstance(request, CloseSession):
            self._close(request)
            return
        missing = None if self.desk.access.is_open else missing_right(request, self.may, self._group_of)
        if missing is not None:
            self.tell(Problem(request.id, "failed", "permission denied", self.desk.refusal(self.principal, *missing)))
            return
        if isinstance(request, PROPOSING):
            if not self._last_proposing < request.id < REQUEST_IDS:
                text = f"the number of a request that proposes is above those before it, and below {REQUEST_IDS}"
                self.tell(Problem(request.id, "usage", "usage", f"{text}; {request.id} is not"))
                return
            self._last_proposing = request.id
        handler = self._handlers.get(type(request))
        if self.desk.draining and isinstance(request, BEGINNING):
            self.tell(Problem(request.id, "failed", "draining", self.desk.draining))
        elif handler is None:
            self.desk.elsewhere(-self.number, request)
        elif len(self.calls) >= REQUESTS_WAITING_MAX:
            text = f"{REQUESTS_WAITING_MAX} requests of this session wait already (REQUESTS_WAITING_MAX); wait for some"
            self.tell(Problem(request.id, "failed", "full", text))
        else:
            handler(self, request)

    def call(self, request_id: int, timeout: float, late: Callable[[], None]) -> Call:
        """A request that waits for its answer, so many seconds at most."""
        wait = min(max(timeout, 0.0), TIMEOUT_S_MAX) if math.isfinite(timeout) else TIMEOUT_S_MAX
        call = Call(self, request_id, wait, late)
        self.calls.add(call)
        return call

    def may(self, verb: Verb, group: str) -> bool:
        """Whether its program is allowed this."""
        return self.desk.access.allows(self.principal, verb, group)

    def _group_of(self, member: int) -> str:
        part = self.parts.get(member)
        return "" if part is None else part.group

    def proposal_of(self, request_id: int) -> int:
        """The number of the proposal that a request makes, among all of this node: its program knows it, too."""
        return self.number * REQUEST_IDS + request_id

    def has_room(self, request_id: int) -> bool:
        """Whether it may have something more in a group; if not, that is answered."""
        identity, quota = self.principal.identity, self.desk.quota
        if len(self.parts) >= MEMBERS_PER_SESSION_MAX:
            most = f"{MEMBERS_PER_SESSION_MAX} members and subscriptions (MEMBERS_PER_SESSION_MAX)"
            text = f"a session has at most {most}"
        elif not quota.takes_one(identity):
            most = f"{quota.members_max} members and subscriptions (limits.members_per_principal_max)"
            text = f"all programs of {identity} on this node have at most {most}"
        else:
            return True
        self.tell(Problem(request_id, "failed", "full", text))
        return False

    # --- Alive ---

    def _on_alive(self, alive: SessionAlive) -> None:
        if alive.seen > self._tellings.last or alive.seen < 0:
            text = f"the session was told {self._tellings.last} things and cannot have counted {alive.seen}"
            self._send(Problem(alive.id, "usage", "usage", text))
            return
        if self._tellings.can_be_counted(alive.seen):
            self._tellings.count(alive.seen)
        if self._was_away():
            self._tellings.was_away()  # it learns first what it missed
        self._alive_at = self.desk.turn.now
        self._responds(does=alive.is_responsive)
        good_for = 0.0 if self._tellings.is_resuming else self.desk.good_for  # it goes past what waits for room
        self._vouched_until = max(self._vouched_until, self.desk.turn.now + good_for)
        self._send(SessionAliveAck(alive.id, self.taken, good_for))
        if self.behind and not self.is_crowded:
            behind, self.behind = self.behind, {}
            for catch_up in behind.values():
                catch_up()

    def _was_away(self) -> bool:
        """Whether its program was stopped since it was last heard, for so long that nobody vouches for it any more."""
        now = self.desk.turn.now
        if now < self._vouched_until:
            return False
        was_vouched_for = self._alive_at < self._vouched_until
        return was_vouched_for or now > self._alive_at + 2 * SESSION_ALIVE_S  # stopped again, before it had everything

    def _is_silent(self) -> None:
        left = self._alive_at + RESPONSIVE_S - self.desk.turn.now
        if left <= 0:
            self._responds(does=False)
        self._silence = self.desk.alarms.after(left if left > 0 else RESPONSIVE_S, self._is_silent)

    def _responds(self, *, does: bool) -> None:
        if does != self.is_responsive:
            self.is_responsive = does
            for part in list(self.parts.values()):
                part.responds(does=does)

    # --- Its end ---

    def _close(self, request: CloseSession) -> None:
        self._give_up_calls("the session was closed")
        self.tell(Done(request.id))
        self.end("goodbye")

    def lose(self, reason: str, cause: FailureCause) -> None:
        """Everything that it had is lost; its program is told, if it can be."""
        if not self.is_over:
            self._give_up_calls(reason)
            self._send(SessionNews("lost", reason))
            self.end(cause)

    def drain(self, reason: str) -> None:
        """The same because its node ends, on purpose; what its providers hold they hold until their program knows."""
        self.is_drained = True
        self.lose(reason, "goodbye")

    def _give_up_calls(self, reason: str) -> None:
        for call in sorted(self.calls, key=lambda one: one.id):
            call.give_up(reason)

    def end(self, cause: FailureCause) -> None:
        """It is over: its providers are no more, its subscriptions end."""
        if self.is_over:
            return
        self.is_over = True
        for alarm in (self._grace, self._silence):
            if alarm is not None:
                alarm.take_back()
        for call in list(self.calls):
            call.stop()
        self.calls.clear()
        parts, self.parts = list(self.parts.values()), {}
        for part in parts:
            part.end(cause)
        self.ended(self)
