"""What people and tests are shown of a group on one node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ..stream.server import Server
from ..views import NodeId

if TYPE_CHECKING:
    from .node_group import NodeGroup


@attrs.frozen
class GroupStatus:
    """One group on this node, for people and tests."""

    name: str
    id: int
    phase: str
    role: str
    epoch: int
    leader: str
    members: tuple[NodeId, ...]
    servers: tuple[str, ...]
    last: int
    stable: int
    delivered: int
    outstanding: int


def status_of(group: NodeGroup) -> GroupStatus:
    """As it is now."""
    seat = group.seat
    replica = seat.replica if seat is not None else None
    word = "none"
    if seat is not None:
        word = "server" if isinstance(seat.role, Server) else "receiver"
        if seat.recovery is not None:
            word = "recovering"
        if seat.leading is not None:
            word = "leader"
    return GroupStatus(
        name=group.name,
        id=group.id,
        phase=group.phase.value,
        role=word,
        epoch=group.roll.epoch,
        leader=replica.leader if replica is not None else "",
        members=tuple(group.roll.members),
        servers=group.roll.server_names,
        last=replica.log.last if replica is not None else 0,
        stable=replica.stable if replica is not None else 0,
        delivered=group.delivered,
        outstanding=group.submitter.outstanding if group.submitter is not None else 0,
    )
