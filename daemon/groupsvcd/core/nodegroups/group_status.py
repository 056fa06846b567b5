"""What people and tests are shown of a group on one node."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import attrs

from ..statistics import NodeGroupStatistics
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


def role_of(group: NodeGroup) -> str:
    """What this node is in the stream of a group."""
    seat = group.seat
    if seat is None:
        return "none"
    if seat.leading is not None:
        return "leader"
    if seat.recovery is not None:
        return "recovering"
    return "server" if isinstance(seat.role, Server) else "receiver"


def statistics_of(groups: Collection[NodeGroup]) -> NodeGroupStatistics:
    """All of them together; every role is there, also where nobody has it."""
    roles = dict.fromkeys(("leader", "server", "receiver", "recovering", "none"), 0)
    kept = outstanding = 0
    for group in groups:  # once, as there may be thousands
        roles[role_of(group)] += 1
        seat, submitter = group.seat, group.submitter
        if seat is not None:
            kept += seat.replica.log.bytes
        if submitter is not None:
            outstanding += submitter.outstanding
    return NodeGroupStatistics(roles=roles, kept_bytes=kept, outstanding=outstanding)


def status_of(group: NodeGroup) -> GroupStatus:
    """As it is now."""
    seat = group.seat
    replica = seat.replica if seat is not None else None
    return GroupStatus(
        name=group.name,
        id=group.id,
        phase=group.phase.value,
        role=role_of(group),
        epoch=group.roll.epoch,
        leader=replica.leader if replica is not None else "",
        members=tuple(group.roll.members),
        servers=group.roll.server_names,
        last=replica.log.last if replica is not None else 0,
        stable=replica.stable if replica is not None else 0,
        delivered=group.delivered,
        outstanding=group.submitter.outstanding if group.submitter is not None else 0,
    )
