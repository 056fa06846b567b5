"""What a group's stream says about its processes: commands of nodes and rulings of the leader.

A node submits *commands* on behalf of its processes: a join, a proposal, a death. They are ordinary entries, so each is
ordered exactly once, whoever leads, and stays ordered when the leader dies: the queue of proposals is a function of the
stream, and nobody has to repeat a proposal. A process is named by a number of its own node; with the node and
incarnation that the entry comes from, which nobody can forge, that is its id.

The leader adds *rulings*: a phase has ended and these were the votes, a window for joins is over. Whether they still
fit is seen when they are applied, by everybody alike.

A plain message is the most frequent command, and its payload is not looked at by any daemon; so it has a form of its
own that costs one concatenation: a zero, the sender's number, the payload. The others are MessagePack arrays, which
never begin with a zero. Tags and the order of fields never change: durable groups keep them on disk.
"""

from __future__ import annotations

import struct
from typing import Literal

import msgspec

from groupsvc.wire.codec import Reader
from groupsvc.wire.notices import AttributeValue, BrokenBy, Cast, DefaultVote, ProviderId, RoundEnd, Said

FailureCause = Literal["failure", "goodbye", "overrun"]
"""Why a provider is no more, as far as its own node can tell. That a node is no more, the stream says."""

BY_DEFAULT = -1
"""Of a proposal's phases and time limit: as the group has it."""

ONE_PHASE = 1
DYNAMIC = 0
"""How many phases a proposal has: one, which is no vote at all; as many as the votes ask for; or a fixed number."""

_message = struct.Struct("!BI")
MESSAGE_HEAD_BYTES = _message.size
"""What stands before the payload of a plain message: the same for all of one sender."""


class Command(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of what nodes submit."""


class Proposal(Command, frozen=True):
    """The common part of all proposals. ``provider`` proposes; it has ``number`` among the proposals of its node."""

    number: int
    provider: int
    phases: int
    time_limit: float


class Join(Proposal, frozen=True, tag=1):
    """``provider`` is the number of the process that wants to join."""

    name: str
    data: bytes


class Leave(Proposal, frozen=True, tag=2):
    """The provider wants to leave; ``code`` is for the others."""

    code: int
    fail_if_busy: bool = False


class Expel(Proposal, frozen=True, tag=3):
    """These providers are to be removed."""

    targets: tuple[ProviderId, ...]
    reason: str
    fail_if_busy: bool = False


class ChangeState(Proposal, frozen=True, tag=4):
    """The state value is to be this, if its version is still ``if_version`` (-1: whatever it is)."""

    value: bytes
    if_version: int = -1
    fail_if_busy: bool = False


class SendMessage(Proposal, frozen=True, tag=5):
    """A message to all providers, by ballot."""

    payload: bytes
    fail_if_busy: bool = False


class ChangeAttributes(Proposal, frozen=True, tag=6):
    """These attributes of the group are to change."""

    changes: dict[str, AttributeValue]
    fail_if_busy: bool = False


class Withdraw(Command, frozen=True, tag=7):
    """Nobody waits for this proposal of the node any more; if it has not had its turn, it gets none."""

    number: int


class ProvidersFailed(Command, frozen=True, tag=8):
    """These processes of the node are no more, providers or not yet."""

    failures: tuple[tuple[int, FailureCause], ...]


class Responds(Command, frozen=True, tag=9):
    """A provider of the node does not answer its daemon, or does so again."""

    provider: int
    does: bool


class StoreBlock(Command, frozen=True, tag=10):
    """The next block of a checkpoint that a provider takes of its machine, as it is after entry ``at``."""

    provider: int
    at: int
    index: int
    block: bytes


class SealCheckpoint(Command, frozen=True, tag=11):
    """That was the last of so many blocks."""

    provider: int
    at: int
    blocks: int


class Bring(Command, frozen=True, tag=12):
    """What a provider brings to a barrier that it comes to then, if it is much. ``number`` is one of its node's own.

    With no payload it takes back what was brought under this number.
    """

    provider: int
    barrier: str
    number: int
    payload: bytes


AnyCommand = (
    Join | Leave | Expel | ChangeState | SendMessage | ChangeAttributes | Withdraw | ProvidersFailed | Responds
    | StoreBlock | SealCheckpoint | Bring
)  # fmt: skip
AnyProposal = Join | Leave | Expel | ChangeState | SendMessage | ChangeAttributes


class Ruling(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of what the leader decides."""


class PhaseEnded(Ruling, frozen=True, tag=1):
    """Everybody has voted in this phase, or was voted for. What follows from it, everybody sees for himself."""

    ballot: int
    phase: int
    votes: tuple[Cast, ...]
    state: tuple[ProviderId, bytes] | None = None  # one of those that votes proposed
    messages: tuple[tuple[ProviderId, bytes], ...] = ()
    default_vote: DefaultVote | None = None


class WindowEnded(Ruling, frozen=True, tag=2):
    """What was batched until entry ``upto`` has its turn."""

    what: Literal["joins", "leaves"]
    upto: int


class NodesGone(Ruling, frozen=True, tag=3):
    """These nodes were down, and by now they certainly hold nothing: their leases have ended by their own clocks."""

    nodes: tuple[tuple[str, int], ...]


class RoundEnded(Ruling, frozen=True, kw_only=True, tag=4):
    """A round of a barrier is over, with those who have arrived. Whether it still fits, everybody sees for himself."""

    barrier: str
    round: int
    end: RoundEnd
    parties: int  # how many it takes; 0: all providers
    arrived: tuple[tuple[ProviderId, bytes], ...]  # with what they bring, if it is little
    brought: tuple[tuple[ProviderId, int], ...] = ()  # else with the number under which they brought it before
    broken_by: BrokenBy = ""
    who: tuple[ProviderId, ...] = ()
    waited: float = 0.0
    keeps: bool = False  # for who takes the place of a dead party
    said: tuple[Said, ...] = ()  # if they do not agree


AnyRuling = PhaseEnded | WindowEnded | NodesGone | RoundEnded

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_command_reader: Reader[AnyCommand] = Reader(AnyCommand, "command of a process group")
_ruling_reader: Reader[AnyRuling] = Reader(AnyRuling, "ruling")


def encode(what: AnyCommand | AnyRuling) -> bytes:
    """The body of the entry."""
    return _encoder.encode(what)


def message_prefix(provider: int) -> bytes:
    """What stands before the payload of every plain message of this provider; 0: of somebody who is none."""
    return _message.pack(0, provider)


def is_message(body: bytes) -> bool:
    """Whether this entry is a plain message."""
    return body[:1] == b"\0"


def decode_message(body: bytes) -> tuple[int, bytes]:
    """The number of its sender there, and its payload."""
    return int.from_bytes(body[1 : _message.size], "big"), body[_message.size :]


def sender_of(body: bytes) -> int:
    """The number of a plain message's sender there."""
    return int.from_bytes(body[1 : _message.size], "big")


def decode_command(body: bytes) -> AnyCommand:
    """The command in ``body``, which is no plain message; raises ``PeerProtocolError``."""
    return _command_reader.read(body)


def decode_ruling(body: bytes) -> AnyRuling:
    """The ruling in ``body``; raises ``PeerProtocolError``."""
    return _ruling_reader.read(body)
