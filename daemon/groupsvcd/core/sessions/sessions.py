"""All sessions of a node: which connection is which session's, and what all of them are told.

A program says on a new connection whether it wants a new session or to go on with one. A session that is gone (closed,
its process ended, its grace over, its daemon another one by now) is never resumed in part: the answer is *lost*,
whatever the reason, also to who has the wrong secret. A connection without a session is served as before.

What a node says of its groups is true as long as its lease lasts. So every session is told when the node has none, and
when it has one again; and if the others declared it down meanwhile, that everything is lost.
"""

from __future__ import annotations

from random import Random

from groupsvc.wire.client_messages import (
    NOT_COUNTED,
    AnyClientReply,
    AnyClientRequest,
    BarrierAsk,
    BreakAsk,
    CastVote,
    CatchUpAsk,
    ChangeAttributesAsk,
    ChangeStateAsk,
    CloseSession,
    Done,
    ExpelAsk,
    GoodbyeAsk,
    GroupsAsk,
    JoinAsk,
    LeaveAsk,
    Multicast,
    OpenSession,
    OutcomeAsk,
    Overrun,
    Problem,
    ResumeSession,
    RoundAsk,
    SealCheckpoint,
    SendAsk,
    SessionNews,
    StoreBlock,
    SubmitOutside,
    SubscribeAsk,
    WhyAsk,
)
from groupsvc.wire.limits import SESSIONS_MAX

from ..access import UNKNOWN, Access, Principal
from ..audit import Audit
from ..domain.member import Member
from ..domain.requests import Requests
from ..domain.trouble import Trouble
from ..groups import commands as cmd
from ..groups.process_groups import ProcessGroups
from ..nodegroups.node_groups import NodeGroups
from ..statistics import SessionStatistics
from ..turn import Turn
from . import barriers, inquiries, proposals
from .alarms import Alarms
from .checks import problem_with
from .desk import Desk
from .group_names import NAME as GROUPS
from .group_names import GroupNames
from .hosts import NAME as HOSTS
from .hosts import Hosts
from .membership import Membership
from .outside import Outside
from .proposals import provider_of
from .quota import Quota
from .rights import missing_right
from .session import Handler, Session
from .subscription import Subscription

SECRET_BYTES = 16
"""Of what resumes a session: nobody guesses it."""

LOST = (
    "there is no such session any more: it was closed, its grace has ended, or its daemon was restarted; open a new one"
)


