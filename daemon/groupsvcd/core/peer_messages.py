"""Every message between daemons, one frozen class each.

The sender's name and incarnation and the domain id are in the frame's header and not repeated here.
``stream`` is 0 for the domain stream, else the group id. ``docs/PROTOCOL.md`` says who sends what when.
"""

from __future__ import annotations

from typing import Any

import msgspec

from groupsvc.wire.codec import Codec
from groupsvc.wire.kinds import Kind

from .groups.papers import Paper, Silent, Waiter
from .peer_forms import PeerMessage as PeerMessage
from .peer_forms import StreamMessage as StreamMessage
from .stream.entries import Piece
from .survey_messages import Findings as Findings
from .survey_messages import Survey as Survey
from .views import AttributeValue, NodeId, View, Views

DOMAIN_STREAM = 0
TOPIC_BYTES = 8
"""A topic is the number of a stream: all have one length, so that none begins another."""


def topic_of(stream: int) -> bytes:
    """What multicasts that concern a stream begin with."""
    return stream.to_bytes(TOPIC_BYTES, "big")


DOMAIN_TOPIC = topic_of(DOMAIN_STREAM)


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
    """Why a node is not let in: essential ``parameters`` differ, the first so; or something said in ``reason``."""

    reason: str
    parameter: str = ""
    here: str = ""
    there: str = ""
    parameters: tuple[str, ...] = ()
    only: NodeId | None = None  # all hear it, and it is for this one


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
    """All lines, and options of the daemons, that changed after version ``have``; the list is now at ``version``."""

    epoch: int
    have: int
    version: int
    nodes: tuple[NodeEntry, ...]
    options: tuple[tuple[str, str, int], ...] = ()  # key, value, version


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


class Claim(StreamMessage, tag=int(Kind.CLAIM)):
    """Promise me ``epoch``.

    In the domain stream ``voters`` are the (name, state id) of the holders as of the end of the claimant's log: only
    these may promise. A disk that holds nothing yet may do so only if it is in ``admitted``: a founder's, or one whose
    admission is known to be stable. In a group's stream ``view`` is what the directory granted. ``from_all``: in a fast
    group it goes to every member, in a forced view to whoever may have something; who has nothing answers that.
    """

    epoch: int
    voters: tuple[tuple[str, str], ...] = ()
    admitted: tuple[tuple[str, str], ...] = ()
    view: View | None = None
    from_all: bool = False


class Yield(PeerMessage, tag=int(Kind.YIELD)):
    """The leader of ``epoch`` gives up its office in favour of ``to``."""

    epoch: int
    to: str


# --- Stream -----------------------------------------------------------------------------------------


class Submit(StreamMessage, tag=int(Kind.SUBMIT)):
    """Please order these: numbers ``first_n``, ``first_n + 1`` … of the sender's incarnation.

    Instead of a large body there is its (length, CRC-32): the payload travels apart, as Data. Nothing up to ``settled``
    will be sent again, whatever became of it. ``ack``: somebody waits to hear that they are held.
    """

    first_n: int
    known_seq: int
    bodies: tuple[bytes | tuple[int, int], ...]
    settled: int = 0
    ack: bool = False


class Relay(StreamMessage, tag=int(Kind.RELAY)):
    """The Submit of another node, which cannot reach the leader itself."""

    origin: str
    incarnation: int
    submit: Submit


class Order(StreamMessage, tag=int(Kind.ORDER)):
    """Entries in their order, runs among them; what is up to ``stable`` may be delivered, up to ``discard`` forgotten.

    ``began`` is the number of the first entry of a group's view: whoever has delivered that number by an older one has
    delivered what is lost for ever. Up to ``nearly`` only one more server is needed: one that holds as much knows that
    it is stable. ``ack``: everybody is to say once it has all of this; only fast groups do without.
    """

    epoch: int
    first_seq: int
    entries: tuple[Piece, ...]
    stable: int
    discard: int = 0
    began: int = 0
    nearly: int = 0
    ack: bool = False


class Held(StreamMessage, tag=int(Kind.HELD)):
    """The server has everything up to ``upto`` and has delivered up to ``delivered``; ``round`` as in the Beat."""

    epoch: int
    upto: int
    delivered: int
    round: int = 0


class Beat(StreamMessage, tag=int(Kind.BEAT)):
    """Where the stream stands, so that a lost tail is noticed: the SYNC of a group.

    ``checkpoint`` is the number of the advertised one: enough servers have that state, of this size and CRC-32.
    ``began`` and ``nearly`` as in an Order. ``round`` is given back in the Held that answers, so that the leader knows
    that it still leads. ``views`` are those of a group's log that may have lost something: who has followed an older
    view finds out whether its own entries are in that log. Every member has delivered what is up to ``seen``; there may
    be more to ``discard``, for who lags too far is not waited for.
    """

    epoch: int
    last: int
    stable: int
    checkpoint: int
    discard: int = 0
    began: int = 0
    nearly: int = 0
    round: int = 0
    views: Views = ()
    checkpoint_size: int = 0
    checkpoint_crc: int = 0
    seen: int = 0


