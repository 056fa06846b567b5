"""Applications on real engines: each has a session, counts what it is told, and says what it was not told to have said.

    domain = Applications()
    a, b = domain.opened("D"), domain.opened("E")
    one, two = a.join("db", state_phases="n"), b.join("db")
    number = a.ask(ChangeStateAsk, a.member, -1, -1, False, 5.0, b"red", -1)
    a.vote("approve"), b.vote("approve")
    domain.run(0.1)
    assert isinstance(a.answer(number), OutcomeIs)

Everything goes through the codec, as on the wire. While it runs, an application says that it is alive as the library
does.
What is on its way when its connection breaks is lost, in both directions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from groupsvc.wire.client_messages import (
    NOT_COUNTED,
    REPLY_CODEC,
    REQUEST_CODEC,
    SINCE_CHECKPOINT,
    SINCE_NOW,
    AnyClientReply,
    CastVote,
    ChangeStateAsk,
    ClientReply,
    ClientRequest,
    JoinAsk,
    JoinedAs,
    MessagesCame,
    Multicast,
    OpenSession,
    Problem,
    ResumeSession,
    SessionAlive,
    SessionAliveAck,
    SessionIs,
    SubscribeAsk,
    Subscribed,
    Told,
)
from groupsvc.wire.limits import COUNT_EVERY_ITEMS, SESSION_ALIVE_S
from groupsvc.wire.notices import Notice, PhaseOpened
from groupsvcd.core.effects import Effect, ReplyToClient
from groupsvcd.core.events import ClientFrame, ClientGone
from groupsvcd.core.views import AttributeValue
from tests.unit.core.nodegroups.carriers import Carriers

N = TypeVar("N", bound=Notice)
R = TypeVar("R", bound=ClientReply)


class Application:
    """One process on one node, with one session."""

    def __init__(self, domain: Applications, node: str) -> None:
        self.domain, self.node = domain, node
        self.connection = 0
        self.is_hearing = True  # what is sent to it arrives
        self.is_running = True  # it says that it is alive
        self.is_responsive = True
        self.session: SessionIs | None = None
        self.member = 0  # the newest
        self.told: list[AnyClientReply] = []  # what was counted, in order
        self.not_counted: list[AnyClientReply] = []
        self.said: list[ClientRequest] = []  # what is counted at the other side
        self.count_every = COUNT_EVERY_ITEMS
        self._said_counted = 0
        self._ids = itertools.count(1)

    # --- Connections ---

    def connect(self) -> None:
        """A new connection, without a session."""
        self.connection = self.domain.new_connection(self)
        self.is_hearing = True

    def open(self) -> None:
        """A new session."""
        self.connect()
        self.say(OpenSession(next(self._ids), "test"))
        assert self.session is not None

    def hang_up(self) -> None:
        """Its connection breaks, and the daemon notices."""
        old, self.connection = self.connection, 0
        self.is_hearing = False
        self.domain.step(self.node, ClientGone(old, process_ended=False))

    def end(self, *connections: int) -> None:
        """The process ends; the daemon notices by the connection it has or had."""
        which = connections or (self.connection,)
        self.is_running, self.connection = False, 0
        for connection in which:
            self.domain.step(self.node, ClientGone(connection, process_ended=True))

    def resume(self, *, secret: bytes | None = None, seen: int | None = None) -> None:
        """Go on with the session on a new connection, as the library does."""
        assert self.session is not None
        before = self.session
        self.session = None
        self.connect()
        has = len(self.told) if seen is None else seen
        self.say(ResumeSession(next(self._ids), before.session, before.secret if secret is None else secret, has))
        if self.session is not None:
            for request in self.said[self.session.taken :]:
                self._send(request)

    # --- Saying ---

    def _send(self, request: ClientRequest) -> None:
        if self.connection:
            (decoded,) = REQUEST_CODEC.decode(REQUEST_CODEC.encode([request]))  # type: ignore[list-item]
            self.domain.step(self.node, ClientFrame(self.connection, decoded))

    def say(self, request: ClientRequest) -> int:
        """A request; its number."""
        if not isinstance(request, NOT_COUNTED):
            self.said.append(request)
        self._send(request)
        return request.id  # type: ignore[attr-defined, no-any-return]

    def ask(self, kind: type[ClientRequest], *arguments: Any, **named: Any) -> int:
        """A request of this kind, with the next number."""
        return self.say(kind(next(self._ids), *arguments, **named))

    def alive(self) -> None:
        """How far it has counted."""
        if self.connection and self.session is not None:
            self._said_counted = len(self.told)
            self.ask(SessionAlive, len(self.told), self.is_responsive)

    def join(
        self, group: str = "db", *, name: str = "", data: bytes = b"", create: bool | None = None, timeout: float = 5.0,
        wait: float = 0.3, has_machine: bool = False, since: int | None = None, since_in: tuple[int, int] = (0, 0),
        **attributes: AttributeValue,
    ) -> int:  # fmt: skip
        """Become a provider; ``wait`` for what comes of it. The number of the request."""
        begins = since if since is not None else SINCE_CHECKPOINT if has_machine else SINCE_NOW
        number = self.ask(JoinAsk, group, name, data, attributes, create, timeout, has_machine, begins, since_in)
        self.domain.run(wait)
        return number

    def subscribe(self, group: str = "db", *, wait_for: float = 0.0, timeout: float = 5.0, wait: float = 0.3) -> int:
        """Watch a group."""
        number = self.ask(SubscribeAsk, group, wait_for, timeout)
        self.domain.run(wait)
        return number

    def propose_state(self, value: bytes, *, timeout: float = 5.0, if_version: int = -1, busy: bool = False) -> int:
        """Wants the state to be this."""
        return self.ask(ChangeStateAsk, self.member, -1, -1.0, busy, timeout, value, if_version)

    def vote(self, vote: str) -> int:
        """Answers what its newest member was asked last."""
        opened = self.notices(PhaseOpened)[-1]
        return self.ask(CastVote, self.member, opened.ballot, opened.phase, vote)

    def multicast(self, *payloads: bytes) -> int:
        """Plain messages of its newest member."""
        return self.ask(Multicast, self.member, payloads)

    # --- Hearing ---

    def hear(self, reply: AnyClientReply) -> None:
        """The next reply over the connection it has now."""
        (decoded,) = REPLY_CODEC.decode(REPLY_CODEC.encode([reply]))
        if isinstance(decoded, SessionIs):
            self.session = decoded
        is_of_uncounted = isinstance(decoded, Problem) and all(decoded.id != one.id for one in self.said)  # type: ignore[attr-defined]
        if isinstance(decoded, NOT_COUNTED) or is_of_uncounted:
            self.not_counted.append(decoded)
        else:
            self.told.append(decoded)
            if isinstance(decoded, JoinedAs | Subscribed):
                self.member = decoded.member
            if self.is_running and len(self.told) == self._said_counted + self.count_every:
                self.domain.soon(self.alive)

    def answers(self, number: int) -> list[AnyClientReply]:
        """All replies to this request: one at most."""
        return [one for one in (*self.told, *self.not_counted) if getattr(one, "id", None) == number]

    def answer(self, number: int) -> AnyClientReply:
        """The reply to this request."""
        (only,) = self.answers(number)
        return only

    def problem(self, number: int) -> tuple[str, str]:
        """Family and code of what went wrong with this request."""
        found = self.answer(number)
        assert isinstance(found, Problem), found
        assert found.text
        return found.family, found.code

    def kinds(self, kind: type[R]) -> list[R]:
        """What it was told of one kind."""
        return [one for one in self.told if isinstance(one, kind)]

    def notices(self, kind: type[N], member: int = 0) -> list[N]:
        """Notices of one kind to one of its members, the newest if none is named."""
        which = member or self.member
        return [one.notice for one in self.kinds(Told) if one.member == which and isinstance(one.notice, kind)]

    @property
    def payloads(self) -> list[bytes]:
        """Plain messages to its newest member."""
        came = [one for one in self.kinds(MessagesCame) if one.member == self.member]
        return [payload for one in came for payload in one.payloads]

    @property
    def good_for(self) -> float:
        """For how long what it knows is true, as it was told last."""
        newest = [one for one in self.not_counted if isinstance(one, SessionIs | SessionAliveAck)][-1]
        return newest.good_for


class Applications(Carriers):
    """A domain whose nodes have applications."""

    def __init__(self, *, boots: str | None = None, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._connections = itertools.count(1_000)
        self._by_connection: dict[tuple[str, int], Application] = {}
        self.boot(*(self.names if boots is None else boots))
        self.run(2.0)

    def new_connection(self, application: Application) -> int:
        """A number that was never used."""
        number = next(self._connections)
        self._by_connection[application.node, number] = application
        return number

    def opened(self, node: str) -> Application:
        """A process with a session, which says that it is alive."""
        application = Application(self, node)
        application.open()
        self._keep_alive(application)
        return application

    def soon(self, action: Callable[[], None]) -> None:
        """Do this when the present step is over."""
        self._at(self.now, action)

    def _keep_alive(self, application: Application) -> None:
        def alive() -> None:
            if application.is_running:
                application.alive()
            self._at(self.now + SESSION_ALIVE_S, alive)

        self._at(self.now + SESSION_ALIVE_S, alive)

    def _execute(self, name: str, effects: Iterable[Effect]) -> None:
        others: list[Effect] = []
        for effect in effects:
            application = self._by_connection.get((name, effect.client)) if isinstance(effect, ReplyToClient) else None
            if application is None or not isinstance(effect, ReplyToClient):
                others.append(effect)
            elif application.connection == effect.client and application.is_hearing:
                application.hear(effect.message)  # type: ignore[arg-type]
        super()._execute(name, others)


def three(**attributes: str) -> tuple[Applications, list[Application]]:
    """A domain with an application on each of three nodes, all in one group."""
    domain = Applications()
    applications = [domain.opened(node) for node in "DEF"]
    for application in applications:
        application.join(**attributes)
    domain.run(1.0)
    return domain, applications