class Sessions:
    """The sessions of one node."""

    def __init__(
        self, turn: Turn, member: Member, requests: Requests, node_groups: NodeGroups, processes: ProcessGroups,
        rng: Random, trouble: Trouble,
    ) -> None:  # fmt: skip
        self.desk = Desk(
            turn, member, requests, node_groups, processes, rng, Alarms(turn), trouble, lambda client, request: None
        )
        self.desk.audit = Audit(lambda: turn.now, lambda op, args: turn.journal(op, **args))
        self.desk.quota = Quota(
            turn, lambda: self._by_number.values(), lambda: (*requests.forming, *processes.formed_for())
        )
        self.desk.outside = Outside(self.desk)
        self.desk.hosts = Hosts(self.desk)
        self.desk.group_names = GroupNames(self.desk)
        self._by_number: dict[int, Session] = {}
        self._by_connection: dict[int, Session] = {}  # also the last one of a session in grace
        self._principals: dict[int, Principal] = {}  # by connection
        self.newcomers: dict[int, str] = {}  # connections that were let in by a token, which is all that they have
        self._left_behind: set[int] = set()  # connections whose session goes on on another one
        self._last_number = 0
        self._was_isolated = member.isolated
        self._handlers: dict[type, Handler] = {
            JoinAsk: join,
            SubscribeAsk: subscribe,
            GoodbyeAsk: goodbye,
            Overrun: overrun,
            StoreBlock: take_checkpoint,
            SealCheckpoint: take_checkpoint,
            Multicast: multicast,
            LeaveAsk: proposals.leave,
            ChangeStateAsk: proposals.change_state,
            SendAsk: proposals.send,
            ExpelAsk: proposals.expel,
            ChangeAttributesAsk: proposals.change_attributes,
            CastVote: proposals.vote,
            BarrierAsk: barriers.wait,
            BreakAsk: barriers.break_off,
            RoundAsk: barriers.tell_past,
            SubmitOutside: self.desk.outside.submit,
            CatchUpAsk: inquiries.catch_up,
            OutcomeAsk: inquiries.outcome,
            GroupsAsk: inquiries.groups,
            WhyAsk: inquiries.why,
        }
        self._only_in_sessions = (*self._handlers, CloseSession, *NOT_COUNTED)

    # --- Who may what ---

    def came(self, client: int, principal: Principal) -> None:
        """A new connection, and who is at its other end."""
        self._principals[client] = principal
        if principal.token:
            self.newcomers[client] = principal.token

    def may(self, client: int, request: AnyClientRequest) -> bool:
        """Whether who has no session may ask this; if not, that is answered. A session has judged what it hands on."""
        if client < 0 or self.desk.access.is_open:
            return True
        principal, access = self.principal_of(client), self.desk.access
        missing = missing_right(request, lambda verb, group: access.allows(principal, verb, group), lambda member: "")
        if missing is None:
            return True
        text = self.desk.refusal(principal, *missing)
        self._reply(client, Problem(request.id, "failed", "permission denied", text))
        return False

    def has_room_to_form(self, client: int, id: int) -> bool:
        """Whether one more group may be formed here for who asks; if not, that is answered."""
        identity, quota = self.principal_of(client).identity, self.desk.quota
        if quota.forms_one(identity):
            return True
        most = f"{quota.members_max} members, subscriptions and groups that they only formed"
        text = f"all programs of {identity} on this node have at most {most} (limits.members_per_principal_max)"
        self.desk.turn.reply(client, Problem(id, "failed", "full", text))
        return False

    def sees(self, client: int, group: str) -> bool:
        """Whether who asks elsewhere may know that there is such a group."""
        return self.desk.access.sees(self.principal_of(client), group)

    def may_list_keys(self, client: int, id: int) -> bool:
        """Whether who asks elsewhere may say which nodes there are; if not, that is answered."""
        principal = self.principal_of(client)
        if self.desk.access.names_admin(principal):
            return True
        self._reply(client, Problem(id, "failed", "permission denied", self.desk.refusal(principal, "admin")))
        return False

    def principal_of(self, client: int) -> Principal:
        """Who is at the other end; a session's number is below 0."""
        if client < 0:
            session = self._by_number.get(-client)
            return UNKNOWN if session is None else session.principal
        return self._principals.get(client, UNKNOWN)

    def set_access(self, access: Access) -> None:
        """These are the rules from now on; who is somewhere where it may not be any more is taken out."""
        self.desk.access = access
        for session in list(self._by_number.values()):
            for part in list(session.parts.values()):
                if not session.may(part.needs, part.group):
                    part.revoke(self.desk.refusal(session.principal, part.needs, part.group))

    # --- Connections ---

    def take(self, client: int, request: AnyClientRequest) -> bool:
        """A request came over this connection; False if it concerns no session."""
        session = self._by_connection.get(client)
        if isinstance(request, OpenSession):
            self._open(client, request)
        elif isinstance(request, ResumeSession):
            self._resume(client, request)
        elif session is not None:
            session.take(request)
        elif client in self._left_behind:
            self.desk.turn.mark("session-left-behind")  # it was repeated on the connection that its session has now
        elif isinstance(request, self._only_in_sessions):
            self._reply(client, Problem(request.id, "usage", "usage", "this connection has no session; open one first"))
        else:
            return False
        return True

    def _reply(self, client: int, reply: AnyClientReply) -> None:
        self.desk.turn.reply(client, reply)

    def _problem_with_connection(self, client: int) -> str:
        if client in self._by_connection:
            return "this connection has a session already; close it, or use another connection"
        if client in self._left_behind:
            return "the session of this connection goes on on another one; use a new connection"
        return ""

    def _open(self, client: int, ask: OpenSession) -> None:
        found = problem_with(ask)
        problem = self._problem_with_connection(client) or (found[1] if found is not None else "")
        if problem:
            self._reply(client, Problem(ask.id, "usage", "usage", problem))
        elif self.desk.draining:
            self._reply(client, Problem(ask.id, "failed", "draining", self.desk.draining))
        elif len(self._by_number) >= SESSIONS_MAX:
            text = f"this node has {SESSIONS_MAX} sessions and takes no more (SESSIONS_MAX)"
            self._reply(client, Problem(ask.id, "failed", "full", text))
        else:
            self._last_number += 1
            secret = self.desk.rng.randbytes(SECRET_BYTES)
            session = Session(
                self.desk, self._last_number, ask.name, secret, self._handlers,
                self._principals.get(client, UNKNOWN),
            )  # fmt: skip
            session.ended = self._ended
            self._by_number[session.number] = self._by_connection[client] = session
            session.connect(client, ask.id, 0)
            self.desk.turn.audit("session_opened", session=session.number, name=ask.name)

    def _resume(self, client: int, ask: ResumeSession) -> None:
        if problem := self._problem_with_connection(client):
            self._reply(client, Problem(ask.id, "usage", "usage", problem))
            return
        session = self._by_number.get(ask.session)
        principal = self._principals.get(client, UNKNOWN)
        if session is None or session.secret != ask.secret or session.principal.identity != principal.identity:
            self._reply(client, Problem(ask.id, "failed", "lost", LOST))
            return
        if ask.id <= session.opened_by:
            # It was overtaken by a newer one of the same program, which is where the program is.
            self.desk.turn.mark("session-resumed-before")
            text = f"the session was opened or resumed by request {session.opened_by}; {ask.id} is older, or the same"
            self._reply(client, Problem(ask.id, "usage", "usage", text))
            return
        if not session.can_resume(ask.seen):
            # What it says it has counted cannot be: whatever this client believes of its session is not so.
            session.end("failure")
            self._reply(client, Problem(ask.id, "failed", "lost", LOST))
            return
        del self._by_connection[session.last_connection]
        if session.connection:
            self._left_behind.add(session.connection)
        self.desk.turn.mark("session-resumed")
        self.desk.turn.audit("session_resumed", session=session.number)
        self._by_connection[client] = session
        session.connect(client, ask.id, ask.seen)

    def on_gone(self, client: int, *, process_ended: bool) -> None:
        """A connection is lost; perhaps because its process has ended, perhaps that follows."""
        self._left_behind.discard(client)
        self._principals.pop(client, None)
        self.newcomers.pop(client, None)
        session = self._by_connection.get(client)
        if session is None:
            return
        if process_ended:
            session.end("failure")
        elif session.connection == client:
            session.disconnect()

    def _ended(self, session: Session) -> None:
        self._by_number.pop(session.number, None)
        self.desk.turn.audit("session_ended", session=session.number)
        self._by_connection.pop(session.last_connection, None)
        self.desk.requests.on_client_gone(-session.number)

    def reply(self, number: int, reply: AnyClientReply) -> None:
        """An answer to what a session asked elsewhere."""
        session = self._by_number.get(number)
        if session is not None:
            session.tell(reply)

    # --- The node's lease ---

    def look(self) -> None:
        """Within every step: whether the node still, or again, has its lease; whether nodes came or went."""
        member = self.desk.member
        if member.isolated != self._was_isolated:
            self._was_isolated = member.isolated
            if member.isolated:
                news = SessionNews(
                    "suspended", "this node has lost touch with the domain: nothing happens here until it is back"
                )
            else:
                news = SessionNews("resumed", "")
            for session in list(self._by_number.values()):
                session.tell(news)
        if member.list_version != self.desk.hosts.version:
            self.desk.hosts.look()

    def start_again(self, reason: str) -> None:
        """This node was declared down, and so was everything that its sessions had."""
        self.desk.group_names.start_again()
        for session in list(self._by_number.values()):
            session.lose(reason, "failure")

    # --- The end of the daemon ---

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._by_number)

    @property
    def is_quiet(self) -> bool:
        """Whether none waits for an answer, or for its own messages to come back."""
        return not any(
            session.calls or any(isinstance(part, Membership) and not part.is_quiet for part in session.parts.values())
            for session in self._by_number.values()
        )

    def drain(self, reason: str) -> None:
        """This node ends: all are told, and leave."""
        for session in list(self._by_number.values()):
            session.drain(reason)

    # --- Looking at it ---

    def statistics(self) -> SessionStatistics:
        """As of now."""
        sessions = self._by_number.values()
        connected = sum(bool(session.connection) for session in sessions)
        return SessionStatistics(
            connected=connected,
            in_grace=len(sessions) - connected,
            unresponsive=sum(not session.is_responsive for session in sessions),
            memberships=sum(len(session.parts) for session in sessions),
            opened=self._last_number,
        )

    # --- Time ---

    @property
    def deadline(self) -> float:
        """When something is to be done without a request."""
        return self.desk.alarms.deadline

    def tick(self) -> None:
        """Time has passed."""
        self.desk.alarms.tick()