class CheckpointHeld(StreamMessage, tag=int(Kind.CHECKPOINT_HELD)):
    """The server has these checkpoints, newer than the advertised one: number, size, CRC-32."""

    epoch: int
    checkpoints: tuple[tuple[int, int, int], ...]


class Promised(StreamMessage, tag=int(Kind.PROMISED)):
    """I refuse everything below ``epoch`` from now on, and this is my log.

    In the domain stream ``state_id`` is the disk behind the word, and ``voters`` are the (name, state id) that the
    reported log names as holders: a disk that was replaced meanwhile must not count. In a group ``views`` are those of
    the log, as in Beat; in a fast group ``base`` is the number before the first entry that is kept here, ``members``
    are those at the end of the log.
    """

    epoch: int
    accepted: int
    last: int
    stable: int
    checkpoint: int
    state_id: str = ""
    voters: tuple[tuple[str, str], ...] = ()
    base: int = 0
    views: Views = ()
    members: tuple[NodeId, ...] = ()
    tail_may_be_lost: bool = False  # the log was opened in a forced view, and no entry says so yet


class Open(StreamMessage, tag=int(Kind.OPEN)):
    """The log of ``epoch`` is the one of epoch ``accepted`` up to ``last``. Have it, then answer Opened.

    ``view`` says who is to hold a group's stream; the domain's is held by its voters. ``views`` as in Beat.
    """

    epoch: int
    accepted: int
    last: int
    stable: int
    checkpoint: int
    view: View | None = None
    views: Views = ()
    tail_may_be_lost: bool = False  # as in Promised


class Opened(StreamMessage, tag=int(Kind.OPENED)):
    """I have the log of ``epoch`` complete up to ``last`` and accept ``epoch``."""

    epoch: int
    last: int


class RepairAsk(StreamMessage, tag=int(Kind.REPAIR_ASK)):
    """Send me entries ``first`` … ``upto``, or the newest checkpoint if ``first`` is no longer kept.

    A checkpoint comes in blocks: of the one after ``checkpoint_seq`` the asker has ``checkpoint_offset`` bytes.
    """

    first: int
    upto: int
    checkpoint_seq: int = 0
    checkpoint_offset: int = 0


class Repair(StreamMessage, tag=int(Kind.REPAIR)):
    """Entries from ``first`` on, from a log accepted in ``accepted``, stable up to ``stable``.

    With ``checkpoint_seq`` > 0 the asker needs the state after that entry first: this is the block from
    ``checkpoint_offset`` on, of ``checkpoint_bytes`` in all, with checksum ``checkpoint_crc``; entries come with the
    last block. ``began`` as in Order, ``views`` as in Beat; none if the sender does not know all of them. With a
    checkpoint ``kept_from`` is the number of the first entry that the sender still has: who lacks nothing before that
    one has no need of the checkpoint, whatever it once asked for.
    """

    accepted: int
    stable: int
    first: int
    entries: tuple[bytes, ...]
    checkpoint_seq: int = 0
    checkpoint_offset: int = 0
    checkpoint_bytes: int = 0
    checkpoint: bytes = b""
    began: int = 0
    views: Views = ()
    checkpoint_crc: int = 0
    kept_from: int = 0


class BlockAsk(StreamMessage, tag=int(Kind.BLOCK_ASK)):
    """Send me ``size`` bytes from ``offset`` on of the checkpoint after entry ``seq``."""

    seq: int
    offset: int
    size: int


class Block(StreamMessage, tag=int(Kind.BLOCK)):
    """Part of the checkpoint after entry ``seq``, of ``size`` bytes in all with checksum ``crc``.

    From a log accepted in ``accepted`` and stable up to ``stable``. If ``size`` is 0 the checkpoint is not here.
    """

    accepted: int
    stable: int
    seq: int
    size: int
    crc: int
    offset: int
    block: bytes


class SubmitRefused(StreamMessage, tag=int(Kind.SUBMIT_REFUSED)):
    """To incarnation ``to``: there will be no answer to ``first_n``.

    ``reason`` is "gap" (go on after ``last_n``), "too old" (not numbered, and never will be) or "forgotten" (it was
    numbered, but what came out is no longer kept).
    """

    to: int
    first_n: int
    last_n: int
    reason: str


class Refused(StreamMessage, tag=int(Kind.REFUSED)):
    """I have promised ``epoch``; what you sent is of a lower one."""

    epoch: int


class Data(StreamMessage, tag=int(Kind.DATA)):
    """A payload that is too large to travel with its order."""

    origin: str
    incarnation: int
    n: int
    payload: bytes


class DataHeld(StreamMessage, tag=int(Kind.DATA_HELD)):
    """The server has these payloads, which are in no entry yet: (origin, incarnation, number there)."""

    payloads: tuple[tuple[str, int, int], ...]


class DataAsk(StreamMessage, tag=int(Kind.DATA_ASK)):
    """Send me these payloads, as far as you have them."""

    payloads: tuple[tuple[str, int, int], ...]


