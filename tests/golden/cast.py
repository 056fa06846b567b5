"""The applications of a golden script, and what they can be told to do.

    a opens at n4                          a process on n4 opens a session, and says from then on that it is alive
    a joins db [state_phases=n …] [data=x] [create=yes] [since=12] [timeout=5]
    a subscribes db [wait=2]
    a proposes db red [if=3] [phases=2] [limit=1.5] [busy=fail] [timeout=5]
    a sends db hello [phases=0 …]          a message by ballot;  a says db x y  is the plain kind
    a submits db x                         from outside, without being a member
    a expels db b c [reason=slow] · a changes db time_limit=2 · a leaves db [code=7] · a quits db
    a votes db approve [state=x] [message=y] [default=reject] [phase=1]
    a raises db                            the code that was asked for a vote has failed
    a waits db [name=x] [parties=2] [on_failure=continue] [brings=y] [timeout=5]
    a gives-up db [name=x]                 whoever waits is interrupted;  a resets db [name=x] [parties=2]
    a catches-up db · a asks-why db · a asks-how db · a lists-groups
    a breaks · a resumes · a closes · a dies
    a hangs · a works                      the code that answers is stuck, or not any more; it says so
    a freezes · a thaws                    it says nothing at all; what it is told waits

``x*70000`` is a value of so many bytes, ``3*x`` three messages. What it is answered to a vote, if it counts, is not
shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from groupsvc.testing.sim import World
from groupsvc.wire import client_messages as m
from groupsvc.wire.limits import SESSION_ALIVE_S
from groupsvc.wire.notices import AttributeValue, Ended, PhaseOpened, ProposalId, ProviderId
from tests.golden.application_play import ApplicationPlay, quoted

TIMEOUT_S = 20.0
"""Of a request that does not say otherwise."""

SHOWN = 5
"""Messages in a row; more are counted."""


class Application:
    """One process with one session."""

    def __init__(self, cast: Cast, name: str, node: str) -> None:
        self.cast, self.name = cast, name
        self.node = cast.world.nodes[node]
        self.connection = self._last_connection = 0
        self.session: m.SessionIs | None = None
        self.is_responsive = True
        self.is_frozen = False
        self.told_count = 0
        self._said: list[m.AnyClientRequest] = []
        self._waiting: list[tuple[m.AnyClientReply, int]] = []  # while it is frozen
        self._asked: dict[int, str] = {}  # by request: what it was about
        self._ids = itertools.count(1)
        self.members: dict[str, int] = {}
        self.groups: dict[int, str] = {}
        self.providers: dict[str, ProviderId] = {}
        self.proposal: ProposalId = ("", 0, 0)  # the newest of its own that has ended
        self._opened: dict[str, PhaseOpened] = {}
        self.came_with = 0  # the newest request with which it came to a barrier
        self._beat()

    def hears(self, text: str) -> None:
        """A line of the play."""
        self.cast.play.told(self.cast.world.t, self.name, text)

    # --- Connections ---

    def connect(self) -> None:
        """A new connection, under a number that was never used."""
        clients = self.cast.world.clients
        clients.connections += 1
        self.connection = self._last_connection = clients.connections
        clients.by_connection[self.connection] = self  # type: ignore[assignment]

    def disconnect(self, *, process_ended: bool) -> None:
        """Its connection breaks; what is on its way is lost."""
        self.cast.world.clients.by_connection.pop(self.connection, None)
        self.connection = 0
        if self.node.running:  # that a process has ended is noticed by the connection that it has, or had last
            self.node.client_gone(self._last_connection, process_ended=process_ended)

    def daemon_died(self) -> None:
        """The process at the other end is no more."""
        self.cast.world.clients.by_connection.pop(self.connection, None)
        self.connection = 0

    def open(self) -> None:
        """A new session."""
        self.connect()
        self.say(m.OpenSession(next(self._ids), self.name))

    def resume(self) -> None:
        """The same session on another connection."""
        assert self.session is not None
        self.connect()
        self.say(m.ResumeSession(next(self._ids), self.session.session, self.session.secret, self.told_count))

    def close(self) -> None:
        """The session ends."""
        self.ask("close", m.CloseSession)
        self.session = None

    def _beat(self) -> None:
        if self.connection and self.session is not None and not self.is_frozen:
            self.say(m.SessionAlive(next(self._ids), self.told_count, self.is_responsive))
        world = self.cast.world
        world.push(world.t + SESSION_ALIVE_S, lambda _a, _b: self._beat(), None, None)

    # --- Saying ---

    def say(self, request: m.AnyClientRequest) -> None:
        """Something, through the codec; what is counted is kept for when its connection breaks."""
        if not isinstance(request, m.NOT_COUNTED):
            self._said.append(request)
        self._send(request)

    def _send(self, request: m.AnyClientRequest) -> None:
        if self.connection and self.node.running:
            (decoded,) = m.REQUEST_CODEC.decode(m.REQUEST_CODEC.encode([request]))
            self.node.client_says(self.connection, decoded)

    def ask(self, about: str, kind: type[Any], *arguments: Any, **named: Any) -> int:
        """A request of this kind; its number."""
        number = next(self._ids)
        self._asked[number] = about
        self.say(kind(number, *arguments, **named))
        return number

    def vote(self, group: str, vote: str | None, options: dict[str, str]) -> None:
        """Answer what it was asked last in this group."""
        opened = self._opened[group]
        named = {key: _value_of(options[key]) for key in ("state", "message") if key in options}
        phase = int(options.get("phase", opened.phase))
        default = options.get("default")
        self.ask("vote", m.CastVote, self.members[group], opened.ballot, phase, vote, default_vote=default, **named)

    # --- Hearing ---

    def hear(self, reply: m.AnyClientReply, connection: int) -> None:
        """The next thing over a connection that may be broken by now."""
        if self.is_frozen:
            self._waiting.append((reply, connection))
        elif connection == self.connection:
            self._take(reply)

    def thaw(self) -> None:
        """It goes on, with what has waited for it."""
        self.is_frozen = False
        waiting, self._waiting = self._waiting, []
        for reply, connection in waiting:
            self.hear(reply, connection)

    def _take(self, reply: m.AnyClientReply) -> None:
        is_of_none = isinstance(reply, m.Problem) and reply.id not in self._asked
        if not isinstance(reply, m.NOT_COUNTED) and not is_of_none:
            self.told_count += 1
        if isinstance(reply, m.Told):
            self._on_notice(self.groups.get(reply.member, "?"), reply)
        elif isinstance(reply, m.SessionIs):
            self._on_session(reply)
        elif not isinstance(reply, m.SessionAliveAck):
            words = self._in_words(reply)
            if words:
                self.hears(words)

    def _on_session(self, reply: m.SessionIs) -> None:
        was, self.session = self.session, reply
        if was is None:
            self.hears("has a session")
            return
        repeated = self._said[reply.taken :]
        self.hears(f"has its session again; its daemon has taken all but {len(repeated)} of its requests")
        for request in repeated:
            self._send(request)

    def _on_notice(self, group: str, told: m.Told) -> None:
        notice = told.notice
        if isinstance(notice, PhaseOpened):
            self._opened[group] = notice
        self.hears(f"{group} {self.cast.play.notice(notice)}")

    def _in_words(self, reply: m.AnyClientReply) -> str:
        play, about = self.cast.play, self._asked.get(getattr(reply, "id", 0), "")
        match reply:
            case m.JoinedAs() | m.Subscribed():
                group = about.split()[-1]
                self.members[group], self.groups[reply.member] = reply.member, group
                if isinstance(reply, m.JoinedAs):
                    self.providers[group] = reply.provider
                return f"{'is in' if isinstance(reply, m.JoinedAs) else 'watches'} {group} {play.view(reply.view)}"
            case m.OutcomeIs():
                self.proposal = reply.proposal
                play.notice(Ended(reply.seq, reply.outcome, "approve"))  # for the names in it
                how = "approved" if reply.outcome.approved else f"rejected, {reply.outcome.reason}"
                return f"is answered ({about}): {how}, with entry {reply.seq}"
            case m.Problem():
                if reply.code == "lost" and not about:
                    self.session = None  # it cannot be resumed
                self.proposal = reply.proposal or self.proposal
                return f"is answered ({about or 'resume'}): {reply.family}, {reply.code}: {reply.text}"
            case m.Done():
                return f"is answered ({about}): done" if about != "vote" else ""
            case m.MessagesCame():
                said = " ".join(map(quoted, reply.payloads[:SHOWN]))
                said += f" and {len(reply.payloads) - SHOWN} more" if len(reply.payloads) > SHOWN else ""
                return f"{self.groups[reply.member]} {reply.seq}: {play.names.of(reply.sender)} says {said}"
            case m.MemberLost():
                what = "is dissolved" if reply.dissolved else "is lost"
                return f"{self.groups[reply.member]} {what}: {reply.reason}"
            case m.SessionNews():
                if reply.state == "lost":
                    self.session = None
                return f"session {reply.state}{': ' if reply.reason else ''}{reply.reason}"
            case m.RoundPart():
                brought = ", ".join(f"{play.names.of(one)} {quoted(payload)}" for one, payload in reply.payloads)
                return f"is told ({about}): brought before by {brought}"
            case m.RoundIs():
                return f"is answered ({about}): {play.round(reply.round)}, with entry {reply.seq}"
            case m.CaughtUp():
                return f"is answered ({about}): up to entry {reply.seq}"
            case m.GroupsAre():
                return f"is answered: groups {' '.join(line.name for line in reply.groups) or 'none'}"
            case m.OutcomesAre():
                ended = "; ".join(
                    f"{seq} {play.outcome(one)}: {play.subject(one.subject)}" for seq, one in reply.outcomes
                )
                return f"is answered ({about}): {ended or 'nothing has ended'}"
        return f"is answered: {reply}"


class Cast:
    """All applications of a script."""

    def __init__(self, world: World, play: ApplicationPlay) -> None:
        self.world, self.play = world, play
        self._by_name: dict[str, Application] = {}
        play.on_crash = self._daemon_died
        play.begin()
        self._verbs: dict[str, Callable[[Application, list[str], dict[str, str]], object]] = {
            "joins": self._joins,
            "subscribes": self._subscribes,
            "proposes": self._proposes,
            "sends": self._sends,
            "says": lambda app, words, _: app.ask(
                f"message to {words[0]}", m.Multicast, app.members[words[0]], _bytes(words[1:])
            ),
            "submits": lambda app, words, options: app.ask(
                f"submit to {words[0]}", m.SubmitOutside, words[0], _bytes(words[1:]), _timeout(options)
            ),
            "expels": self._expels,
            "changes": self._changes,
            "leaves": lambda app, words, options: app.ask(
                f"leave {words[0]}", m.LeaveAsk, app.members[words[0]], int(options.get("code", "0")), _timeout(options)
            ),
            "quits": lambda app, words, _: app.ask(f"goodbye to {words[0]}", m.GoodbyeAsk, app.members[words[0]]),
            "votes": lambda app, words, options: app.vote(words[0], words[1], options),
            "raises": lambda app, words, options: app.vote(words[0], None, options),
            "waits": lambda app, words, options: self._waits(app, words, options, resets=False),
            "resets": lambda app, words, options: self._waits(app, words, options, resets=True),
            "gives-up": lambda app, words, options: app.ask(
                "interrupted", m.BreakAsk, app.members[words[0]], options.get("name", ""), app.came_with
            ),
            "catches-up": lambda app, words, options: app.ask(
                f"catch up with {words[0]}", m.CatchUpAsk, app.members[words[0]], _timeout(options)
            ),
            "asks-why": lambda app, words, options: app.ask(
                f"why in {words[0]}", m.WhyAsk, words[0], _timeout(options)
            ),
            "asks-how": lambda app, words, _: app.ask(
                "how it ended", m.OutcomeAsk, app.members[words[0]], app.proposal
            ),
            "lists-groups": lambda app, _, options: app.ask("groups", m.GroupsAsk, _timeout(options)),
            "breaks": lambda app, _words, _options: app.disconnect(process_ended=False),
            "resumes": lambda app, _words, _options: app.resume(),
            "closes": lambda app, _words, _options: app.close(),
            "dies": lambda app, _words, _options: app.disconnect(process_ended=True),
            "hangs": lambda app, _words, _options: setattr(app, "is_responsive", False),
            "works": lambda app, _words, _options: setattr(app, "is_responsive", True),
            "freezes": lambda app, _words, _options: setattr(app, "is_frozen", True),
            "thaws": lambda app, _words, _options: app.thaw(),
        }

    def obeys(self, words: list[str]) -> bool:
        """Whether this line is an application's; if so it has done what it says."""
        if len(words) > 2 and words[1:3] == ["opens", "at"]:
            self._by_name[words[0]] = application = Application(self, words[0], words[3])
            application.open()
        elif len(words) > 1 and words[0] in self._by_name and words[1] in self._verbs:
            options = dict(word.split("=", 1) for word in words[2:] if "=" in word)
            self._verbs[words[1]](self._by_name[words[0]], [word for word in words[2:] if "=" not in word], options)
        else:
            return False
        return True

    def _daemon_died(self, node: str) -> None:
        for application in self._by_name.values():
            if application.node.name == node:
                application.daemon_died()

    # --- What is asked for in more than one line ---

    def _joins(self, app: Application, words: list[str], options: dict[str, str]) -> None:
        timeout, data = _timeout(options), _value_of(options.pop("data", ""))
        create = {"yes": True, "no": False}.get(options.pop("create", ""))
        name = options.pop("name", app.name)
        options.pop("timeout", None)
        since = int(options.pop("since", m.SINCE_NOW))
        attributes = {key: _value(value) for key, value in options.items()}
        app.ask(f"join {words[0]}", m.JoinAsk, words[0], name, data, attributes, create, timeout, False, since)

    def _subscribes(self, app: Application, words: list[str], options: dict[str, str]) -> None:
        app.ask(f"subscribe {words[0]}", m.SubscribeAsk, words[0], float(options.get("wait", "0")), _timeout(options))

    def _proposal(self, app: Application, words: list[str], options: dict[str, str]) -> tuple[Any, ...]:
        phases, limit = int(options.get("phases", "-1")), float(options.get("limit", "-1"))
        return app.members[words[0]], phases, limit, options.get("busy") == "fail", _timeout(options)

    def _proposes(self, app: Application, words: list[str], options: dict[str, str]) -> None:
        asked = self._proposal(app, words, options)
        if_version = int(options.get("if", "-1"))
        app.ask(f"state {words[1]}", m.ChangeStateAsk, *asked, _value_of(words[1]), if_version)

    def _sends(self, app: Application, words: list[str], options: dict[str, str]) -> None:
        app.ask(f"message {words[1]}", m.SendAsk, *self._proposal(app, words, options), _value_of(words[1]))

    def _waits(self, app: Application, words: list[str], options: dict[str, str], *, resets: bool) -> None:
        about = f"{'reset' if resets else 'barrier'} {options.get('name', '')}".rstrip()
        app.came_with = app.ask(
            about, m.BarrierAsk, app.members[words[0]], options.get("name", ""), int(options.get("parties", "0")),
            options.get("on_failure", "break"), _value_of(options.get("brings", "")), resets, _timeout(options),
        )  # fmt: skip

    def _expels(self, app: Application, words: list[str], options: dict[str, str]) -> None:
        targets = tuple(self._by_name[name].providers[words[0]] for name in words[1:])
        asked = self._proposal(app, words, options)
        app.ask(f"expel {' '.join(words[1:])}", m.ExpelAsk, *asked, targets, options.get("reason", ""))

    def _changes(self, app: Application, words: list[str], options: dict[str, str]) -> None:
        timeout = options.pop("timeout", str(TIMEOUT_S))
        changes = {key: _value(value) for key, value in options.items()}
        member = app.members[words[0]]
        app.ask("attributes", m.ChangeAttributesAsk, member, -1, -1.0, False, float(timeout), changes)


def _bytes(words: list[str]) -> tuple[bytes, ...]:
    found: list[bytes] = []
    for word in words:
        count, star, text = word.partition("*")
        found += [text.encode()] * int(count) if star and count.isdigit() else [_value_of(word)]
    return tuple(found)


def _value_of(word: str) -> bytes:
    text, star, count = word.partition("*")
    return text.encode() * int(count) if star else word.encode()


def _timeout(options: dict[str, str]) -> float:
    return float(options.get("timeout", TIMEOUT_S))


def _value(text: str) -> AttributeValue:
    if text in ("yes", "no"):
        return text == "yes"
    if text.isdigit():
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
