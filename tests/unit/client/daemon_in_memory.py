"""A daemon as a session sees it, in memory: it opens, counts, keeps what it told, and resumes.

It knows one node and groups without a stream behind them: whoever joins is in, whoever proposes is right, what is sent
comes back at once. That is all a client can tell from the outside; what a test wants otherwise it puts in ``script``,
which sees every counted request first and may answer it in its own way.
"""

from __future__ import annotations

from collections.abc import Callable

from groupsvc.sansio.session_machine import SessionMachine
from groupsvc.wire import client_messages as wire
from groupsvc.wire import notices

NODE = ("n1", 7)
PROPOSALS = (*NODE, 1000)
"""The proposal of request 1 has the next number."""
SECRET = b"secret"
Script = Callable[[wire.AnyClientRequest], list[wire.AnyClientReply] | None]


class FakeGroup:
    """What happened in a group of one node."""

    def __init__(self) -> None:
        self.seq = 0
        self.fence = 100
        self.providers: dict[int, notices.Provider] = {}
        self.state = b""
        self.version = 0

    @property
    def view(self) -> notices.GroupView:
        """As of now."""
        providers = tuple(self.providers.values())
        return notices.GroupView(self.seq, self.fence, providers, self.state, self.version, "approve")


class DaemonInMemory:
    """One session of one client."""

    def __init__(self, script: Script | None = None, *, good_for: float = 2.0) -> None:
        self.good_for = good_for
        self.script = script
        self.groups: dict[str, FakeGroup] = {}
        self.members: dict[int, str] = {}
        self.requests: list[wire.AnyClientRequest] = []  # counted ones, in order
        self.alive: list[wire.SessionAlive] = []
        self.told: list[wire.AnyClientReply] = []  # counted ones, all of them
        self.forgotten = 0  # how many the client has counted
        self.knows_the_session = False
        self._numbers = 0

    # --- Frames ---

    def handle(self, request: wire.AnyClientRequest) -> list[wire.AnyClientReply]:
        """One request on the present connection, and what is sent for it."""
        match request:
            case wire.Hello():
                return [wire.Welcome(request.id, 1, NODE[0], NODE[1], "00" * 16)]
            case wire.OpenSession():
                self.knows_the_session = True
                return [wire.SessionIs(request.id, 5, SECRET, 0, self.good_for, PROPOSALS)]
            case wire.ResumeSession():
                if not self.knows_the_session or (request.session, request.secret) != (5, SECRET):
                    return [wire.Problem(request.id, "failed", "no such session", "the session is not known here")]
                self.forgotten = request.seen
                again = self.told[request.seen :]
                return [wire.SessionIs(request.id, 5, SECRET, len(self.requests), self.good_for, PROPOSALS), *again]
            case wire.SessionAlive():
                self.alive.append(request)
                self.forgotten = request.seen
                return [wire.SessionAliveAck(request.id, len(self.requests), self.good_for)]
        self.requests.append(request)
        found = None if self.script is None else self.script(request)
        return self.tell(*(self.answers(request) if found is None else found))

    def tell(self, *replies: wire.AnyClientReply) -> list[wire.AnyClientReply]:
        """Count these, and give them to be sent."""
        self.told.extend(replies)
        return list(replies)

    # --- What a group does ---

    def answers(self, request: wire.AnyClientRequest) -> list[wire.AnyClientReply]:
        """As a daemon answers when all is well."""
        match request:
            case wire.JoinAsk():
                return self._joined(request)
            case wire.SubscribeAsk():
                if request.group not in self.groups:
                    return [wire.Problem(request.id, "failed", "no such group", f"no group {request.group!r}")]
                self._numbers += 1
                self.members[self._numbers] = request.group
                return [wire.Subscribed(request.id, self._numbers, {}, self.groups[request.group].view)]
            case wire.Multicast():
                group = self.group_of(request.member)
                first = group.seq + 1
                group.seq += len(request.payloads)
                return [wire.MessagesCame(request.member, first, (*NODE, request.member), request.payloads)]
            case wire.ChangeStateAsk():
                return self._state_changed(request)
            case wire.SendAsk():
                return self._sent(request)
            case wire.LeaveAsk():
                return self._left(request)
            case wire.CatchUpAsk():
                return [wire.CaughtUp(request.id, self.group_of(request.member).seq)]
            case wire.GroupsAsk():
                return [wire.GroupsAre(request.id, ())]
        return [wire.Done(request.id)]

    def group_of(self, member: int) -> FakeGroup:
        """The group of a member."""
        return self.groups[self.members[member]]

    def _joined(self, ask: wire.JoinAsk) -> list[wire.AnyClientReply]:
        group = self.groups.setdefault(ask.group, FakeGroup())
        self._numbers += 1
        number = self._numbers
        self.members[number] = ask.group
        group.seq += 1
        group.fence += 1
        provider = notices.Provider((*NODE, number), ask.name, ask.data, group.seq)
        group.providers[number] = provider
        joined = notices.Joined(group.seq, (provider,), group.fence)
        return [wire.JoinedAs(ask.id, number, provider.id, ask.attributes, group.view), wire.Told(number, joined)]

    def ended(self, member: int, subject: notices.Subject, *, id: int) -> list[wire.AnyClientReply]:
        """A proposal without a vote was approved, with the entry of now."""
        outcome = notices.Outcome(
            ballot=self.group_of(member).seq, subject=subject, approved=True, phases=1, reason="one_phase"
        )
        seq = self.group_of(member).seq
        ended = wire.Told(member, notices.Ended(seq, outcome, "approve"))
        return [ended, wire.OutcomeIs(id, subject.proposals[0], seq, outcome)]

    def _state_changed(self, ask: wire.ChangeStateAsk) -> list[wire.AnyClientReply]:
        group = self.group_of(ask.member)
        if ask.if_version not in (-1, group.version):
            text = f"the version is {group.version}"
            return [wire.Problem(ask.id, "failed", "stale_version", text, version=group.version)]
        group.seq += 1
        group.state, group.version = ask.value, group.version + 1
        subject = notices.Subject(
            kind="state", proposals=((*NODE, 1000 + ask.id),), proposer=(*NODE, ask.member), state=ask.value
        )
        changed = wire.Told(ask.member, notices.StateChanged(group.seq, ask.value, group.version), more=True)
        return [changed, *self.ended(ask.member, subject, id=ask.id)]

    def _sent(self, ask: wire.SendAsk) -> list[wire.AnyClientReply]:
        group = self.group_of(ask.member)
        group.seq += 1
        me = (*NODE, ask.member)
        subject = notices.Subject(kind="message", proposals=((*NODE, 1000 + ask.id),), proposer=me, payload=ask.payload)
        message = wire.Told(ask.member, notices.Message(group.seq, me, ask.payload), more=True)
        return [message, *self.ended(ask.member, subject, id=ask.id)]

    def _left(self, ask: wire.LeaveAsk) -> list[wire.AnyClientReply]:
        group = self.group_of(ask.member)
        group.seq += 1
        group.fence += 1
        group.providers.pop(ask.member)
        me = (*NODE, ask.member)
        subject = notices.Subject(kind="leave", proposals=((*NODE, 1000 + ask.id),), proposer=me, leaving=(me,))
        left = notices.Left(group.seq, (me,), "leave", group.fence, ask.code)
        outcome = self.ended(ask.member, subject, id=ask.id)[1:]  # nothing is told to it after that
        return [wire.Told(ask.member, left), *outcome]

    def opened(self, member: int, *, phase: int = 1, ballot: int = 0, kind: notices.Kind = "state") -> wire.Told:
        """A phase that all are asked to vote in."""
        group = self.group_of(member)
        group.seq += 1
        subject = notices.Subject(kind=kind, proposals=((*NODE, 2000),), proposer=(*NODE, member), state=b"new")
        electorate = tuple(one.id for one in group.providers.values())
        notice = notices.PhaseOpened(
            group.seq, ballot=ballot or group.seq, phase=phase, subject=subject, electorate=electorate,
            time_limit=30.0, messages=(),
        )  # fmt: skip
        return wire.Told(member, notice)

    def closed(self, member: int, *, ballot: int, phase: int) -> wire.Told:
        """The phase is over, and another one comes."""
        group = self.group_of(member)
        group.seq += 1
        votes = tuple(notices.Cast(one.id, "continue") for one in group.providers.values())
        notice = notices.PhaseClosed(group.seq, ballot=ballot, phase=phase, votes=votes, default_vote="reject")
        return wire.Told(member, notice)


class Line:
    """A connection between a machine and the daemon, in memory; what is on its way can be lost."""

    def __init__(self, machine: SessionMachine, daemon: DaemonInMemory, *, now: float = 0.0) -> None:

        self.machine = machine
        self.daemon = daemon
        self.now = now

    def connect(self) -> None:
        """A new connection, until nobody has more to say."""
        self.machine.connected(self.now)
        self.run()

    def run(self, *, up: int | None = None, down: int | None = None) -> None:
        """Carry what is said, until all is quiet; or only so many each way, and then the connection breaks."""
        while self.machine.outbox:
            requests, self.machine.outbox[:] = list(self.machine.outbox), []
            replies: list[wire.AnyClientReply] = []
            for request in requests[: up if up is not None else len(requests)]:
                replies.extend(self.daemon.handle(request))
            self.machine.received(replies[: down if down is not None else len(replies)], self.now)
            if up is not None or down is not None:
                self.machine.disconnected(self.now)
                return

    def tell(self, *replies: wire.AnyClientReply) -> None:
        """The daemon says this unasked."""
        self.machine.received(self.daemon.tell(*replies), self.now)
        self.run()

    def at(self, now: float) -> None:
        """Time has passed."""
        self.now = now
        self.machine.tick(now)
        self.run()