def join(session: Session, ask: JoinAsk) -> None:
    """Become a provider; once per name."""
    if (ask.group, ask.name) in session.names:
        known_as = f"as {ask.name!r}" if ask.name else "without a name"
        text = f"this session joins {ask.group!r} {known_as} already; give the second one another name"
        session.tell(Problem(ask.id, "usage", "usage", text))
    elif session.has_room(ask.id):
        Membership(session, ask).arrive()


def subscribe(session: Session, ask: SubscribeAsk) -> None:
    """Watch a group."""
    if not session.has_room(ask.id):
        return
    if ask.group == HOSTS:
        session.desk.hosts.subscribe(session, ask)
    elif ask.group == GROUPS:
        session.desk.group_names.subscribe(session, ask)
    else:
        Subscription(session, ask).arrive()


def goodbye(session: Session, ask: GoodbyeAsk) -> None:
    """A membership or subscription ends at once."""
    part = session.parts.get(ask.member)
    if part is None:
        text = f"member {ask.member} is none of this session, or no member any more"
        session.tell(Problem(ask.id, "failed", "not a member", text))
        return
    part.end("goodbye")
    session.parts.pop(ask.member, None)
    session.tell(Done(ask.id))


def overrun(session: Session, ask: Overrun) -> None:
    """Its program does not read what a provider is told."""
    part = provider_of(session, ask.id, ask.member)
    if part is not None:
        part.end("overrun")
        session.tell(Done(ask.id))


def take_checkpoint(session: Session, ask: StoreBlock | SealCheckpoint) -> None:
    """The next block of a checkpoint, or that it was the last one."""
    part = provider_of(session, ask.id, ask.member)
    if part is None or part.local is None:
        return
    if part.local.is_full:
        text = f"checkpoint of {part.group!r}: too much waits for room in this group on this node; it is given up"
        session.tell(Problem(ask.id, "failed", "full", text))
        return
    if isinstance(ask, StoreBlock):
        part.local.take_checkpoint(cmd.StoreBlock(part.member, ask.at, ask.index, ask.block))
    else:
        part.local.take_checkpoint(cmd.SealCheckpoint(part.member, ask.at, ask.blocks))
    session.tell(Done(ask.id))


def multicast(session: Session, ask: Multicast) -> None:
    """Ordered messages of a provider."""
    part = provider_of(session, ask.id, ask.member)
    if part is not None:
        part.say(ask.id, ask.payloads)
