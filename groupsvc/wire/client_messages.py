"""Every message between an application and the daemon of its node, one frozen class each.

Requests carry an ``id`` chosen by the client; every request gets exactly one reply with that id within its
``timeout``. Hello comes first on a connection and settles the version.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .codec import Codec
from .kinds import Kind

CLIENT_PROTOCOL_VERSION = 1


class ClientMessage(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of all messages between application and daemon."""


class ClientRequest(ClientMessage):
    """From the application."""


class ClientReply(ClientMessage):
    """To the application."""


# --- Requests ---------------------------------------------------------------------------------------


class Hello(ClientRequest, tag=int(Kind.HELLO)):
    """The first frame: the newest protocol version the client speaks, the oldest, and who it is."""

    id: int
    version: int
    version_min: int
    client: str


class StatusAsk(ClientRequest, tag=int(Kind.STATUS_ASK)):
    """What does this daemon know? Answered at once, from its own memory."""

    id: int


class LookUpAsk(ClientRequest, tag=int(Kind.LOOK_UP_ASK)):
    """Who leads ``group``? With ``form`` the node becomes its leader if there is no such group."""

    id: int
    group: str
    form: bool
    timeout: float


class ConfigAsk(ClientRequest, tag=int(Kind.CONFIG_ASK)):
    """The domain-wide value of ``key``, as of now (linearizable)."""

    id: int
    key: str
    timeout: float


class ConfigSet(ClientRequest, tag=int(Kind.CONFIG_SET)):
    """Set ``key`` if its version is ``if_version`` (0 = not set yet)."""

    id: int
    key: str
    value: str
    if_version: int
    timeout: float


class HandOverAsk(ClientRequest, tag=int(Kind.HAND_OVER_ASK)):
    """Make the voter ``to`` name server instead of the present one."""

    id: int
    to: str
    timeout: float


# --- Replies ----------------------------------------------------------------------------------------


class Welcome(ClientReply, tag=int(Kind.WELCOME)):
    """The version both will speak, and who answers."""

    id: int
    version: int
    node: str
    incarnation: int
    domain: str


class NodeStatus(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of the table of nodes."""

    name: str
    incarnation: int
    status: str
    address: str
    voter: bool
    name_server: bool


class Status(ClientReply, tag=int(Kind.STATUS)):
    """The daemon's view of the domain. ``trouble`` says in words what is missing, "" if nothing."""

    id: int
    node: str
    incarnation: int
    domain: str
    role: str  # "name server", "voter", "blank voter", "node"
    election: str  # one of the five election states
    name_server: str  # "" if unknown
    epoch: int
    list_version: int
    lease_left: float
    suspended: bool
    trouble: str
    nodes: tuple[NodeStatus, ...]
    applied: int  # directory entries applied here (voters)
    stable: int


class GroupRecord(ClientReply, tag=int(Kind.GROUP_RECORD)):
    """A group as the directory has it; ``formed`` tells the asker that it is the leader now."""

    id: int
    exists: bool
    formed: bool
    group: int
    name: str
    epoch: int
    leader: str
    servers: tuple[str, ...]


class ConfigValue(ClientReply, tag=int(Kind.CONFIG_VALUE)):
    """The value and its version; version 0 means that it was never set."""

    id: int
    key: str
    value: str
    version: int


class Done(ClientReply, tag=int(Kind.DONE)):
    """It happened."""

    id: int


class Problem(ClientReply, tag=int(Kind.PROBLEM)):
    """It did not (``failed``), may have (``unknown``), or was asked wrongly (``usage``)."""

    id: int
    family: Literal["failed", "unknown", "usage"]
    code: str
    text: str


AnyClientRequest = Hello | StatusAsk | LookUpAsk | ConfigAsk | ConfigSet | HandOverAsk
AnyClientReply = Welcome | Status | GroupRecord | ConfigValue | Done | Problem

REQUEST_CODEC: Codec[AnyClientRequest] = Codec(AnyClientRequest)
REPLY_CODEC: Codec[AnyClientReply] = Codec(AnyClientReply)
