"""Fast groups: entries are delivered as they come, and what only the dead have seen is lost (GS-14).

A leads with B; C and D follow. A gives an entry its number and delivers it in the same step; B, C and D deliver it when
it arrives and nothing before it is missing. Nobody acknowledges it at once: a window of orders later, or when the group
falls idle, everybody says how far it is, and then the entry is *stable*, held by k servers, as in any group.

What that does to recovery: A dies, and perhaps C alone has heard of entry 50. The new leader B must not go on without
it, because C has acted on it. So everybody who carries the group promises and reports, receivers too, and B takes the
longest log of all. These rules hold it together:

- *What was delivered here is in the log here*, from where this node began, and it began with something stable: a
  member is welcomed, and a checkpoint taken, only at an entry that k servers hold. Who reports an entry can give it.
- *A report is (view, last)*: the newest view whose first entry is in the log, and its end (see ``heritage``). A
  receiver has no other claim to an epoch than what it has delivered of it.
- *Who promised delivers nothing more* until it hears the leader of an active view. So what it reported stays all it has
  delivered, and is in the log that is chosen.
- *Nobody delivers from a log that is only opened*: ``began``, the number of the first entry of a view, is said by its
  active leader only, and is 0 in a log that was only opened.
- *Insertions become stable before they are told.* So enough servers of the last view know all who carry the group.
- *Who was not waited for*, because it was up but could not be reached, may have delivered what the new log lacks. It
  finds that out from the first beat it hears, and has lost the group.

Asking the servers only would be quicker and wrong: C would be alive, and contradicted.
"""

from __future__ import annotations

import math
from collections import deque
from functools import cached_property

import msgspec

from ..peer_messages import Beat, Data, Order, Promised, Repair
from .entries import Piece, length_of
from .receiver import Receiver
from .replica import Replica
from .server import Server

UNSETTLED_MAX = 4
"""Checkpoints that wait until they are stable. All servers take the same ones, so that one of these can be advertised;
a state may be large, so there are few."""


class FastReplica(Replica):
    """A copy from which is delivered what is there, as soon as its view is known to be active."""

    sync_window = 5

    @cached_property
    def _unsettled(self) -> deque[tuple[int, bytes]]:
        """Checkpoints of what is not stable yet."""
        return deque()

    @property
    def settled(self) -> int:
        """What was delivered is in every log that this node goes on with."""
        return max(self.stable, self.delivered)

    @property
    def _deliverable(self) -> int:
        return self.library.complete_upto if self.began else self.stable

    def learn_stable(self, stable: int) -> None:
        """``stable`` was said in the epoch of this log."""
        super().learn_stable(stable)
        self._settle_checkpoints()

    def _take_checkpoint(self) -> None:
        """Of what was delivered; it counts once that is stable, for others may begin with it."""
        unsettled = self._unsettled
        if len(unsettled) < UNSETTLED_MAX and (not unsettled or unsettled[-1][0] < self.delivered):
            state = self.host.snapshot()
            if state is not None:
                unsettled.append((self.delivered, state))
                self._settle_checkpoints()

    def _settle_checkpoints(self) -> None:
        while self._unsettled and self._unsettled[0][0] <= self.stable:
            self._set_checkpoint(*self._unsettled.popleft())

    def skip_to(self, seq: int, state: bytes, epoch: int) -> None:
        """Go on behind a checkpoint."""
        self._unsettled.clear()
        super().skip_to(seq, state, epoch)


class Courtesy:
    """When a member of a fast group acknowledges: when asked to, when the window is nearly used, when all falls quiet.

    The leader asks with an order when a window of others went without, and after ``beat_interval`` with a beat.
    Who speaks up a little before saves it the question, and nobody has to wait for the answer.
    """

    def __init__(self, replica: FastReplica) -> None:
        self._turn = replica.turn
        self._orders_max = max(replica.sync_window - 1, 1)
        self._quiet_s = replica.timers.beat_interval / 2
        self._orders = 0
        self._owed = 0
        self.at = math.inf

    def heard(self, order: Order) -> None:
        """An order has come."""
        if order.ack:
            self._owed = order.first_seq + sum(map(length_of, order.entries)) - 1
        if order.entries:
            self._orders += 1
            self.at = self._turn.now + self._quiet_s

    def is_due(self, upto: int) -> bool:
        """Whether to say now that everything up to ``upto`` is here."""
        return (upto >= self._owed > 0) or self._orders >= self._orders_max or self._turn.now >= self.at

    def later(self) -> None:
        """Nothing may be said now."""
        self.at = self._turn.now + self._quiet_s

    def said(self) -> None:
        """It was said."""
        self._orders = self._owed = 0
        self.at = math.inf