class Accepted(StreamMessage, tag=int(Kind.ACCEPTED)):
    """To incarnation ``to``, which is no member: what it submitted up to its number ``upto_n`` is stable.

    The stream is stable up to ``seq``: what it submits next says that it knew so much.
    """

    to: int
    upto_n: int
    seq: int


class Seen(StreamMessage, tag=int(Kind.SEEN)):
    """The receiver has delivered everything up to ``upto``, in an epoch up to ``epoch``."""

    epoch: int
    upto: int


class SyncAsk(StreamMessage, tag=int(Kind.SYNC_ASK)):
    """Up to where has the stream been ordered? Confirm it with those who hold it; ``number`` counts my questions."""

    number: int


class Synced(StreamMessage, tag=int(Kind.SYNCED)):
    """To question ``number`` of incarnation ``to``: when it came, ``seq`` was the last, and nobody else led."""

    to: int
    number: int
    epoch: int
    seq: int


class NotLeader(StreamMessage, tag=int(Kind.NOT_LEADER)):
    """What you sent is for the leader: ``leader`` in ``epoch`` as far as I know; if that is "", look it up again."""

    epoch: int
    leader: str


# --- Questions to the name server -------------------------------------------------------------------


class Ask(PeerMessage, tag=int(Kind.ASK)):
    """A read of the directory. ``what`` is "group", "find", "groups", "config" or "hand-over"."""

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


# --- Node groups ------------------------------------------------------------------------------------


class Grant(StreamMessage, tag=int(Kind.GRANT)):
    """You are to lead this group in ``view``: recover its stream from the servers of ``base``, ask for activation."""

    name: str
    attributes: dict[str, AttributeValue]
    view: View
    base: View


class GroupIs(StreamMessage, tag=int(Kind.GROUP_IS)):
    """What the directory says of a group that you lead or serve by an old view; None if it has ended."""

    active: View | None


class Insert(StreamMessage, tag=int(Kind.INSERT)):
    """I want to carry this group, from my ``term`` on: how often I have set out to carry any.

    ``last_n`` is the number up to which I know what became of my submissions to it. ``since``: I want everything after
    this entry, or, with -2, after the advertised checkpoint; -1: from now on.
    """

    term: int
    last_n: int
    since: int = -1


class Inserted(StreamMessage, tag=int(Kind.INSERTED)):
    """Incarnation ``to`` is a member, for its ``term``. ``state`` is the roll after entry ``seq``; go on from there.

    ``begins``: what came after that entry is kept for the new member; -1 if it did not ask for anything earlier.
    """

    to: int
    term: int
    epoch: int
    seq: int
    state: bytes
    begins: int = -1


class InsertRefused(StreamMessage, tag=int(Kind.INSERT_REFUSED)):
    """To incarnation ``to``: you cannot begin, in your ``term``, with the entry you asked for."""

    to: int
    term: int
    reason: str


class Leave(StreamMessage, tag=int(Kind.LEAVE)):
    """Nobody on my node needs this group any more, if I was inserted with this ``term`` or an earlier one."""

    term: int


class Left(StreamMessage, tag=int(Kind.LEFT)):
    """Incarnation ``to`` is no member of this group: the answer to its Leave with this ``term``."""

    to: int
    term: int


class Complaint(PeerMessage, tag=int(Kind.COMPLAINT)):
    """I serve this group and do not hear the leader of ``epoch``; or I am to serve in that view and am ``unable``."""

    group: int
    epoch: int
    unable: bool = False


class Orphan(PeerMessage, tag=int(Kind.ORPHAN)):
    """All servers of the group that I know are down. I followed it in ``epoch`` and delivered up to ``delivered``."""

    group: int
    epoch: int
    delivered: int


class ForChair(StreamMessage):
    """What only who leads a process group can make use of."""


class Votes(ForChair, tag=int(Kind.VOTES)):
    """All that the providers of my node have voted so far in this phase of a ballot.

    ``silent``: those who have not, and do not answer, each with the number of the entry that announced it.
    """

    ballot: int
    phase: int
    papers: tuple[Paper, ...]
    silent: tuple[Silent, ...] = ()


class Waits(ForChair, tag=int(Kind.WAITS)):
    """Providers of my node that wait at barriers: those that have just come, or all of them."""

    waiters: tuple[Waiter, ...]


AnyPeerMessage = (
    LeaderAlive | Alive | AliveAck | Register | Unwelcome | NodeListAsk | NodeList | Suspect | Goodbye
    | Canvass | Support | Claim | Yield
    | Submit | Relay | Order | Held | Beat | Promised | Open | Opened | RepairAsk | Repair
    | SubmitRefused | Refused | Accepted | Seen | SyncAsk | Synced | NotLeader | Data | DataHeld | DataAsk
    | CheckpointHeld | BlockAsk | Block
    | Ask | Tell | Answered
    | Grant | GroupIs | Insert | Inserted | InsertRefused | Leave | Left | Complaint | Orphan
    | Votes | Waits
    | Survey | Findings
)  # fmt: skip

PEER_CODEC: Codec[AnyPeerMessage] = Codec(AnyPeerMessage)
