"""Who comes to a barrier, from the request to the end of its round.

The answer is how the round ended, and that is in the stream. When its program's time is up the node says so, and the
round breaks for all; unless its end was ordered first, which then is the answer. Only if neither is known a moment
later, because the node is cut off, it is *unknown*. Its program may come again at once: that waits for this end first.
"""

from __future__ import annotations

from groupsvc.wire.client_messages import (
    REPLY_CODEC,
    BarrierAsk,
    BreakAsk,
    Done,
    Problem,
    RoundAsk,
    RoundIs,
    RoundPart,
)
from groupsvc.wire.limits import TIMEOUT_S_MAX
from groupsvc.wire.notices import Round

from ..groups.local_group import LocalGroup
from ..groups.papers import Waiter
from ..groups.round_over import CARRIED_BYTES_MAX, RoundOver
from ..groups.rounds import BROUGHT_BYTES_MAX
from ..groups.waiting_room import InVain
from .calls import LAST_WORD_S, Call
from .proposals import provider_of
from .session import Session

ID_BYTES = 8
"""The number of a request on the wire, at most."""

IN_VAIN: dict[InVain, tuple[str, str]] = {
    "late": ("timed out", "the time was up before this party could be counted; it counted for no round"),
    "out": ("not a member", "this provider has left the group; it counted for no round"),
    "full": ("full", f"{BROUGHT_BYTES_MAX} bytes are brought to the barriers of this group already; it did not come"),
}


class Attendance:
    """One provider at one barrier."""

    def __init__(self, session: Session, ask: BarrierAsk, local: LocalGroup) -> None:
        self._ask = ask
        self._local = local
        self._session = session
        self._turn = session.desk.turn
        self._until = session.desk.turn.now + max(ask.timeout, 0.0)
        self._call: Call = session.call(ask.id, ask.timeout, self._is_late)

    @property
    def request(self) -> int:
        """By which it came."""
        return self._ask.id

    def come(self) -> None:
        """Come to the round that is open; or wait behind a call that was given up, and whose end is not known yet."""
        ask, barriers = self._ask, self._local.barriers
        if not barriers.has(ask.barrier, ask.member):
            self._enter()
        elif not barriers.line_up(ask.barrier, ask.member, self):
            text = f"this provider waits at barrier {ask.barrier!r} already; one call at a time"
            self._call.answer(Problem(ask.id, "usage", "usage", text))

    def may_come(self) -> None:
        """The call before this one has its end."""
        me = (*self._session.desk.processes.me, self._ask.member)
        if not self._call.is_open:
            return  # its session is over
        if not self._local.group.has_a_say(me):
            self.in_vain("out")
        elif self._turn.now >= self._until:
            self.in_vain("late")
        else:
            self.come()

    def _enter(self) -> None:
        ask, group = self._ask, self._local.group
        broken = group.rounds.broken(ask.barrier)
        if ask.resets and broken is None:
            number = group.rounds.next_round(ask.barrier) - 1
            self._call.answer(RoundIs(ask.id, group.seq, Round(barrier=ask.barrier, number=number, end="reset")))
        elif broken is not None and not ask.resets:
            self._call.answer(RoundIs(ask.id, group.seq, broken))
        elif not group.rounds.has_room_for(ask.barrier):
            text = "too many barriers of this group are broken; reset some, or leave the group together"
            self._call.fail("full", text)
        elif self._local.barriers.is_full or (len(ask.payload) > CARRIED_BYTES_MAX and self._local.is_full):
            self._call.fail("full", "too much waits for room in this group on this node; try later")
        else:
            self._call.may_have_happened = True
            waiter = Waiter(ask.member, ask.barrier, 0, 0, ask.parties, ask.on_failure, ask.payload, ask.resets)
            self._local.barriers.wait(waiter, self)

    def ended(self, over: RoundOver) -> None:
        """This is how."""
        call = self._call
        for part in over.parts:
            call.tell_first(RoundPart(call.id, part))
        answer = RoundIs(call.id, over.seq, over.without_parts)
        over.size = over.size or len(REPLY_CODEC.encode_one(answer)) + ID_BYTES
        call.answer(answer, over.size)

    def in_vain(self, why: InVain) -> None:
        """It counted for no round."""
        self._call.fail(*IN_VAIN[why])

    def lost(self, reason: str) -> None:
        """This node does not know."""
        self._call.not_known("lost", f"{reason}; whether the round has ended can only be seen by the others")

    def _is_late(self) -> None:
        left = self._until - self._turn.now
        if left > 0:  # no alarm is set for longer
            self._call.extend(min(left, TIMEOUT_S_MAX), self._is_late)
            return
        self._call.extend(LAST_WORD_S, self._is_too_late)
        self._local.barriers.give_up(self._ask.barrier, self._ask.member, "timeout", self.request)

    def _is_too_late(self) -> None:
        self._call.not_known("timed out", "the round has not ended in time, and is not known to be broken")


def wait(session: Session, ask: BarrierAsk) -> None:
    """Come to a barrier, or want it reset."""
    part = provider_of(session, ask.id, ask.member)
    if part is not None and part.local is not None:
        Attendance(session, ask, part.local).come()


def break_off(session: Session, ask: BreakAsk) -> None:
    """A provider does not want to wait any more."""
    part = provider_of(session, ask.id, ask.member)
    if part is not None and part.local is not None:
        part.local.barriers.give_up(ask.barrier, ask.member, "cancelled", ask.request)
        session.tell(Done(ask.id))


def tell_past(session: Session, ask: RoundAsk) -> None:
    """How a round ended that is over, if the group keeps it; answered by what this node has applied."""
    part = provider_of(session, ask.id, ask.member)
    if part is None or part.local is None:
        return
    group = part.local.group
    round_ = group.rounds.kept.find(ask.barrier, ask.number)
    if round_ is None:
        text = f"round {ask.number} of barrier {ask.barrier!r} is not kept"
        session.tell(Problem(ask.id, "failed", "not kept", text))
        return
    over = RoundOver(group.seq, round_)
    for payloads in over.parts:
        session.tell(RoundPart(ask.id, payloads))
    session.tell(RoundIs(ask.id, over.seq, over.without_parts))
