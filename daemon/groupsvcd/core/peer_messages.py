"""Every message between daemons, one frozen class each.

The sender's name and incarnation and the domain id are in the frame's header and not repeated here.
``stream`` is 0 for the domain stream, else the group id. ``docs/PROTOCOL.md`` says who sends what when.
"""

from __future__ import annotations

from typing import Any

import msgspec

from groupsvc.wire.codec import Codec
from groupsvc.wire.kinds import Kind

DOMAIN_STREAM = 0
DOMAIN_TOPIC = b"domain"


class PeerMessage(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """The common form of all messages between daemons."""


# --- Liveness ---------------------------------------------------------------------------------------


class LeaderAlive(PeerMessage, tag=int(Kind.LEADER_ALIVE)):
    """The name server is there. ``n`` counts within the epoch; answers echo it.

    ``stable`` is where the domain stream stands: what a node submits next says that it knew so much.
    """

    epoch: int
    n: int
    list_version: int
    stable: int


class Alive(PeerMessage, tag=int(Kind.ALIVE)):
    """A node answers LeaderAlive ``echo``; ``groups`` are (id, epoch) of what it leads or serves.

    ``state_id`` is that of a voter that has its state, on disk: only such answers back the name server.
    """

    epoch: int
    echo: int
    count: int
    state_id: str
    groups: tuple[tuple[int, int], ...] = ()


class AliveAck(PeerMessage, tag=int(Kind.ALIVE_ACK)):
    """The node's lease: ``good_for`` seconds, counted from when its incarnation ``to`` *sent* Alive ``count``."""

    to: int
    epoch: int
    count: int
    good_for: float


class Register(PeerMessage, tag=int(Kind.REGISTER)):
    """A node that is not in the list with its present incarnation asks to be."""

    state_id: str
    address: str
    pinned: bool
    priority: int
    essentials: dict[str, str]


class Unwelcome(PeerMessage, tag=int(Kind.UNWELCOME)):
    """Why a node is not let in: an essential parameter differs, or something said in ``reason``."""

    reason: str
    parameter: str = ""
    here: str = ""
    there: str = ""


class NodeListAsk(PeerMessage, tag=int(Kind.NODE_LIST_ASK)):
    """I know the list up to version ``have``; what has changed since?"""

    have: int


class NodeEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One node as the directory sees it. ``status`` is "up", "down" or "gone"."""

    name: str
    incarnation: int
    status: str
    address: str
    state_id: str
    voter: bool
    changed: int  # list version at which this line last changed
    pinned: bool = False
    priority: int = 0  # below 0: never a candidate for name server


class NodeList(PeerMessage, tag=int(Kind.NODE_LIST)):
    """All lines that changed after version ``have`` of the ask; the list is now at ``version``."""

    epoch: int
    have: int
    version: int
    nodes: tuple[NodeEntry, ...]


class Suspect(PeerMessage, tag=int(Kind.SUSPECT)):
    """The sender's connection to this incarnation was refused."""

    node: str
    incarnation: int


class Goodbye(PeerMessage, tag=int(Kind.GOODBYE)):
    """The sender stops on purpose; its incarnation will never act again."""


# --- Election ---------------------------------------------------------------------------------------


class Canvass(PeerMessage, tag=int(Kind.CANVASS)):
    """Would you support me for ``epoch``? Binds nobody."""

    epoch: int
    failed: int
    pinned: bool
    priority: int
    formed: bool
    essentials: dict[str, str]


class Support(PeerMessage, tag=int(Kind.SUPPORT)):
    """I would. ``state_id`` identifies the state directory behind the word; ``formed`` is false while it is blank."""

    epoch: int
    formed: bool
    state_id: str


class Claim(PeerMessage, tag=int(Kind.CLAIM)):
    """Promise me ``epoch``.

    In the domain stream ``voters`` are the (name, state id) of the holders as of the end of the claimant's log: only
    these may promise. A disk that holds nothing yet may do so only if it is in ``admitted``: a founder's, or one whose
    admission is known to be stable.
    """

    stream: int
    epoch: int
    voters: tuple[tuple[str, str], ...] = ()
    admitted: tuple[tuple[str, str], ...] = ()


class Yield(PeerMessage, tag=int(Kind.YIELD)):
    """The leader of ``epoch`` gives up its office in favour of ``to``."""

    epoch: int
    to: str


# --- Stream -----------------------------------------------------------------------------------------


class Submit(PeerMessage, tag=int(Kind.SUBMIT)):
    """Please order these: numbers ``first_n``, ``first_n + 1`` … of the sender's incarnation."""

    stream: int
    first_n: int
    known_seq: int
    bodies: tuple[bytes, ...]


class Order(PeerMessage, tag=int(Kind.ORDER)):
    """Entries in their order; everything up to ``stable`` may be delivered."""

    stream: int
    epoch: int
    first_seq: int
    entries: tuple[bytes, ...]
    stable: int


class Held(PeerMessage, tag=int(Kind.HELD)):
    """The server has everything up to ``upto`` and has delivered up to ``delivered``."""

    stream: int
    epoch: int
    upto: int
    delivered: int


class Beat(PeerMessage, tag=int(Kind.BEAT)):
    """Where the stream stands, so that a lost tail is noticed."""

    stream: int
    epoch: int
    last: int
    stable: int
    checkpoint: int


class Promised(PeerMessage, tag=int(Kind.PROMISED)):
    """I refuse everything below ``epoch`` from now on, and this is my log.

    In the domain stream ``state_id`` is the disk behind the word, and ``voters`` are the (name, state id) that the
    reported log names as holders: a disk that was replaced meanwhile must not count.
    """

    stream: int
    epoch: int
    accepted: int
    last: int
    stable: int
    checkpoint: int
    state_id: str = ""
    voters: tuple[tuple[str, str], ...] = ()


class Open(PeerMessage, tag=int(Kind.OPEN)):
    """The log of ``epoch`` is the one of epoch ``accepted`` up to ``last``. Have it, then answer Opened."""

    stream: int
    epoch: int
    accepted: int
    last: int
    stable: int
    checkpoint: int


class Opened(PeerMessage, tag=int(Kind.OPENED)):
    """I have the log of ``epoch`` complete up to ``last`` and accept ``epoch``."""

    stream: int
    epoch: int
    last: int


class RepairAsk(PeerMessage, tag=int(Kind.REPAIR_ASK)):
    """Send me entries ``first`` … ``upto``, or the newest checkpoint if ``first`` is no longer kept.

    A checkpoint comes in blocks: of the one after ``checkpoint_seq`` the asker has ``checkpoint_offset`` bytes.
    """

    stream: int
    first: int
    upto: int
    checkpoint_seq: int = 0
    checkpoint_offset: int = 0


class Repair(PeerMessage, tag=int(Kind.REPAIR)):
    """Entries from ``first`` on, from a log accepted in ``accepted``, stable up to ``stable``.

    With ``checkpoint_seq`` > 0 the asker needs the state after that entry first: this is the block from
    ``checkpoint_offset`` on, of ``checkpoint_bytes`` in all; entries come with the last block.
    """

    stream: int
    accepted: int
    stable: int
    first: int
    entries: tuple[bytes, ...]
    checkpoint_seq: int = 0
    checkpoint_offset: int = 0
    checkpoint_bytes: int = 0
    checkpoint: bytes = b""


class SubmitRefused(PeerMessage, tag=int(Kind.SUBMIT_REFUSED)):
    """To incarnation ``to``: there will be no answer to ``first_n``.

    ``reason`` is "gap" (go on after ``last_n``), "too old" (not numbered, and never will be) or "forgotten" (it was
    numbered, but what came out is no longer kept).
    """

    to: int
    stream: int
    first_n: int
    last_n: int
    reason: str


class Refused(PeerMessage, tag=int(Kind.REFUSED)):
    """I have promised ``epoch``; what you sent is of a lower one."""

    stream: int
    epoch: int


# --- Questions to the name server -------------------------------------------------------------------


class Ask(PeerMessage, tag=int(Kind.ASK)):
    """A read of the directory. ``what`` is "group", "groups", "config" or "hand-over"."""

    number: int
    what: str
    key: str


class Tell(PeerMessage, tag=int(Kind.TELL)):
    """The answer to ``Ask(number)`` of incarnation ``to``: plain data, or a ``problem`` that says why there is none."""

    to: int
    epoch: int
    number: int
    answer: dict[str, Any]
    problem: str = ""


class Answered(PeerMessage, tag=int(Kind.ANSWERED)):
    """The command ``n`` of your incarnation ``to`` was applied, and this came out."""

    to: int
    epoch: int
    n: int
    answer: dict[str, Any]


AnyPeerMessage = (
    LeaderAlive | Alive | AliveAck | Register | Unwelcome | NodeListAsk | NodeList | Suspect | Goodbye
    | Canvass | Support | Claim | Yield
    | Submit | Order | Held | Beat | Promised | Open | Opened | RepairAsk | Repair
    | SubmitRefused | Refused
    | Ask | Tell | Answered
)  # fmt: skip

PEER_CODEC: Codec[AnyPeerMessage] = Codec(AnyPeerMessage)
