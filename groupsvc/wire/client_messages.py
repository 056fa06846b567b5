"""Every message between an application and the daemon of its node, one frozen class each.

Requests carry an ``id`` chosen by the client; every request gets exactly one reply with that id within its
``timeout``. Hello comes first on a connection and settles the version.

What an application does in groups it does within a *session*, which outlives a connection. On both sides what is said
in a session is counted, in order: the first request of the session is number 1, the first thing it is told is number 1,
whatever connection they go through. Each side keeps what it said until the other has counted it (``SessionAlive``,
``SessionAliveAck``). When a connection breaks, the client resumes the session on another one; each says how far it has
counted, and the other repeats what came after. So nothing is lost, and nothing done twice. What opens, resumes and
keeps a session (marked *not counted*) is no part of that.

``member`` names one membership or subscription of the session: a number that the daemon chose, never used again.
"""

from __future__ import annotations

from typing import Any, Literal

from .barrier_messages import BarrierAsk as BarrierAsk
from .barrier_messages import BreakAsk as BreakAsk
from .barrier_messages import RoundAsk as RoundAsk
from .barrier_messages import RoundIs as RoundIs
from .barrier_messages import RoundPart as RoundPart
from .client_forms import ClientMessage as ClientMessage
from .client_forms import ClientReply as ClientReply
from .client_forms import ClientRequest as ClientRequest
from .codec import Codec
from .enrolment_messages import EnrolAsk, Enrolled, NodeKeysAre, NodeKeysAsk, RevokeAsk, Revoked, TokenAsk, TokenIs
from .kinds import Kind
from .notices import AnyNotice, AttributeValue, DefaultVote, GroupView, Outcome, ProposalId, ProviderId, Vote
from .option_messages import OptionsAre as OptionsAre
from .option_messages import OptionsAsk as OptionsAsk
from .survey_messages import SurveyAsk as SurveyAsk
from .survey_messages import SurveyIs as SurveyIs
from .table_lines import GroupLine, NodeStatus

CLIENT_PROTOCOL_VERSION = 1

SINCE_NOW = -1
"""Of a join: nothing that came before."""

SINCE_CHECKPOINT = -2
"""The newest checkpoint, if there are machines, and all messages since."""


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


class StatisticsAsk(ClientRequest, tag=int(Kind.STATISTICS_ASK)):
    """What has this daemon counted? Answered at once, from its own memory."""

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


class DrainAsk(ClientRequest, tag=int(Kind.DRAIN_ASK)):
    """Hand over what this node leads, tell its programs, and end, within so many seconds. ``DrainIs``, a moment later.

    Asked again it tells how far that is. A shorter time than was given before counts from now.
    """

    id: int
    timeout: float


# --- Requests within a session -------------------------------------------------------------------------


class OpenSession(ClientRequest, tag=int(Kind.OPEN_SESSION)):
    """A new session on this connection, which has none yet; ``name`` is for people. Not counted."""

    id: int
    name: str


class ResumeSession(ClientRequest, tag=int(Kind.RESUME_SESSION)):
    """Go on with a session on this connection. ``seen``: how much of what it was told has been counted. Not counted."""

    id: int
    session: int
    secret: bytes
    seen: int


class CloseSession(ClientRequest, tag=int(Kind.CLOSE_SESSION)):
    """The session ends: whatever it still takes part in, it says goodbye to."""

    id: int


class SessionAlive(ClientRequest, tag=int(Kind.SESSION_ALIVE)):
    """The session is used, and its program runs. Not counted; answered by ``SessionAliveAck``.

    ``is_responsive`` is false while the code that answers proposals has been busy for too long.
    """

    id: int
    seen: int
    is_responsive: bool


class JoinAsk(ClientRequest, tag=int(Kind.JOIN_ASK)):
    """Become a provider of ``group``. ``JoinedAs``, or ``OutcomeIs`` if it was rejected.

    ``create``: None whether the group exists or not, true only if it does not, false only if it does. ``attributes``:
    those that must be so; the group is formed with them. After ``timeout`` the join is withdrawn.

    ``has_machine``: it brings a state machine, as all providers of the group do or none. ``since``: which messages it
    is told between ``JoinedAs`` and its own ``Joined``: those after this entry, ``SINCE_NOW`` or ``SINCE_CHECKPOINT``.
    ``since_in``: the ``numbering`` of that entry; if it is another one by now, the join fails. Zeros: not known.
    """

    id: int
    group: str
    name: str
    data: bytes
    attributes: dict[str, AttributeValue]
    create: bool | None
    timeout: float
    has_machine: bool = False
    since: int = SINCE_NOW
    since_in: tuple[int, int] = (0, 0)


