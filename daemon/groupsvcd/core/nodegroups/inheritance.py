"""Whether what was delivered here is in the log that the group goes on with.

D and E hold group 7, and G follows. D and E are gone for ever; F has less than G has delivered, and continues by a
forced view. If G hears F it sees that entries of its own are missing. But G may be cut off from F until yet another
view has begun, far behind what G has delivered: then only the views of that log tell that G's tail is not in it (see
``stream/heritage``). So wherever a node enters a log that it has not followed all along, it compares: a receiver by
the first beat of a higher epoch, or by a repair that tells the same; who is to serve by what it shall open; who is to
lead by the log it would choose; and both by the checkpoint, if they are given one in place of entries that they have.
In a fast group any change of the leader may lose entries; in a safe one only a forced view can, or one that has taken
over the log of a forced view which never became active.

Whoever has delivered what the log of an active view lacks is *detached*: its users have lost the group, it opens and
reports nothing any more, and leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..parameters import Timers
from ..peer_messages import Complaint, Open, Promised
from ..stream.entries import decode_entry, is_reference
from ..stream.heritage import Heritage, common_beginning, has_beginning
from ..stream.recovery import Phase, Recovery
from ..stream.replica import Replica
from ..stream.server import Server
from ..views import Views
from .controls import AnyControl, NodeInserted, ViewStarted, decode_control
from .granted import Granted
from .roll import decode_checkpoint, epoch_in

if TYPE_CHECKING:
    from .node_group import NodeGroup

CONTRADICTED = "the group goes on without entries that were delivered here"


class Inheritance:
    """This node's copy of one stream, compared with the logs of others."""

    __slots__ = ("_group", "_replica", "is_detached")  # a node has thousands

    def __init__(self, group: NodeGroup, replica: Replica) -> None:
        self._group = group
        self._replica = replica
        self.is_detached = False  # what we have is not what the group has
        replica.heritage = self.heritage
        replica.own = self.own
        replica.views = lambda: group.roll.views

    @property
    def delivered(self) -> tuple[tuple[int, int], int]:
        """What was delivered here: the newest view in it that may have lost something, the newest, its last number."""
        roll = self._group.roll
        return (roll.beginning, roll.epoch), self._replica.delivered

    def is_in(self, views: Views, last: float) -> bool:
        """Whether a log with these views, up to ``last``, has everything that was delivered here."""
        return has_beginning(views, last, *self.delivered)

    def is_before(self, began: int, views: Views) -> bool:
        """The same for the log on which a view began; also with what is known to be stable here, and not delivered."""
        return began > self._replica.settled and self.is_in(views, began - 1)

    def can_open(self, message: Open) -> bool:
        """The same for what we shall open.

        If it lacks our entries the view is not active yet, as far as we know: we do not end, but others have to serve
        in it. In a fast group we came too late to be asked, and are asked again when the next view is granted.
        """
        if message.epoch == self._replica.log.accepted:
            return True
        if self.is_detached or not self.is_in(message.views, message.last):
            self.cannot_serve_in(message.epoch)
            return False
        return True

    def heritage(self) -> Heritage:
        """Views and members as of the end of the log; what was not delivered of it is looked through."""
        roll, replica = self._group.roll, self._replica
        views, newest, members = roll.views, (roll.epoch, roll.began), dict(roll.members)
        for seq, control in self._undelivered_controls():
            if isinstance(control, ViewStarted):
                views = roll.views_after(views, newest, seq, control)
                newest = (control.epoch, seq)
            elif isinstance(control, NodeInserted):
                members[control.node] = control.term
        if not replica.delivered and not replica.log.last:
            return Heritage((), ())
        return Heritage(views, tuple(members))

    def own(self, after: int, seq: int, state: bytes) -> list[bytes]:
        """What we have after entry ``after``, stable or not as far as we know, that this checkpoint stands behind.

        Up to the first one whose payload is not here.
        """
        replica, roll = self._replica, self._group.roll
        entries = replica.had_after(replica.delivered)
        controls = _controls(replica.delivered + 1, entries)
        started = [(control.epoch, began) for began, control in controls if isinstance(control, ViewStarted)]
        views = ((roll.epoch, roll.began), *started)
        newest = epoch_in(decode_checkpoint(state).roll)
        upto = common_beginning(views, replica.delivered + len(entries), newest, seq)
        own = replica.had_after(after)[: max(upto - after, 0)]
        lacking = replica.library.lacking_in(after, after, own)
        return own[: min(lacking.values()) - after - 1] if lacking else own

    def _undelivered_controls(self) -> list[tuple[int, AnyControl]]:
        replica = self._replica
        first = replica.delivered + 1
        return _controls(first, replica.log.between(first, replica.library.complete_upto))

    def detach(self) -> None:
        """An active view goes on without what was delivered here."""
        if not self.is_detached:
            self.is_detached = True
            self._group.turn.mark("group-tail-lost")
            self._group.forsake(CONTRADICTED)

    def cannot_serve_in(self, epoch: int) -> None:
        """What is to be led or opened in that view is not what we have: others have to do it."""
        member = self._group.station.member
        if member.hears_leader and not member.isolated:
            self._group.turn.send(member.leader, Complaint(self._group.id, epoch, unable=True))


def _controls(first: int, entries: list[bytes]) -> list[tuple[int, AnyControl]]:
    """What leaders ordered for themselves, among these entries."""
    found: list[tuple[int, AnyControl]] = []
    for seq, raw in enumerate(entries, first):
        if not is_reference(raw):
            entry = decode_entry(raw)
            if not entry.origin:
                found.append((seq, decode_control(entry.body)))
    return found


class GroupRecovery(Recovery):
    """Taking over a group's stream; not by one whose own entries are not in it."""

    def __init__(
        self, server: Server, epoch: int, granted: Granted, timers: Timers, *,
        delivered: Callable[[], tuple[tuple[int, int], int]], contradicted: Callable[[], None],
        stuck: Callable[[], None],
    ) -> None:  # fmt: skip
        super().__init__(server, epoch, granted, timers)
        self._stuck = stuck
        self._is_forced = granted.granted.forced
        self._delivered = delivered  # as ``Inheritance.delivered``
        self._contradicted = contradicted

    def _choose(self) -> None:
        best: Promised = self.reports[self._best()]
        if best.accepted and not has_beginning(best.views, best.last, *self._delivered()):
            self._contradicted()
            return
        self.views = best.views
        self.tail_may_be_lost = self._is_forced or best.tail_may_be_lost
        super()._choose()

    @property
    def _patient_until(self) -> float:
        """How long the chosen log is waited for, and those who are to open it."""
        patience = {Phase.FETCHING: self._timers.leader_silent, Phase.OPENING: self._timers.lease}
        return self.progress_at + patience.get(self.phase, math.inf)

    @property
    def deadline(self) -> float:
        """When something is to be repeated, or given up."""
        return min(super().deadline, self._patient_until)

    def tick(self) -> None:
        """Repeat what has not been answered; after a while, do without it."""
        if self.turn.now >= self._patient_until:
            if self.phase is Phase.FETCHING:
                self.choose_anew()
            else:
                self.progress_at = self.turn.now
                self._stuck()
        super().tick()
