"""One line of the tables that a daemon is asked for: nodes, groups."""

from __future__ import annotations

import msgspec

from .notices import AttributeValue


class NodeStatus(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of the table of nodes."""

    name: str
    incarnation: int
    status: str
    address: str
    voter: bool
    name_server: bool


class GroupLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of the table of groups."""

    name: str
    group: int
    epoch: int
    leader: str
    servers: tuple[str, ...]
    attributes: dict[str, AttributeValue]