class SubscribeAsk(ClientRequest, tag=int(Kind.SUBSCRIBE_ASK)):
    """Watch ``group``; if there is none, wait so many seconds for it to appear. ``Subscribed``."""

    id: int
    group: str
    wait: float
    timeout: float


class LeaveAsk(ClientRequest, tag=int(Kind.LEAVE_ASK)):
    """A provider proposes that it leaves. ``OutcomeIs``."""

    id: int
    member: int
    code: int
    timeout: float


class GoodbyeAsk(ClientRequest, tag=int(Kind.GOODBYE_ASK)):
    """The membership or subscription ends at once, without a vote. ``Done``; nothing is told to it after that."""

    id: int
    member: int


class ProposalAsk(ClientRequest):
    """What all proposals have in common; -1 leaves phases or time limit to the group. ``OutcomeIs``.

    ``phases``: 1 none at all, 0 as many as the votes ask for, else so many. After ``timeout`` it is withdrawn if it has
    not had its turn; if it has, what became of it is not known.
    """

    id: int
    member: int
    phases: int
    time_limit: float
    fail_if_busy: bool
    timeout: float


class ChangeStateAsk(ProposalAsk, tag=int(Kind.CHANGE_STATE_ASK)):
    """A new state value; ``if_version`` -1: whatever there is."""

    value: bytes
    if_version: int


class SendAsk(ProposalAsk, tag=int(Kind.SEND_ASK)):
    """A message to all providers, by ballot."""

    payload: bytes


class ExpelAsk(ProposalAsk, tag=int(Kind.EXPEL_ASK)):
    """These providers are to be removed."""

    targets: tuple[ProviderId, ...]
    reason: str


class ChangeAttributesAsk(ProposalAsk, tag=int(Kind.CHANGE_ATTRIBUTES_ASK)):
    """These attributes of the group are to change."""

    changes: dict[str, AttributeValue]


class CastVote(ClientRequest, tag=int(Kind.CAST_VOTE)):
    """A provider votes, once in a phase; no vote: the code that was asked for it has failed.

    ``Done``, with whatever the session is told next: nobody waits for it.
    """

    id: int
    member: int
    ballot: int
    phase: int
    vote: Vote | None
    state: bytes | None = None
    message: bytes | None = None
    default_vote: DefaultVote | None = None


class Multicast(ClientRequest, tag=int(Kind.MULTICAST)):
    """Ordered messages of a provider. Its own come back to it as everybody's do: that is the answer, if all is well.

    At most ``OUTSTANDING_MAX`` may be on their way; the client counts those that come back.
    """

    id: int
    member: int
    payloads: tuple[bytes, ...]


class SubmitOutside(ClientRequest, tag=int(Kind.SUBMIT_OUTSIDE)):
    """Ordered messages of somebody who is no member of ``group``. ``Done`` when all are stable."""

    id: int
    group: str
    payloads: tuple[bytes, ...]
    timeout: float


class CatchUpAsk(ClientRequest, tag=int(Kind.CATCH_UP_ASK)):
    """``CaughtUp`` when everything that was ordered before this has been told here."""

    id: int
    member: int
    timeout: float


class OutcomeAsk(ClientRequest, tag=int(Kind.OUTCOME_ASK)):
    """How did this proposal end? ``OutcomeIs``; a problem ``not known`` if it is too long ago, or has not ended."""

    id: int
    member: int
    proposal: ProposalId


class GroupsAsk(ClientRequest, tag=int(Kind.GROUPS_ASK)):
    """Which groups are there? ``GroupsAre``, as of now."""

    id: int
    timeout: float


class WhyAsk(ClientRequest, tag=int(Kind.WHY_ASK)):
    """How did the newest proposals of ``group`` end, and why? ``OutcomesAre``; the asker need not be a member."""

    id: int
    group: str
    timeout: float


