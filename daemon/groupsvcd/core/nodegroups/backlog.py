"""Beginning with an earlier entry: a user that wants what came before its node was inserted (SAM-15).

G is inserted with entry 500, and its user wants everything after 480, which is still kept. G's own copy of the stream
begins with 500, like that of any new member: nobody could tell it the roll as it was after 480. So the twenty entries
between are fetched beside it, for this user alone, payloads and all, and the user is told that it has joined when they
are there. Until then a ``Latecomer`` takes its place and keeps what is delivered meanwhile.

The leader has checked that the entries are kept, and counts the new member from the number it begins after. A server
that was inserted later has not got them, and says so; then another one is asked. If they are gone everywhere, because
the leader has changed, the user is told which number is the oldest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..peer_messages import Data, Repair
from ..records import StoredStream
from ..stream.entries import Entry
from ..stream.replica import Replica, Retention, usable_entries
from ..views import NodeId
from .group_carrier import GroupCarrier
from .phases import Phase
from .user import CHECKPOINT, NOW, Application, User

if TYPE_CHECKING:
    from .node_group import NodeGroup

NEVER = 2**62
"""No checkpoint is taken of what is only handed on."""


def no_longer_kept(since: int, oldest: int) -> str:
    """Why nobody can begin after entry ``since``."""
    return f"entries after {since} are no longer kept; the oldest number to begin after is {oldest}"


class Latecomer:
    """Stands for a user until it has what came before."""

    def __init__(self, user: User) -> None:
        self.user = user
        self._batches: list[tuple[int, Sequence[Entry]]] = []
        self._changed: tuple[int, tuple[NodeId, ...]] | None = None
        self.entries = 0

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """It is told later."""

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """Keep these."""
        self._batches.append((first_seq, entries))
        self.entries += len(entries)

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """The newest list is enough."""
        self._changed = (seq, members)

    def lost(self, reason: str) -> None:
        """That it is told at once."""
        self.user.lost(reason)

    def catch_up(self, first_seq: int, before: Sequence[Entry], is_in: Callable[[], bool]) -> None:
        """The user has joined: what came ``before``, and then the rest, unless it leaves meanwhile."""
        for first, entries in ((first_seq, before), *self._batches):
            if is_in():
                self.user.delivered(first, entries)
        if self._changed is not None and is_in():
            self.user.changed(*self._changed)


class Backlog:
    """The entries after ``begins`` up to ``upto``, on their way to one user."""

    def __init__(
        self, group: NodeGroup, begins: int, upto: int, epoch: int, *, done: Callable[[list[Entry]], None],
        failed: Callable[[str], None],
    ) -> None:  # fmt: skip
        station, timers = group.station, group.station.parameters.timers
        self._group = group
        self._begins, self._upto, self._epoch = begins, upto, epoch
        self._done, self._failed = done, failed
        carrier = GroupCarrier(group.turn, group.id, station.member, journals_entries=False)
        retention = Retention(checkpoint_every=NEVER, margin=0, block_bytes=1)
        stored = StoredStream(accepted=epoch, base=begins, checkpoint_seq=begins)
        self._replica = Replica(carrier, stored, (), retention, timers, station.rng, group)
        self._replica.members = lambda: group.roll.members
        self._replica.intake.expect(upto, group.turn.now)

    def on_repair(self, repair: Repair) -> None:
        """Entries, or word that they are not kept any more."""
        replica = self._replica
        if replica.needs_checkpoint(repair, math.inf):
            self._failed(no_longer_kept(self._begins, repair.checkpoint_seq))
            return
        usable = usable_entries(repair, self._upto if repair.accepted == self._epoch else repair.stable)
        if usable and repair.first <= replica.log.last + 1:
            replica.offer(repair.first, usable[: self._upto - repair.first + 1])
            self._look()

    def on_data(self, data: Data) -> None:
        """A payload: one of these entries may lack it."""
        if self._replica.library.lacks((data.origin, data.incarnation, data.n)) and self._replica.library.take(data):
            self._look()

    def _look(self) -> None:
        if self._replica.library.complete_upto >= self._upto:
            self._done(self._replica.entries_between(self._begins + 1, self._upto))

    @property
    def deadline(self) -> float:
        """When to ask again."""
        return self._replica.ask_at

    def tick(self) -> None:
        """Ask for what is missing."""
        seat = self._group.seat
        if seat is not None:
            self._replica.servers, self._replica.leader = seat.replica.servers, seat.replica.leader
            self._replica.ask_for_missing()


class Backlogs:
    """All that users of one node wait for."""

    __slots__ = ("_group", "_under_way")  # every group has one, and hardly any needs it

    def __init__(self, group: NodeGroup) -> None:
        self._group = group
        self._under_way: list[tuple[Latecomer, Backlog]] = []

    def begin_earlier(self, application: Application) -> None:
        """Somebody wants what came before: from our own copy of the stream, or fetched beside it."""
        group = self._group
        assert group.seat is not None
        user, replica, delivered = application.user, group.seat.replica, group.delivered
        since = application.since
        if since == CHECKPOINT:
            newest = min(max(replica.checkpoints.advertised.seq, replica.log.base), delivered)
            since = group.begins if group.begins != NOW else newest
        if since > delivered:
            self._turn_away(application, f"the stream has come to entry {delivered} only, not to {since}")
        elif since >= replica.log.base:
            user.joined(group.id, since, tuple(group.roll.members))
            if since < delivered and group.participants.has(user):
                user.delivered(since + 1, replica.entries_between(since + 1, delivered))
        elif not NOW < group.begins <= since:
            self._turn_away(application, no_longer_kept(since, replica.log.base))
        else:
            self._fetch(application, since, replica.log.accepted)

    def _turn_away(self, application: Application, reason: str) -> None:
        group = self._group
        group.participants.turn_away(application, reason)
        if not group.users and group.phase is Phase.CARRYING:
            group.leave()

    def _fetch(self, application: Application, since: int, epoch: int) -> None:
        group, user, stand_in = self._group, application.user, Latecomer(application.user)
        participants = group.participants
        group.turn.mark("group-backlog")
        participants.users[participants.applications.index(application)] = stand_in

        def done(entries: list[Entry]) -> None:
            self.forget(stand_in)
            participants.users[participants.applications.index(application)] = user
            user.joined(group.id, since, tuple(group.roll.members))
            stand_in.catch_up(since + 1, entries, is_in=lambda: participants.has(user))

        def failed(reason: str) -> None:
            self._turn_away(application, reason)

        backlog = Backlog(group, since, group.delivered, epoch, done=done, failed=failed)
        self._under_way.append((stand_in, backlog))

    def forget(self, stand_in: User) -> None:
        """It has what it waited for, or waits no longer."""
        self._under_way = [one for one in self._under_way if one[0] is not stand_in]

    def take(self, message: Repair | Data) -> None:
        """Part of what somebody here waits for may be in it."""
        for _, backlog in tuple(self._under_way):
            if isinstance(message, Repair):
                backlog.on_repair(message)
            else:
                backlog.on_data(message)

    @property
    def deadline(self) -> float:
        """When something is to be asked for again."""
        return min((backlog.deadline for _, backlog in self._under_way), default=math.inf)

    def tick(self) -> None:
        """Time has passed."""
        for _, backlog in tuple(self._under_way):
            backlog.tick()
