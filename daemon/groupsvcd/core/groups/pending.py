"""A proposal that waits for its turn: part of the group's state, the same at every member."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from groupsvc.wire.notices import Kind, ProposalId, ProviderId

from . import commands as cmd
from .commands import AnyProposal

BATCH_BYTES_MAX = 1024 * 1024
"""Data of those who join with one ballot: everybody is told of it in one frame. Who comes after that has the next."""

_KINDS: dict[type, Kind] = {
    cmd.Join: "join",
    cmd.Leave: "leave",
    cmd.Expel: "expel",
    cmd.ChangeState: "state",
    cmd.SendMessage: "message",
    cmd.ChangeAttributes: "attributes",
}


@attrs.frozen
class Pending:
    """A proposal that waits for its turn, since entry ``seq``."""

    id: ProposalId
    command: AnyProposal
    seq: int

    @property
    def proposer(self) -> ProviderId:
        """The provider, or who wants to become one."""
        return (*self.id[:2], self.command.provider)

    @property
    def kind(self) -> Kind:
        """What the ballot about it is."""
        return _KINDS[type(self.command)]

    @property
    def size(self) -> int:
        """Of what is proposed, in bytes."""
        command = self.command
        if isinstance(command, cmd.ChangeState):
            return len(command.value)
        if isinstance(command, cmd.SendMessage):
            return len(command.payload)
        return len(command.data) if isinstance(command, cmd.Join) else 0

    @property
    def fails_if_busy(self) -> bool:
        """Whether its proposer does not want to wait."""
        return not isinstance(self.command, cmd.Join) and self.command.fail_if_busy


def fitting(joins: Iterable[Pending]) -> list[Pending]:
    """The first of these that fit into one ballot: at least one."""
    batch: list[Pending] = []
    size = 0
    for one in joins:
        size += one.size
        if batch and size > BATCH_BYTES_MAX:
            break
        batch.append(one)
    return batch