class Overrun(ClientRequest, tag=int(Kind.OVERRUN)):
    """The program does not read what this provider is told, and nothing more can be kept: it leaves. ``Done``."""

    id: int
    member: int


class StoreBlock(ClientRequest, tag=int(Kind.STORE_BLOCK)):
    """The next block of a checkpoint of a provider's machine, which stands after entry ``at``. ``Done``."""

    id: int
    member: int
    at: int
    index: int
    block: bytes


class SealCheckpoint(ClientRequest, tag=int(Kind.SEAL_CHECKPOINT)):
    """All blocks of the checkpoint were submitted, and they are so many. ``Done``."""

    id: int
    member: int
    at: int
    blocks: int


# --- Replies ----------------------------------------------------------------------------------------


class Welcome(ClientReply, tag=int(Kind.WELCOME)):
    """The version both will speak, and who answers."""

    id: int
    version: int
    node: str
    incarnation: int
    domain: str


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


class Statistics(ClientReply, tag=int(Kind.STATISTICS)):
    """The parts of the daemon by name, each an object of numbers, texts and further objects; for people."""

    id: int
    parts: dict[str, Any]


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
    """It did not (``failed``), may have (``unknown``), or was asked wrongly (``usage``).

    ``proposal``: what to ask about later (``OutcomeAsk``), if it is not known how a proposal ended. ``version``: the
    one that there is, if another was expected.
    """

    id: int
    family: Literal["failed", "unknown", "usage"]
    code: str
    text: str
    proposal: ProposalId | None = None
    version: int | None = None


class DrainIs(ClientReply, tag=int(Kind.DRAIN_IS)):
    """How far the node is with its own end; with one of the last two stages this is its last word.

    ``left``: what there is still to do, in words; of ``gave up`` what was left undone. ``time_left`` in seconds.
    """

    id: int
    node: str
    stage: Literal["finishing", "leaving", "drained", "gave up"]
    sessions: int
    groups: int
    time_left: float
    left: tuple[str, ...]


# --- What a session is told ------------------------------------------------------------------------------


class SessionIs(ClientReply, tag=int(Kind.SESSION_IS)):
    """The session of this connection from now on. Not counted.

    ``secret`` is what resumes it. ``taken``: how many of its requests were counted; those after it are to be repeated.
    ``good_for``: for so many seconds from when it was asked for, what the session knows of its memberships is true.
    ``proposals``: the id of a proposal is this with the number of its request added, so it is known before the answer.
    """

    id: int
    session: int
    secret: bytes
    taken: int
    good_for: float
    proposals: ProposalId


class SessionAliveAck(ClientReply, tag=int(Kind.SESSION_ALIVE_ACK)):
    """The answer to ``SessionAlive``; 0 seconds while the node itself is suspended. Not counted."""

    id: int
    taken: int
    good_for: float


class JoinedAs(ClientReply, tag=int(Kind.JOINED_AS)):
    """The join was approved. ``view`` is the group with the new provider in it; its ``Joined`` is told next.

    ``numbering``: as long as it is the same, a number stands for the same entry. It is the id of the group, since the
    next one of its name counts anew; and the epoch of its newest view that may have lost what was delivered.
    """

    id: int
    member: int
    provider: ProviderId
    attributes: dict[str, AttributeValue]
    view: GroupView
    numbering: tuple[int, int] = (0, 0)


class Subscribed(ClientReply, tag=int(Kind.SUBSCRIBED)):
    """From here on what is approved is told. ``numbering``: as in ``JoinedAs``; zeros if nobody can join it."""

    id: int
    member: int
    attributes: dict[str, AttributeValue]
    view: GroupView
    numbering: tuple[int, int] = (0, 0)


class OutcomeIs(ClientReply, tag=int(Kind.OUTCOME_IS)):
    """How the proposal ended, with entry ``seq``."""

    id: int
    proposal: ProposalId
    seq: int
    outcome: Outcome


class Told(ClientReply, tag=int(Kind.TOLD)):
    """The next thing that happened in a group. ``more``: what comes next to this member is of the same entry."""

    member: int
    notice: AnyNotice
    more: bool = False