class FastServer(Server):
    """Holds without saying so each time; or has promised, being a receiver, and waits for a view to follow."""

    replica: FastReplica

    def __init__(self, replica: FastReplica, promised: int, k: int, *, complete: bool = True) -> None:
        super().__init__(replica, promised, k, complete=complete)
        self._courtesy = Courtesy(replica)

    def promise(self, epoch: int) -> None:
        """From here on nothing is delivered until the leader of an active view is heard."""
        super().promise(epoch)
        self._courtesy.said()

    def report(self, *, whatever_there_is: bool = False) -> Promised:
        """The log, and what the others must know of it to choose."""
        report = super().report(whatever_there_is=whatever_there_is)
        return msgspec.structs.replace(report, base=self.log.base, members=self.replica.heritage().members)

    def _hold(self, fresh: tuple[Piece, ...]) -> None:
        self.persisted_upto = self.log.last

    def _deliver(self) -> None:
        self._is_to_deliver = False
        if self.log.accepted == self.promised:
            super()._deliver()

    def on_order(self, sender: str, order: Order) -> None:
        """The leader orders entries."""
        super().on_order(sender, order)
        if order.epoch == self.log.accepted == self.promised:
            self._courtesy.heard(order)
            self._be_polite()

    def on_repair(self, sender: str, repair: Repair) -> None:
        """Entries that were asked for."""
        super().on_repair(sender, repair)
        self._be_polite()

    def _be_polite(self) -> None:
        if self.log.accepted == self.promised and self._courtesy.is_due(self.held_upto):
            self.say_held()

    def say_held(self, round: int = 0) -> None:
        """Tell the leader what is here."""
        self._courtesy.said()
        super().say_held(round)

    @property
    def deadline(self) -> float:
        """When the next repetition is due, or an acknowledgement."""
        return min(super().deadline, self._courtesy.at) if self.log.accepted == self.promised else super().deadline

    def tick(self) -> None:
        """Ask for what is missing, say what is here."""
        super().tick()
        if self.turn.now >= self._courtesy.at:
            if self.turn.now >= self.carrier.valid_until:
                self._courtesy.later()
            else:
                self._be_polite()


class FastReceiver(Receiver):
    """Delivers what comes, and says so now and then."""

    def __init__(self, replica: FastReplica, epoch: int = 0) -> None:
        super().__init__(replica, epoch)
        self._courtesy = Courtesy(replica)

    def on_order(self, sender: str, order: Order) -> None:
        """The leader orders entries."""
        super().on_order(sender, order)
        if order.epoch == self.epoch:
            self._courtesy.heard(order)
            self._be_polite()

    def on_beat(self, sender: str, beat: Beat) -> None:
        """The leader wants to know where we stand."""
        super().on_beat(sender, beat)
        self._be_polite()

    def on_repair(self, sender: str, repair: Repair) -> None:
        """Entries that were asked for."""
        super().on_repair(sender, repair)
        self._be_polite()

    def on_data(self, data: Data) -> None:
        """A payload: it may be the one that is missing."""
        super().on_data(data)
        self._be_polite()

    def _be_polite(self) -> None:
        if self._courtesy.is_due(self.delivered):
            self.say_seen()

    def say_seen(self) -> None:
        """Tell the leader how far we have got."""
        self._courtesy.said()
        super().say_seen()

    @property
    def deadline(self) -> float:
        """When something is to be asked for, or said."""
        return min(super().deadline, self._courtesy.at)

    def tick(self) -> None:
        """Ask for what is missing, say what is here."""
        super().tick()
        if self.turn.now >= self._courtesy.at:
            if self.turn.now >= self.replica.carrier.valid_until:
                self._courtesy.later()
            else:
                self._be_polite()
