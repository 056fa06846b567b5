"""Simulated applications: they ask, they wait, they write down what they were told.

A client is attached to one node and has one call open at a time. It writes ``invoke`` when it asks and exactly
one of ``ok``, ``fail`` (certainly did not happen) or ``info`` (unknown) afterwards; ``args.id`` pairs the two. A
daemon that dies under a call leaves a reader with ``fail`` and a writer with ``info``. The value of every
``ConfigSet`` is unique, so that a lost or invented one can be seen.

The daemon owes every request one reply within its time limit. A client whose daemon ran undisturbed all the
while and said nothing, or said something twice, has found a bug.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import attrs

from groupsvc.wire.client_messages import (
    REPLY_CODEC,
    REQUEST_CODEC,
    AnyClientReply,
    AnyClientRequest,
    AnyTelling,
    ClientReply,
    ConfigAsk,
    ConfigSet,
    ConfigValue,
    Done,
    GroupRecord,
    HandOverAsk,
    Hello,
    LookUpAsk,
    Problem,
    Status,
    StatusAsk,
    Welcome,
)
from groupsvc.wire.enrolment_messages import EnrolAsk, Enrolled, RevokeAsk, Revoked, TokenAsk, TokenIs
from groupsvc.wire.history import EventType
from groupsvc.wire.option_messages import OPTION_PREFIX

if TYPE_CHECKING:
    from .node import Node
    from .world import World

LOCAL_S = 0.0001
"""One way between an application and the daemon of its node."""

GRACE_S = 1.0
"""How long after its time limit a reply may be missing before the client hangs up."""

OPTIONS = 2
"""Options of the daemons that are set; with two, one of them can be forgotten for the other."""

MUTATING = frozenset({"form", "config_set", "hand_over", "token_make", "token_revoke", "enrol"})
"""Calls whose fate is unknown when the daemon dies under them."""


@attrs.frozen(kw_only=True)
class Habits:
    """What the clients of a world do."""

    count: int = 0
    think_s: float = 0.5  # mean pause between two calls
    timeout_s: float = 3.0
    groups: int = 6
    keys: int = 3
    options: float = 0.0  # share of what is set and read that is an option of the daemons
    hand_over: float = 0.01  # share of the calls


class Call:
    """One request and what is known about its fate."""

    __slots__ = ("args", "number", "op", "process", "sent_at")

    def __init__(self, number: int, op: str, args: dict[str, Any], process: int, sent_at: float) -> None:
        self.number = number
        self.op = op
        self.args = args
        self.process = process
        self.sent_at = sent_at


class Client:
    """One application."""

    __slots__ = ("call", "calls", "clients", "connection", "last", "name", "node", "one_shot", "values", "versions")

    def __init__(self, clients: Clients, name: str, node: Node) -> None:
        self.clients = clients
        self.name = name
        self.node = node
        self.connection = 0
        self.call: Call | None = None
        self.calls = 0
        self.values = 0
        self.versions: dict[str, int] = {}
        self.one_shot = False
        self.last: tuple[str, dict[str, Any]] = ("", {})  # how the newest call ended

    # --- Asking ---------------------------------------------------------------------------------------

    def connect(self) -> None:
        """Open a new connection, under a number that was never used."""
        clients = self.clients
        clients.connections += 1
        self.connection = clients.connections
        clients.by_connection[self.connection] = self
        self._say(Hello(0, 1, 1, self.name))

    def hang_up(self) -> None:
        """Close the connection; what comes over it from now on is nobody's."""
        if self.connection:
            self.clients.by_connection.pop(self.connection, None)
            if self.node.running:
                self.node.client_gone(self.connection)
            self.connection = 0

    def ask(self, op: str, args: dict[str, Any], timeout: float) -> None:
        """Begin a call; it ends with one more line of history."""
        world = self.clients.world
        if not self.connection:
            self.connect()
        self.calls += 1
        args = {"id": self.calls, **args}
        self.call = Call(self.calls, op, args, self.node.process, world.t)
        self._line("invoke", args, {})
        self._say(_request(self.calls, op, args, timeout))
        patience = timeout * 1.01 + GRACE_S
        world.push(world.t + patience, self._lose_patience, self.calls, self.connection)

    def _say(self, message: AnyClientRequest) -> None:
        # Through the codec, so that nothing but bytes is shared with the daemon.
        (request,) = REQUEST_CODEC.decode(REQUEST_CODEC.encode([message]))
        world = self.clients.world
        world.push(world.t + LOCAL_S, self._arrive, (self.node.process, self.connection), request)

    def _arrive(self, where: tuple[int, int], request: AnyClientRequest) -> None:
        process, connection = where
        if self.node.process == process and self.connection == connection:
            self.node.client_says(connection, request)

    # --- Being answered -------------------------------------------------------------------------------

    def hear(self, reply: AnyClientReply, connection: int) -> None:
        """A reply has come over a connection that may have been closed meanwhile."""
        if connection != self.connection or isinstance(reply, Welcome | AnyTelling):
            return
        call = self.call
        world = self.clients.world
        if call is None or reply.id != call.number:
            if not 0 <= reply.id <= self.calls:
                world.found("K1", f"{self.name} at {self.node.name} got a reply to call {reply.id} it never made")
            elif reply.id:
                world.found("K1", f"{self.name} at {self.node.name} got a second reply to call {reply.id}: {reply}")
            return
        if isinstance(reply, Problem):
            type_: EventType = "info" if reply.family == "unknown" else "fail"
            self._end(type_, {"code": reply.code, "text": reply.text})
        elif isinstance(reply, GroupRecord):
            self._end("ok", {"exists": reply.exists, "formed": reply.formed, "group": reply.group,
                             "epoch": reply.epoch, "leader": reply.leader, "servers": list(reply.servers)})  # fmt: skip
        elif isinstance(reply, ConfigValue):
            self.versions[reply.key] = reply.version
            self._end("ok", {"value": reply.value, "version": reply.version})
        elif isinstance(reply, Status):
            self._end("ok", {"name_server": reply.name_server, "epoch": reply.epoch, "suspended": reply.suspended})
        elif isinstance(reply, Enrolled | Revoked):
            self._end("ok", {"version": reply.version})
        elif isinstance(reply, TokenIs):
            self._end("ok", {"until": reply.until})
        else:
            assert isinstance(reply, Done)
            self._end("ok", {})

    def daemon_died(self) -> None:
        """The connection broke because the process at the other end is gone."""
        self.clients.by_connection.pop(self.connection, None)
        self.connection = 0
        if self.call is not None:
            self._end("info" if self.call.op in MUTATING else "fail", {"code": "daemon died"})

    def _lose_patience(self, number: int, connection: int) -> None:
        call = self.call
        if call is None or call.number != number:
            return
        if call.process == self.node.process and not self.clients.was_disturbed(self.node, since=call.sent_at):
            what = f"call {number}, {call.op} {call.args}"
            self.clients.world.found("K1", f"{self.name} at {self.node.name} got no reply in time to {what}")
        self._end("info" if call.op in MUTATING else "fail", {"code": "no reply"})
        self.hang_up()

    def _end(self, type_: EventType, result: dict[str, Any]) -> None:
        call = self.call
        assert call is not None
        self._line(type_, call.args, result)
        self.call = None
        self.last = (type_, result)
        if not self.one_shot:
            self.clients.think(self)

    def _line(self, type_: EventType, args: dict[str, Any], result: dict[str, Any]) -> None:
        call = self.call
        assert call is not None
        world, node = self.clients.world, self.node
        inc = node.engine.incarnation if node.engine is not None else node.highest_incarnation
        world.history.add(
            world.t, call.op, local=node.offset + node.rate * world.t, node=node.name, inc=inc, who=self.name,
            type=type_, args=args, result=result,
        )  # fmt: skip
        if world.play is not None:
            world.play.called(self.name, node.name, type_, call.op, args, result)