class MessagesCame(ClientReply, tag=int(Kind.MESSAGES_CAME)):
    """The same as so many ``Message`` notices in a row, of one sender: entries from ``seq`` on."""

    member: int
    seq: int
    sender: ProviderId
    payloads: tuple[bytes, ...]


class MemberLost(ClientReply, tag=int(Kind.MEMBER_LOST)):
    """Nothing more is told to this member. ``dissolved``: the group has ended; else the node has lost it."""

    member: int
    dissolved: bool
    reason: str


class NoticesMissed(ClientReply, tag=int(Kind.NOTICES_MISSED)):
    """A subscription was told too much at once: so many notices were left out; this is the group after them."""

    member: int
    missed: int
    view: GroupView


class CheckpointBlock(ClientReply, tag=int(Kind.CHECKPOINT_BLOCK)):
    """The next block of the checkpoint that a new provider's machine begins with."""

    member: int
    index: int
    block: bytes


class CheckpointTold(ClientReply, tag=int(Kind.CHECKPOINT_TOLD)):
    """That was the last of so many: the machine becomes what they stand for, the state after entry ``at``."""

    member: int
    at: int
    blocks: int


class SnapshotWanted(ClientReply, tag=int(Kind.SNAPSHOT_WANTED)):
    """A checkpoint of this provider's machine is wanted, after entry ``seq`` and nothing else."""

    member: int
    seq: int


class SessionNews(ClientReply, tag=int(Kind.SESSION_NEWS)):
    """The node has no lease, has one again, or everything that the session had is lost."""

    state: Literal["suspended", "resumed", "lost"]
    reason: str


class CaughtUp(ClientReply, tag=int(Kind.CAUGHT_UP)):
    """Everything up to entry ``seq`` has been told."""

    id: int
    seq: int


class GroupsAre(ClientReply, tag=int(Kind.GROUPS_ARE)):
    """All groups of the domain."""

    id: int
    groups: tuple[GroupLine, ...]


class OutcomesAre(ClientReply, tag=int(Kind.OUTCOMES_ARE)):
    """The newest outcomes that are kept, the oldest first, each with its entry, and the group as it is."""

    id: int
    outcomes: tuple[tuple[int, Outcome], ...]
    view: GroupView


AnyClientRequest = (
    Hello | StatusAsk | StatisticsAsk | LookUpAsk | ConfigAsk | ConfigSet | HandOverAsk | DrainAsk | OptionsAsk
    | SurveyAsk | OpenSession | ResumeSession | CloseSession | SessionAlive
    | JoinAsk | SubscribeAsk | LeaveAsk | GoodbyeAsk | ChangeStateAsk | SendAsk | ExpelAsk | ChangeAttributesAsk
    | CastVote | Multicast | SubmitOutside | CatchUpAsk | OutcomeAsk | GroupsAsk | WhyAsk | Overrun
    | StoreBlock | SealCheckpoint | BarrierAsk | BreakAsk | RoundAsk | TokenAsk | EnrolAsk | RevokeAsk | NodeKeysAsk
)  # fmt: skip
AnyAnswer = (
    Welcome | Status | Statistics | GroupRecord | ConfigValue | Done | Problem | DrainIs | SurveyIs
    | SessionIs | SessionAliveAck | JoinedAs | Subscribed | OutcomeIs | CaughtUp | GroupsAre | OutcomesAre
    | RoundIs | RoundPart | OptionsAre | TokenIs | Enrolled | Revoked | NodeKeysAre
)  # fmt: skip
AnyTelling = (
    Told | MessagesCame | MemberLost | NoticesMissed | SessionNews | CheckpointBlock | CheckpointTold | SnapshotWanted
)  # fmt: skip
"""What comes unasked, and so has no id."""
AnyClientReply = AnyAnswer | AnyTelling

NOT_COUNTED = (Hello, OpenSession, ResumeSession, SessionAlive, Welcome, SessionIs, SessionAliveAck)
"""What is no part of what is said in a session: see above."""

REQUEST_CODEC: Codec[AnyClientRequest] = Codec(AnyClientRequest)
REPLY_CODEC: Codec[AnyClientReply] = Codec(AnyClientReply)
