"""What a server or a receiver tells the name server of a group that has fallen silent.

E serves with D, which leads, and hears nothing of it for ``leader_silent``: E complains, again and again, and so may
the others; the name server counts. G only follows. If all servers that G knows are down it is an *orphan* and says how
far it has got: perhaps it has more than anybody else who is left. G knows them from the stream; and if it does not get
that, from the name server, which told it that another view is active.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..peer_messages import Complaint, Orphan
from ..stream.server import Server
from ..views import View

if TYPE_CHECKING:
    from .seat import Seat


class Complaints:
    """The complaints from one seat."""

    __slots__ = ("_complained_at", "_seat", "_silent_s", "newest")  # a node has thousands

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._silent_s = seat.station.parameters.timers.leader_silent
        self._complained_at = -math.inf
        self.newest: View | None = None  # the view that the name server called active, last time it did

    @property
    def _is_orphan(self) -> bool:
        """Whether all who hold the stream are down, and we are not one of them."""
        seat, newest = self._seat, self.newest
        roll, station = seat.group.roll, seat.station
        servers = newest.servers if newest is not None and newest.epoch > roll.epoch else roll.servers
        if not servers or seat.holds_for(servers):
            return False
        return all(isinstance(which, int) and station.is_down((name, which)) for name, which in servers)

    @property
    def at(self) -> float:
        """When to complain that the leader is not heard or all servers are down; who leads complains of nobody."""
        seat, role = self._seat, self._seat.role
        if seat.leading is not None or seat.recovery is not None:
            return math.inf
        again_at = self._complained_at + self._silent_s / 2
        if self._is_orphan:
            return again_at
        return max(role.heard_at + self._silent_s, again_at) if isinstance(role, Server) else math.inf

    def complain(self) -> None:
        """It is time to; if we could take over from nobody we do not."""
        seat, turn = self._seat, self._seat.turn
        self._complained_at = turn.now
        member = seat.station.member
        if not member.hears_leader or member.isolated or seat.cannot_write:
            return
        epoch = seat.replica.log.accepted
        if seat.inheritance.is_detached:
            return  # what we have is not what the group has
        if self._is_orphan:
            turn.mark("group-orphan")
            turn.send(member.leader, Orphan(seat.group.id, epoch, seat.replica.delivered))
        else:
            turn.send(member.leader, Complaint(seat.group.id, epoch))
