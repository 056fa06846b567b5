"""One line of the tables that a daemon is asked for: nodes, groups, options."""

from __future__ import annotations

from typing import Literal

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


OptionKind = Literal["essential", "domain", "node"]
"""The same on all nodes or they refuse each other; settable for the whole domain; each node's own."""


class OptionLine(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One option as a daemon has it: its value, where that comes from, and what the domain says, as known there."""

    key: str
    value: str
    source: str  # "default", "domain", or where it stands: FILE:LINE, environment NAME
    kind: OptionKind
    domain_value: str = ""  # "": the domain says nothing
    version: int = 0  # of what the domain says; 0: nobody ever said anything
