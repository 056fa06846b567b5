"""A directory with its next entry number, so that a test reads as the list of what was ordered."""

from __future__ import annotations

from typing import Any

from groupsvcd.core.domain.commands import (
    ActivateView,
    AnyCommand,
    AttributeValue,
    FormDomain,
    FormGroup,
    NodeDown,
    NodeGone,
    NodeUp,
    ProposeView,
    Server,
    ViewStarted,
)
from groupsvcd.core.domain.directory import Directory
from groupsvcd.core.domain.groups import Group

DOMAIN = bytes(range(16))
VOTERS = (("a", "disk-a"), ("b", "disk-b"), ("c", "disk-c"))


class Scene:
    """A formed domain with voters a, b, c and name server a; nobody is up yet."""

    def __init__(self) -> None:
        self.directory = Directory()
        self.order(FormDomain(DOMAIN, VOTERS, {"domain": "test"}))
        self.order(ViewStarted(1, "a", VOTERS, 2))

    @property
    def seq(self) -> int:
        """Number of the last entry."""
        return self.directory.applied

    def order(self, command: AnyCommand) -> dict[str, Any]:
        """The command as the next entry."""
        return self.directory.apply(self.seq + 1, command)

    def up(self, *names: str, incarnation: int = 1, state_id: str | None = None) -> None:
        """Each node comes up, with a disk of its own unless told otherwise."""
        for name in names:
            disk = f"disk-{name}" if state_id is None else state_id
            assert self.order(NodeUp(name, incarnation, disk, f"tcp://{name}", voter=name in "abc"))["ok"]

    def down(self, name: str, incarnation: int = 1) -> None:
        """The node is down."""
        assert self.order(NodeDown(name, incarnation, early=False))["ok"]

    def gone(self, name: str, incarnation: int = 1) -> None:
        """The node is down and gone."""
        self.down(name, incarnation)
        assert self.order(NodeGone(name, incarnation))["ok"]

    def form(self, name: str, asker: str, **attributes: AttributeValue) -> int:
        """The group's id."""
        answer = self.order(FormGroup(name, asker, 1, attributes))
        assert answer["ok"], answer
        assert answer["formed"], answer
        return int(answer["group"]["id"])

    def group(self, group_id: int) -> Group:
        """The record of a group that must be there."""
        group = self.directory.groups.get(group_id)
        assert group is not None
        return group

    def propose(self, group_id: int, *servers: Server, k: int = 1, by: tuple[str, int] | None = None) -> dict[str, Any]:
        """The leader of the active view, or ``by``, proposes these servers, led by the first."""
        group = self.group(group_id)
        who = by or (group.active.leader, 1)
        return self.order(ProposeView(group_id, group.newest_epoch, servers[0][0], servers, k, who))

    def activate(self, group_id: int) -> None:
        """The newest grant becomes active."""
        assert self.order(ActivateView(((group_id, self.group(group_id).newest_epoch),)))["ok"]

    def serve(self, group_id: int, *servers: Server, k: int = 1) -> None:
        """The group is served by these from now on."""
        assert self.propose(group_id, *servers, k=k)["ok"]
        self.activate(group_id)
