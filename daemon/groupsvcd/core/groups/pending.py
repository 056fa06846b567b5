"""A proposal that waits for its turn: part of the group's state, the same at every member."""

from __future__ import annotations

import attrs

from groupsvc.wire.notices import ProposalId, ProviderId

from . import commands as cmd
from .commands import AnyProposal


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
