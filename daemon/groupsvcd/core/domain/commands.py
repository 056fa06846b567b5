"""What can be ordered on the domain stream: one frozen class per command.

An entry of the domain stream is the bytes of one command. It is stored on disk and read by later versions,
so tags and the order of fields never change and no tag is ever used for something else.

*by* and *asker* are the node that acts: name and incarnation.

All field types are closed (no ``Any``): whether bytes are a command must never depend on how deep the
reader's stack happens to be, or two voters could disagree.
"""

from __future__ import annotations

import msgspec

from groupsvc.wire.codec import UNREADABLE

from ..views import AttributeValue, NodeId, Server
from .limits import COMMAND_BYTES_MAX, SHOWN_CHARS_MAX


class Command(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of all commands."""


class FormDomain(Command, frozen=True, tag=1):
    """The very first entry: the random domain id and the voters with their state ids ("" if missing)."""

    domain: bytes
    voters: tuple[tuple[str, str], ...]
    essentials: dict[str, str]


class ViewStarted(Command, frozen=True, tag=2):
    """The first entry of each name server: it leads the domain stream in ``epoch``."""

    epoch: int
    leader: str
    servers: tuple[Server, ...]
    k: int


class NodeUp(Command, frozen=True, tag=3):
    """This incarnation has registered and may take part."""

    name: str
    incarnation: int
    state_id: str
    address: str
    voter: bool
    pinned: bool = False
    priority: int = 0


class NodeDown(Command, frozen=True, tag=4):
    """This incarnation no longer answers; ``early`` tells that its port refused before the lease ended."""

    name: str
    incarnation: int
    early: bool


class NodeGone(Command, frozen=True, tag=5):
    """This incarnation knows by its own clock that it may not act, or does not exist any more."""

    name: str
    incarnation: int


class FormGroup(Command, frozen=True, tag=6):
    """Make the asker the leader of a new group, or tell who leads it already."""

    name: str
    asker: str
    asker_incarnation: int
    attributes: dict[str, AttributeValue]


class ProposeView(Command, frozen=True, tag=7):
    """Grant this view if ``base_epoch`` is still the newest epoch granted."""

    id: int
    base_epoch: int
    leader: str
    servers: tuple[Server, ...]
    k: int
    by: NodeId


class ActivateView(Command, frozen=True, tag=8):
    """The leaders of these (group id, epoch) have recovered their streams."""

    activations: tuple[tuple[int, int], ...]


class ContinueGroup(Command, frozen=True, tag=9):
    """The quorum is lost for ever; go on with what these servers have. The grant is marked forced."""

    id: int
    base_epoch: int
    leader: str
    servers: tuple[Server, ...]


class DropGroup(Command, frozen=True, tag=10):
    """The group has ended; its name is free again."""

    id: int
    epoch: int
    by: NodeId


class VoterReplaced(Command, frozen=True, tag=11):
    """From now on this state directory is the voter's; the one before never counts again."""

    name: str
    state_id: str


class SetConfig(Command, frozen=True, tag=12):
    """Set ``key`` if its version is ``if_version`` (0 = never set)."""

    key: str
    value: str
    if_version: int


AnyCommand = (
    FormDomain | ViewStarted | NodeUp | NodeDown | NodeGone | FormGroup | ProposeView | ActivateView | ContinueGroup
    | DropGroup | VoterReplaced | SetConfig
)  # fmt: skip

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder: msgspec.msgpack.Decoder[AnyCommand] = msgspec.msgpack.Decoder(AnyCommand)


def encode_command(command: AnyCommand) -> bytes:
    """The body of the entry; equal commands give equal bytes."""
    return _encoder.encode(command)


def decode_command(body: bytes) -> AnyCommand | None:
    """The command in ``body``, or None if these bytes are none.

    No reason is given: it would come from a library, change with its version, and end up in answers that
    must be the same on every voter.
    """
    if len(body) > COMMAND_BYTES_MAX:
        return None
    try:
        return _decoder.decode(body)
    except UNREADABLE:
        return None


def shown(text: str) -> str:
    """Text of a command as a refusal quotes it: short, and the same whatever Python a voter runs on."""
    return ascii(text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "...")
