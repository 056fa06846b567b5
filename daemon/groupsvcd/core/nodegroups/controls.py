"""What a group's leader orders on its own account: views and members.

The body of an entry without an origin is one of these. They are read by every member, by members of later versions
and from durable groups' disks, so tags and the order of fields never change.
"""

from __future__ import annotations

import msgspec

from groupsvc.wire.codec import Reader

from ..views import NodeId, Server


class Control(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of all control entries."""


class ViewStarted(Control, frozen=True, tag=1):
    """The first entry of every view.

    ``tail_may_be_lost``: the quorum of the view before was lost for ever, or that may be so: the log is that of a view
    which was granted since and never became active.
    """

    epoch: int
    leader: str
    servers: tuple[Server, ...]
    k: int
    fence: int
    tail_may_be_lost: bool = False


class NodeInserted(Control, frozen=True, tag=2):
    """This node carries the group from here on; if nothing is known of it as an origin, numbers follow ``last_n``."""

    node: NodeId
    term: int
    last_n: int


class NodeRemoved(Control, frozen=True, tag=3):
    """This node has left."""

    node: NodeId


class NodesFailed(Control, frozen=True, tag=4):
    """These nodes were declared down, or came back as another incarnation; nothing of theirs is ordered any more."""

    nodes: tuple[NodeId, ...]


class Ruled(Control, frozen=True, tag=5):
    """What the leader decides in the name of a layer above; it changes neither views nor members."""

    body: bytes


AnyControl = ViewStarted | NodeInserted | NodeRemoved | NodesFailed | Ruled


def who_changed(control: AnyControl) -> tuple[NodeId, ...]:
    """The nodes that this makes members, or makes members no longer."""
    if isinstance(control, NodesFailed):
        return control.nodes
    return () if isinstance(control, ViewStarted | Ruled) else (control.node,)


_encoder = msgspec.msgpack.Encoder()
_reader: Reader[AnyControl] = Reader(AnyControl, "control entry")


def encode_control(control: AnyControl) -> bytes:
    """The body of the entry."""
    return _encoder.encode(control)


def decode_control(body: bytes) -> AnyControl:
    """The control entry in ``body``; raises ``PeerProtocolError``."""
    return _reader.read(body)