class Clients:
    """All clients of a world."""

    def __init__(self, world: World, rng: random.Random, habits: Habits) -> None:
        self.world = world
        self.rng = rng
        self.habits = habits
        self.connections = 0
        self.by_connection: dict[int, Client] = {}
        self.all: list[Client] = []
        self.quiet = False
        for number in range(1, habits.count + 1):
            client = Client(self, f"client-{number}", world.nodes[rng.choice(world.names)])
            self.all.append(client)
            self.think(client)

    def client_at(self, node: Node, name: str) -> Client:
        """A client that does only what it is told."""
        client = Client(self, name, node)
        client.one_shot = True
        self.all.append(client)
        return client

    def think(self, client: Client) -> None:
        """Have the client make its next call after a while."""
        pause = self.rng.expovariate(1.0) * self.habits.think_s
        self.world.push(self.world.t + pause, self._next, client, None)

    def _next(self, client: Client, _: object) -> None:
        if self.quiet or client.call is not None:
            return
        if not client.node.running:
            self.think(client)
            return
        rng, habits = self.rng, self.habits
        timeout = habits.timeout_s * (0.3 + rng.random())
        r = rng.random()
        if r < habits.hand_over:
            client.ask("hand_over", {"to": rng.choice(self.world.voters)}, timeout)
        elif r < 0.05:
            client.ask("status", {}, timeout)
        elif r < 0.35:
            op = "form" if rng.random() < 0.5 else "look_up"
            client.ask(op, {"group": f"group-{rng.randrange(habits.groups)}"}, timeout)
        elif r < 0.65:
            client.ask("config_get", {"key": self._draw_key()}, timeout)
        else:
            key = self._draw_key()
            client.values += 1
            value = f"{client.name}:{client.values}"
            client.ask("config_set", {"key": key, "value": value, "if_version": client.versions.get(key, 0)}, timeout)

    def _draw_key(self) -> str:
        rng, habits = self.rng, self.habits
        if habits.options and rng.random() < habits.options:
            return f"{OPTION_PREFIX}option-{rng.randrange(OPTIONS)}"
        return f"key-{rng.randrange(habits.keys)}"

    def replied(self, node: Node, connection: int, message: ClientReply, at: float) -> None:
        """A daemon has answered; the bytes are on their way to the application."""
        (reply,) = REPLY_CODEC.decode(REPLY_CODEC.encode([message]))  # type: ignore[list-item]
        self.world.push(at + LOCAL_S, self._deliver, connection, reply)

    def _deliver(self, connection: int, reply: AnyClientReply) -> None:
        client = self.by_connection.get(connection)
        if client is not None:
            client.hear(reply, connection)

    def process_ended(self, node: Node) -> None:
        """All connections to this process break."""
        for client in self.all:
            if client.node is node:
                client.daemon_died()

    def was_disturbed(self, node: Node, since: float) -> bool:
        """Whether the process stood still at any time since then."""
        return node.paused or node.resumed_at >= since

    @property
    def open_calls(self) -> int:
        """Calls that have not ended."""
        return sum(client.call is not None for client in self.all)


def _request(number: int, op: str, args: dict[str, Any], timeout: float) -> AnyClientRequest:
    if op == "config_set":
        return ConfigSet(number, args["key"], args["value"], args["if_version"], timeout)
    if op == "config_get":
        return ConfigAsk(number, args["key"], timeout)
    if op in ("form", "look_up"):
        return LookUpAsk(number, args["group"], op == "form", timeout)
    if op == "hand_over":
        return HandOverAsk(number, args["to"], timeout)
    if op == "token_make":
        return TokenAsk(number, args["node"], args["token"], args["valid"], timeout)
    if op == "token_revoke":
        return RevokeAsk(number, args["node"], timeout)
    if op == "enrol":
        return EnrolAsk(number, args["node"], args["key"], timeout)
    return StatusAsk(number)
