"""What a server or a receiver tells the name server of a group that has fallen silent.

E serves with D, which leads, and hears nothing of it for ``leader_silent``: E complains, again and again, and so may
the others; the name server counts. G only follows. If all servers that G knows are down it is an *orphan* and says how
far it has got: perhaps it has more than anybody else who is left.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..peer_messages import Complaint, Orphan
from ..stream.server import Server

if TYPE_CHECKING:
    from .seat import Seat


class Complaints:
    """The complaints from one seat."""

    __slots__ = ("_complained_at", "_seat", "_silent_s")  # a node has thousands

    def __init__(self, seat: Seat) -> None:
        self._seat = seat
        self._silent_s = seat.station.parameters.timers.leader_silent
        self._complained_at = -math.inf

    @property
    def at(self) -> float:
        """When to complain that the leader is not heard or all servers are down; who leads complains of nobody."""
        seat, role = self._seat, self._seat.role
        if seat.leading is not None or seat.recovery is not None:
            return math.inf
        again_at = self._complained_at + self._silent_s / 2
        if seat.is_orphan:
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
        if seat.is_orphan:
            turn.mark("group-orphan")
            turn.send(member.leader, Orphan(seat.group.id, epoch, seat.replica.delivered))
        else:
            turn.send(member.leader, Complaint(seat.group.id, epoch))
