"""A toy engine with the interface of the real one, for tests of the simulator itself.

It is honest and simple-minded: the first voter is name server for ever, keeps everything on its disk before it
speaks of it, and everybody asks it. While it is away nobody gets an answer; once it is back all is as before.
"""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec

from groupsvc.wire.client_messages import (
    ClientReply,
    ClientRequest,
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
from groupsvc.wire.table_lines import NodeStatus
from groupsvcd.core.effects import Connect, Effect, Journal, Multicast, Persist, ReplyToClient, SendToPeer
from groupsvcd.core.events import ClientFrame, Event, PeerFrame, PeerRefused, Persisted, Tick
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.peer_messages import (
    DOMAIN_TOPIC,
    Alive,
    AliveAck,
    Ask,
    LeaderAlive,
    PeerMessage,
    Tell,
)
from groupsvcd.core.records import AppendRecord, PromiseRecord, Stored

EPOCH = 1


class ToyEngine:
    """See the module."""

    def __init__(self, parameters: Parameters, stored: Stored, incarnation: int, rng: random.Random) -> None:
        self.parameters = parameters
        self.name = parameters.node
        self.state_id = stored.state_id
        self.incarnation = incarnation
        self.domain = bytes(16)
        self.leader = parameters.all_voters[0]
        self.rng = rng
        self.deadline = math.inf
        self.beat = 0
        self.beat_heard = -math.inf
        self.known: dict[str, int] = {}
        self.entries: list[dict[str, Any]] = []
        self.registry: dict[str, tuple[int, dict[str, Any]]] = {}
        self.own_tells: dict[int, Tell] = {}
        self.persists = 0
        self.asked: dict[int, tuple[int, ClientRequest, float]] = {}
        self.asks = 0
        for entry in stored.streams[0].entries if 0 in stored.streams else ():
            self.apply(msgspec.json.decode(entry))

    @property
    def leads(self) -> bool:
        return self.name == self.leader

    def apply(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        if entry["key"] in self.registry and entry["key"].startswith("group/"):
            return
        self.registry[entry["key"]] = (len(self.entries), entry)

    # --- Steps ----------------------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        self.deadline = now
        if not self.leads:
            return []
        self.persists += 1
        promise = PromiseRecord(0, EPOCH)
        return [Persist(self.persists, (promise,), (Journal("promise", epoch=EPOCH),))]

    def step(self, event: Event, now: float) -> list[Effect]:
        effects: list[Effect] = []
        if isinstance(event, PeerFrame):
            for message in event.messages:
                self.hear(event.sender, event.incarnation, message, now, effects)
        elif isinstance(event, Tick):
            self.tick(now, effects)
        elif isinstance(event, ClientFrame):
            self.client(event.client, event.message, now, effects)
        elif isinstance(event, Persisted):
            tell = self.own_tells.pop(event.number, None)
            if tell is not None:
                self.hear(self.name, self.incarnation, tell, now, effects)
        elif isinstance(event, PeerRefused) and self.leads:
            self.known.pop(event.node, None)
        return effects

    def tick(self, now: float, effects: list[Effect]) -> None:
        timers = self.parameters.timers
        if self.leads:
            self.beat += 1
            effects.append(
                Multicast(
                    DOMAIN_TOPIC, LeaderAlive(epoch=EPOCH, n=self.beat, list_version=0, stable=0), now + timers.lease
                )
            )
            self.known[self.name] = self.incarnation
        for number, (client, request, until) in list(self.asked.items()):
            if until <= now:
                del self.asked[number]
                assert isinstance(request, LookUpAsk | ConfigAsk | ConfigSet)
                code, text = "timed out", "no answer"
                problem = Problem(request.id, "unknown" if self.writes(request) else "failed", code, text)
                effects.append(ReplyToClient(client, problem))
            elif not self.leads:
                effects.append(SendToPeer(self.leader, self.question(number, request)))
        self.deadline = now + timers.alive_interval

    def hear(self, sender: str, incarnation: int, message: PeerMessage, now: float, effects: list[Effect]) -> None:
        if isinstance(message, LeaderAlive):
            self.beat_heard = now
            words: list[PeerMessage] = [Alive(epoch=EPOCH, echo=message.n, count=message.n, state_id="toy")]
            if self.known.get(self.name) != self.incarnation or message.n % 5 < 2:
                words.append(Ask(0, "register", self.parameters.address))
            effects += [SendToPeer(sender, word) for word in words]
        elif isinstance(message, Alive) and self.leads:
            self.known[sender] = incarnation
            effects.append(SendToPeer(sender, AliveAck(0, EPOCH, message.count, 2.0), now + 1.0))
            effects.append(SendToPeer(sender, Tell(0, EPOCH, 0, {"known": dict(self.known)})))
        elif isinstance(message, Ask) and self.leads and message.what == "register":
            effects.append(Connect(sender, message.key))
        elif isinstance(message, Ask) and self.leads:
            self.answer(sender, message, effects)
        elif isinstance(message, Tell) and message.number == 0:
            self.known = message.answer["known"]
        elif isinstance(message, Tell) and message.number in self.asked:
            client, request, _ = self.asked.pop(message.number)
            effects.append(ReplyToClient(client, self.reply(request, message.answer)))

    # --- The name server ------------------------------------------------------------------------------

    def answer(self, sender: str, ask: Ask, effects: list[Effect]) -> None:
        version, present = self.registry.get(ask.key, (0, {}))
        if ask.what == "get":
            tell = Tell(0, EPOCH, ask.number, {"version": version, "entry": present, "formed": False})
            effects += self.after_all_writes(SendToPeer(sender, tell))
            return
        entry = msgspec.json.decode(ask.what)
        mine = present.get("by") == entry["by"]
        if not mine and (version != entry["if"] or (ask.key.startswith("group/") and version)):
            tell = Tell(0, EPOCH, ask.number, {"version": version, "entry": present, "formed": False, "stale": True})
            effects += self.after_all_writes(SendToPeer(sender, tell))
            return
        if not mine:
            self.apply(entry)
            self.persists += 1
            version = len(self.entries)
            record = AppendRecord(0, version, (msgspec.json.encode(entry),))
            effects.append(Persist(self.persists, (record,)))
            effects.append(Journal("ordered", epoch=EPOCH, seq=version))
        tell = Tell(0, EPOCH, ask.number, {"version": version, "entry": entry, "formed": True})
        effects += self.after_all_writes(SendToPeer(sender, tell))

    def after_all_writes(self, send: SendToPeer) -> list[Effect]:
        """Nothing is said of what is not safe: an empty write behind all others carries the words."""
        self.persists += 1
        if send.node == self.name:
            assert isinstance(send.message, Tell)
            self.own_tells[self.persists] = send.message
            return [Persist(self.persists, ())]
        return [Persist(self.persists, (), (send,))]

    # --- Clients --------------------------------------------------------------------------------------

    def writes(self, request: ClientRequest) -> bool:
        return isinstance(request, ConfigSet) or (isinstance(request, LookUpAsk) and request.form)

    def question(self, number: int, request: ClientRequest) -> Ask:
        by = f"{self.name}/{self.incarnation}/{number}"
        if isinstance(request, LookUpAsk):
            key = f"group/{request.group}"
            entry = {"key": key, "by": by, "leader": self.name, "if": 0}
            return Ask(number, msgspec.json.encode(entry).decode() if request.form else "get", key)
        if isinstance(request, ConfigSet):
            key = f"config/{request.key}"
            entry = {"key": key, "by": by, "value": request.value, "if": request.if_version}
            return Ask(number, msgspec.json.encode(entry).decode(), key)
        assert isinstance(request, ConfigAsk)
        return Ask(number, "get", f"config/{request.key}")

    def reply(self, request: ClientRequest, answer: dict[str, Any]) -> ClientReply:
        version, entry = answer["version"], answer["entry"]
        if isinstance(request, LookUpAsk):
            leader = entry.get("leader", "")
            return GroupRecord(request.id, bool(version), answer["formed"], version, request.group, 1, leader, ())
        if isinstance(request, ConfigAsk):
            return ConfigValue(request.id, request.key, entry.get("value", ""), version)
        assert isinstance(request, ConfigSet)
        if answer.get("stale"):
            return Problem(request.id, "failed", "stale version", f"version is {version}")
        return Done(request.id)

    def client(self, client: int, request: ClientRequest, now: float, effects: list[Effect]) -> None:
        if isinstance(request, Hello):
            effects.append(ReplyToClient(client, Welcome(request.id, 1, self.name, self.incarnation, "")))
        elif isinstance(request, StatusAsk):
            effects.append(ReplyToClient(client, self.status(request.id, now)))
        elif isinstance(request, HandOverAsk):
            effects.append(ReplyToClient(client, Problem(request.id, "failed", "never", "the first voter leads")))
        else:
            assert isinstance(request, LookUpAsk | ConfigAsk | ConfigSet)
            self.asks += 1
            self.asked[self.asks] = (client, request, now + request.timeout)
            question = self.question(self.asks, request)
            if self.leads:
                self.answer(self.name, question, effects)
            else:
                effects.append(SendToPeer(self.leader, question))

    def status(self, request_id: int, now: float) -> Status:
        nodes = tuple(
            NodeStatus(name, self.known[name], "up", "", name in self.parameters.voters, name == self.leader)
            for name in sorted(self.known)
        )
        heard = self.leads or now - self.beat_heard < 1.0
        role = "name server" if self.leads else "voter" if self.parameters.is_voter else "node"
        return Status(
            request_id, self.name, self.incarnation, "", role, "leader known", self.leader if heard else "", EPOCH,
            0, 0.0, not heard, "", nodes, 0, 0,
        )  # fmt: skip


class ForgetfulEngine(ToyEngine):
    """A planted bug: it answers before its writes are safe."""

    def after_all_writes(self, send: SendToPeer) -> list[Effect]:
        return [send] if send.node != self.name else super().after_all_writes(send)


class BrokenEngine(ToyEngine):
    """A planted bug: the hundredth beat breaks it."""

    def tick(self, now: float, effects: list[Effect]) -> None:
        super().tick(now, effects)
        assert self.beat < 100, "a hundred beats are too many"


class SpinningEngine(ToyEngine):
    """A planted bug: it always wants to be called at once."""

    def tick(self, now: float, effects: list[Effect]) -> None:
        super().tick(now, effects)
        self.deadline = now


class MuteEngine(ToyEngine):
    """A planted bug: it never answers a look-up."""

    def reply(self, request: ClientRequest, answer: dict[str, Any]) -> ClientReply:
        reply = super().reply(request, answer)
        return Welcome(0, 1, self.name, 0, "") if isinstance(reply, GroupRecord) else reply


class NarrowEngine(ToyEngine):
    """A planted bug: its list has room for two nodes only."""

    def status(self, request_id: int, now: float) -> Status:
        status = super().status(request_id, now)
        return msgspec.structs.replace(status, nodes=status.nodes[:2])
