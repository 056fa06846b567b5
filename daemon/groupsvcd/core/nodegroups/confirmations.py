"""What a user on this node waits to hear about the stream beyond what it is given: that it is held, seen, complete.

Three questions, one place for those who ask:

- *held*: when do k servers hold what I submitted? (GS-14: the acknowledged multicast.) In a safe group that is so when
  it is delivered; in a fast one somewhat later. The submission says that somebody waits, so the leader asks for answers
  at once, and tells the stable number as soon as it has moved.
- *seen*: when has every member delivered it? The leader announces that (``seen``) when it finds the group in order.
- *sync*: when have I been given everything that was ordered before I asked? The leader says how far that was, but only
  after k servers have answered a beat that it sent after the question (see ``rounds``). A lease alone is never enough.

A question is asked again, ever more slowly, and anew when another view begins, until it is answered. G may not reach
the leader, though it submits through a server: then it asks that server, too. The server asks the leader in its turn,
as for a user of its own, and passes the answer on: what was ordered when *its* question came was so after G had asked.
A user that has lost the group is told nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from ..peer_messages import SyncAsk, Synced
from ..views import NodeId
from .submitter import REPEATS_BEFORE_RELAY
from .user import User

if TYPE_CHECKING:
    from .node_group import NodeGroup

Told = Callable[[int], None]
"""Called back with the number of the entry up to which it is so."""

ASKED_FOR_OTHERS_MAX = 100
"""Questions that a server asks for others at a time; they ask again, perhaps another one."""

QUESTIONS_BITS = 32
"""Questions of one membership; what is above tells which membership."""


@attrs.define
class _Wait:
    """Somebody waits for one of its submissions to be held by k, or seen by all."""

    user: User
    n: int  # of this node's submissions
    seen: bool
    told: Told
    seq: int = 0  # of the entry, or of one behind it; 0 until it was delivered


@attrs.define
class _Question:
    """Somebody wants to have everything that was ordered before."""

    user: User | None  # None: another member, which does not reach the leader
    number: int
    told: Told
    seq: int = -1  # up to where that was; -1 until it was answered
    epoch: int = 0  # and in which it was said
    asked_by: tuple[NodeId, int] | None = None  # that member, and its own number


class Confirmations:
    """The open questions of this node about one group."""

    def __init__(self, group: NodeGroup) -> None:
        self.group = group
        self.turn = group.turn
        self._timers = group.station.parameters.timers
        self._waits: list[_Wait] = []
        self._questions: list[_Question] = []
        self._number = group.key << QUESTIONS_BITS  # unlike that of any question this process ever asked
        self._ask_at = math.inf
        self._wait_s = self._timers.repeat_first
        self._asks = 0  # since the last answer, or the last view

    def forget(self, user: User) -> None:
        """A user has lost the group, and is told nothing more."""
        self._waits = [one for one in self._waits if one.user is not user]
        self._questions = [one for one in self._questions if one.user is not user]

    def forget_all(self) -> None:
        """This node's part in the group has ended."""
        self._waits, self._questions = [], []
        self._ask_at = math.inf

    def wait_for(self, user: User, n: int, told: Told, *, seen: bool) -> None:
        """Tell when this node's submission ``n`` is held by k, or seen by all."""
        self._waits.append(_Wait(user, n, seen, told))

    def before_sending(self) -> None:
        """What is submitted now, or again, is to be acknowledged if somebody waits for it; and questions leave."""
        if self.group.submitter is not None and self.group.is_member:
            self.group.submitter.ack = any(not wait.seq for wait in self._waits)
            self.tick()

    def sync(self, user: User, told: Told) -> None:
        """Tell when everything that was ordered until now has been given to the users here."""
        self._number += 1
        self._questions.append(_Question(user, self._number, told))
        self._ask_anew()

    def ask_for(self, node: NodeId, number: int) -> None:
        """Another member asks us, who serve, because the leader does not answer it."""
        asked_by = (node, number)
        others = [one.asked_by for one in self._questions if one.asked_by is not None]
        if asked_by in others or len(others) >= ASKED_FOR_OTHERS_MAX:
            return
        self.turn.mark("group-sync-relayed")
        self._number += 1
        question = _Question(None, self._number, lambda seq: self._pass_on(question), asked_by=asked_by)
        self._questions.append(question)
        self._ask_at = min(self._ask_at, self.turn.now + self._timers.repair_delay)  # others may come meanwhile

    def _pass_on(self, question: _Question) -> None:
        assert question.asked_by is not None
        (name, incarnation), number = question.asked_by
        if self.group.carrier is not None:
            self.group.reach(name)
            synced = Synced(self.group.id, incarnation, number, question.epoch, question.seq)
            self.group.carrier.vouch(name, synced)

    def on_synced(self, synced: Synced) -> None:
        """The leader says how far the stream was when a question came; one of an older epoch was asked anew since."""
        seat = self.group.seat
        epoch = seat.replica.log.accepted if seat is not None else 0
        if synced.to != self.group.station.identity.incarnation or synced.epoch < epoch:
            return
        for question in self._questions:
            if question.number == synced.number and question.seq < 0:
                question.seq, question.epoch = synced.seq, synced.epoch
                self._asks = 0
                if seat is not None and synced.epoch == epoch:
                    seat.replica.intake.expect(synced.seq, self.turn.now)  # the leader may not reach us either

    def view_started(self) -> None:
        """Somebody else leads: what the one before said of entries that nobody has yet may not come true."""
        for question in self._questions:
            question.seq = -1
        self._asks = 0
        if self._questions:
            self._ask_anew()

    def _ask_anew(self) -> None:
        self._wait_s = self._timers.repeat_first
        self._ask_at = self.turn.now

    def _way_to(self, leader: str) -> str:
        """Whom to ask: the leader; if it goes on not to answer, the other servers in turn, and the leader again."""
        ways = (*self.group.roll.relays(leader, self.turn.node), leader)
        is_silent = self._asks > REPEATS_BEFORE_RELAY and leader != self.turn.node
        return ways[self._asks % len(ways)] if is_silent else leader

    def look(self) -> None:
        """After the users were given what was delivered: whose question is answered?"""
        if self._waits:
            self._look_at_waits()
        seat = self.group.seat
        if self._questions and seat is not None:
            delivered = seat.replica.delivered
            answered = [one for one in self._questions if 0 <= one.seq <= delivered]
            if answered:
                self._questions = [one for one in self._questions if not 0 <= one.seq <= delivered]
                self._tell(answered)
            if not self._questions:
                self._ask_at = math.inf

    def _look_at_waits(self) -> None:
        submitter, seat = self.group.submitter, self.group.seat
        if submitter is None or seat is None:
            return
        replica = seat.replica
        for wait in self._waits:
            if not wait.seq and submitter.accepted_upto >= wait.n:
                wait.seq = replica.delivered
        stable, seen = replica.stable, replica.seen_said

        def is_so(wait: _Wait) -> bool:
            return 0 < wait.seq <= (seen if wait.seen else stable)

        answered = [wait for wait in self._waits if is_so(wait)]
        if answered:
            self._waits = [wait for wait in self._waits if not is_so(wait)]
            self._tell(answered)

    def _tell(self, answered: Sequence[_Wait | _Question]) -> None:
        for one in answered:
            if one.user is None or self.group.participants.has(one.user):  # else one told before has taken it out
                one.told(one.seq)

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When to ask again."""
        return self._ask_at

    def tick(self) -> None:
        """Ask the leader what was not answered."""
        if self.turn.now < self._ask_at:
            return
        self._ask_at = self.turn.now + self._wait_s
        self._wait_s = min(2 * self._wait_s, self._timers.repeat_max)
        seat = self.group.seat
        open_questions = [one for one in self._questions if one.seq < 0]
        if seat is not None and seat.replica.leader:
            self._asks += bool(open_questions)
            way = self._way_to(seat.replica.leader)
            for question in open_questions:
                whom = way if question.user is not None else seat.replica.leader  # else it went round among us
                self.turn.send(whom, SyncAsk(self.group.id, question.number))
