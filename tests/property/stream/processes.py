"""A volatile group's stream without the daemons around it: processes, a bag of messages, a clerk that grants epochs.

The parts are those of production: ``Replica``, ``Server``, ``Receiver``, ``Recovery`` with the authority ``Granted``,
``Sequencer``. What a node does besides (leases, joining, the node list) is left out, so that thousands of histories fit
into seconds. A process that is killed has lost everything; its successor under the same name is another process.

The clerk keeps the two rules of the directory that the stream relies on: an epoch is given once, and only the newest
grant becomes active.
"""

from __future__ import annotations

import functools
from random import Random
from typing import Any
from zlib import crc32

import attrs

from groupsvcd.core.effects import Afterwards, SendToPeer
from groupsvcd.core.nodegroups.granted import Granted
from groupsvcd.core.parameters import Timers
from groupsvcd.core.peer_messages import (
    Beat,
    Block,
    BlockAsk,
    Claim,
    Data,
    DataAsk,
    Held,
    Open,
    Opened,
    Order,
    PeerMessage,
    Promised,
    Refused,
    Repair,
    RepairAsk,
    Submit,
)
from groupsvcd.core.records import StoredStream
from groupsvcd.core.stream.carrier import Carrier
from groupsvcd.core.stream.duplicates import DuplicateFilter, Verdict
from groupsvcd.core.stream.entries import decode_entry, decode_reference, encode_entry, is_reference
from groupsvcd.core.stream.receiver import Receiver
from groupsvcd.core.stream.recovery import Phase, Recovery
from groupsvcd.core.stream.replica import Replica, Retention
from groupsvcd.core.stream.sequencer import Sequencer
from groupsvcd.core.stream.server import Server
from groupsvcd.core.turn import Turn
from groupsvcd.core.views import NodeId, View
from tests.unit.core.stream.list_host import ListHost

Identity = tuple[str, int, int, int]
"""Of an entry: origin, its incarnation, its number there, checksum of the payload."""

STREAM = 5
NAMES = "ABCD"
TIMERS = Timers()
RETENTION = Retention(checkpoint_every=6, margin=2, block_bytes=64)


@attrs.frozen
class Letter:
    """A message on its way."""

    sender: NodeId
    to: str
    message: PeerMessage


class Memory(Carrier):
    """As a volatile group is carried: memory is safe at once, and everybody follows."""

    durable = False
    journals_entries = False
    delivers_batches = True

    def persist(self, *records: Any, then: Any = (), done: Any = None) -> None:
        """Nothing to wait for."""
        self.turn.remember(then, done)


class Process:
    """One node's part in the stream, in one incarnation."""

    def __init__(self, clerk: Clerk, node: NodeId, stored: StoredStream, state: tuple[bytes, ...] = ()) -> None:
        self.clerk = clerk
        self.node = node
        self.name = node[0]
        self.turn = Turn(self.name)
        self.turn.now = clerk.now
        self.host = ListHost()
        self.host.delivered = list(state)
        carrier = Memory(self.turn, STREAM, tuple(NAMES))
        self.replica = Replica(carrier, stored, (), RETENTION, TIMERS, Random(str(node)), self.host)
        self.role: Receiver | Server = Receiver(self.replica, stored.accepted)
        self.promised_view: View | None = None
        self.granted: Granted | None = None
        self.recovery: Recovery | None = None
        self.sequencer: Sequencer | None = None
        self.led = 0  # the newest epoch that was ours to number in
        self.origins = DuplicateFilter({}, 100_000)
        self.outbox: list[bytes] = []  # what we submitted, from number 1 on

    @property
    def log(self) -> list[Identity]:
        """Every entry from number 1 on that this process has or had."""
        return [*self.delivered[: self.replica.log.base], *map(identity, self.replica.log.entries)]

    @property
    def delivered(self) -> list[Identity]:
        """Every entry that was handed up here, or was part of the state we began with."""
        return list(map(identity, self.host.delivered))

    # --- Steps ---

    def step(self, action: Any, *arguments: Any) -> None:
        """Do something, and everything that follows from it; what is for others goes into the bag."""
        self.turn.now = self.clerk.now
        action(*arguments)
        while True:
            while self.turn.round_trip:
                what = self.turn.round_trip.popleft()
                if isinstance(what, PeerMessage):
                    self.receive(self.node, what)
                else:
                    what()
            if self.sequencer is not None:
                self.sequencer.flush()
                self.sequencer.tell_stable()
            if not self.turn.round_trip:
                break
        effects, self.turn.effects = self.turn.effects, []
        self.clerk.bag += [
            Letter(self.node, effect.node, effect.message) for effect in effects if isinstance(effect, SendToPeer)
        ]
        for effect in effects:
            if isinstance(effect, Afterwards):
                self.step(effect.action)

    def receive(self, sender: NodeId, message: PeerMessage) -> None:
        """A message, whoever it was meant for: names are used again."""
        if isinstance(message, Order | Beat):
            role = self._follower(message.epoch)
            if isinstance(message, Order):
                role.on_order(sender[0], message)
            else:
                role.on_beat(sender[0], message)
        elif isinstance(message, Claim):
            self._on_claim(sender, message)
        elif isinstance(message, Open):
            self._on_open(sender, message)
        elif isinstance(message, BlockAsk):
            self.replica.on_block_ask(sender[0], message)
        elif isinstance(message, Block):
            self.role.on_block(sender[0], message)
        elif isinstance(message, RepairAsk):
            self.replica.on_repair_ask(sender[0], message)
        elif isinstance(message, Repair):
            if self.recovery is not None:
                self.recovery.on_repair(sender[0], message)
            self.role.on_repair(sender[0], message)
        elif isinstance(message, Data):
            self.role.on_data(message)
            if self.recovery is not None:
                self.recovery.on_data()
        elif isinstance(message, DataAsk):
            self.replica.library.answer(sender[0], message)
        else:
            self._as_leader(sender, message)

    def _as_leader(self, sender: NodeId, message: PeerMessage) -> None:
        if isinstance(message, Promised):
            if self.recovery is not None and self.granted is not None and self.granted.recognises(sender):
                self.recovery.on_promised(*sender, message)
        elif isinstance(message, Opened):
            if self.recovery is not None and self.granted is not None and self.granted.recognises(sender):
                self.recovery.on_opened(*sender, message)
                if self.sequencer is not None and sender in self.granted.granted.servers:
                    self.sequencer.holds(sender[0], message.last)
        elif isinstance(message, Held):
            if self.sequencer is not None and self.granted is not None and sender in self.granted.granted.servers:
                self.sequencer.on_held(sender[0], message)
        elif isinstance(message, Submit):
            self._on_submit(sender, message)
        elif isinstance(message, Refused) and self.recovery is not None and message.epoch > self.recovery.epoch:
            self._stop()

    # --- Roles ---

    def _as_server(self) -> Server:
        role = self.role
        if isinstance(role, Receiver):
            self.promised_view = None
            self.role = role = Server(self.replica, role.epoch, 1, complete=False)
        return role

    def _follower(self, epoch: int) -> Receiver | Server:
        role, view = self.role, self.promised_view
        if isinstance(role, Server) and role.log.accepted < epoch:
            waits = epoch == role.promised and view is not None and self.node in view.servers
            if epoch >= role.promised and not waits:
                self._stop()
                self.promised_view = None
                self.role = role = Receiver(self.replica, role.log.accepted)
        return role

    def _stop(self) -> None:
        if self.recovery is not None:
            self.recovery.abandon()
        self.recovery = self.granted = self.sequencer = None

    def _on_claim(self, sender: NodeId, message: Claim) -> None:
        server = self._as_server()
        if message.epoch < server.promised:
            server.refuse(sender[0])
            return
        if message.epoch > server.promised:
            if self.recovery is None or self.recovery.epoch != message.epoch:
                self._stop()
            server.promise(message.epoch)
        self.promised_view = message.view
        server.carrier.send(sender[0], server.report())

    def _on_open(self, sender: NodeId, message: Open) -> None:
        if message.view is not None and self.node in message.view.servers:
            server = self._as_server()
            if message.epoch > server.promised:
                self._stop()
            server.on_open(sender[0], message)

    def take_grant(self, view: View, base: View) -> None:
        """The clerk wants us to lead."""
        role = self.role
        if view.epoch <= (max(role.promised, role.log.accepted) if isinstance(role, Server) else role.epoch):
            return
        server = self._as_server()
        self._stop()
        granted = Granted(
            STREAM, self.name, view, base, is_up=lambda name: True, opened=self._enough_opened,
            has_led=self.has_led(base),
        )  # fmt: skip
        if granted.recognises(self.node):
            self.granted = granted
            self.recovery = Recovery(server, view.epoch, granted, TIMERS)
            self.replica.servers, server.k = view.names, view.k
            self.recovery.begin()

    def has_led(self, base: View) -> bool:
        """Whether we have everything that was numbered in this view, because we numbered it."""
        return self.led == base.epoch and self.replica.is_whole

    def _enough_opened(self) -> None:
        if self.recovery is not None:
            self.clerk.requests.append((self.node, self.recovery.epoch))

    def lead(self, view: View) -> None:
        """The clerk has made our view active: all that was opened is stable, and we order."""
        recovery = self.recovery
        if recovery is None or recovery.epoch != view.epoch or self.sequencer is not None:
            return
        server = recovery.server
        if server.promised != view.epoch:
            return
        self.clerk.takes_over(self)
        self.led = view.epoch
        server.learn_stable(server.log.last)
        self.origins = DuplicateFilter({}, 100_000)
        for seq, (origin, incarnation, n, _) in enumerate(self.log, 1):
            if origin:
                self.origins.ordered((origin, incarnation), n, seq)
        self.sequencer = Sequencer(server, view.epoch, view.k, self.origins, TIMERS)
        for name, last in recovery.opened_by.items():
            self.sequencer.holds(name, last)
        self.sequencer.began = self.replica.began = self.sequencer.next_seq
        self.sequencer.order("", 0, 0, f"view {view.epoch}".encode())

    # --- Submissions ---

    def _on_submit(self, origin: NodeId, submit: Submit) -> None:
        sequencer = self.sequencer
        if sequencer is None:
            return
        first_n = max(self.origins.last_n(origin) + 1, submit.first_n)
        new = submit.bodies[first_n - submit.first_n :]
        if new and all(isinstance(body, bytes) for body in new):
            if self.origins.judge(origin, first_n, sequencer.next_seq, sequencer.next_seq) is Verdict.NEXT:
                sequencer.order_run(*origin, first_n, new)
            return
        for n, body in enumerate(submit.bodies, submit.first_n):
            if self.origins.judge(origin, n, sequencer.next_seq, sequencer.next_seq) is not Verdict.NEXT:
                continue
            if isinstance(body, bytes):
                sequencer.order(*origin, n, body)
            elif (*origin, n) in self.replica.library.payloads:
                sequencer.order_reference(*origin, n, *body)

    def submit(self, body: bytes) -> None:
        """One submission more; large ones travel apart."""
        self.outbox.append(body)
        self.resend(len(self.outbox))

    def resend(self, first_n: int) -> None:
        """Say again what we submitted, from this number on, to everybody: whoever leads numbers it."""
        told: list[bytes | tuple[int, int]] = []
        for n, body in enumerate(self.outbox[first_n - 1 :], first_n):
            told.append((len(body), crc32(body)) if is_large(body) else body)
            if is_large(body):
                data = Data(STREAM, *self.node, n, body)
                self.turn.round_trip.append(data)
                self.clerk.say_to_all(self.node, data)
        submit = Submit(STREAM, first_n, 0, tuple(told))
        self.clerk.say_to_all(self.node, submit)
        self.turn.round_trip.append(submit)

    # --- Time ---

    def tick(self) -> None:
        """Repeat what was not answered."""
        self.role.tick()
        recovery = self.recovery
        if recovery is not None:
            if recovery.phase is Phase.FETCHING and self.turn.now - recovery.progress_at >= TIMERS.leader_silent:
                recovery.choose_anew()
            recovery.tick()
        if self.sequencer is not None:
            server = self.sequencer.server
            self.sequencer.holds(self.name, server.held_upto)
            self.sequencer.discard = self.clerk.discard_line()
            self.replica.learn_discard(self.sequencer.discard)
            server.carrier.publish(self.sequencer.beat())


class Clerk:
    """Who is alive, which view is active, which is granted; and the bag."""

    def __init__(self, servers: int, k: int, *, large_payloads: bool) -> None:
        self.now = 100.0
        self.large_payloads = large_payloads
        self.bag: list[Letter] = []
        self.requests: list[tuple[NodeId, int]] = []
        self.confirmations: list[tuple[NodeId, View]] = []
        self.canonical: list[Identity] = []  # the longest log that was ever delivered anywhere
        self.epochs_led: dict[int, NodeId] = {}
        self.incarnations = dict.fromkeys(NAMES, 1)
        self.alive: dict[str, Process] = {}
        names = NAMES[:servers]
        self.active = View(1, "A", tuple((name, 1) for name in names), k)
        self.pending: View | None = None
        self.epoch = 1
        first = encode_entry("", 0, 0, b"view 1")
        for name in NAMES:
            stored = StoredStream(promised=1, accepted=1, entries=(first,))
            process = self.alive[name] = Process(self, (name, 1), stored)
            process.replica.servers, process.replica.leader = tuple(names), "A"
            process.replica.stable_said = 1
            if name in names:
                process.role = Server(process.replica, 1, k)
            process.step(process.replica.learn_stable, 1)
        self.grant("A", names, k)

    # --- Views ---

    def grant(self, leader: str, servers: str, k: int) -> None:
        """Give the next epoch to these; it replaces what was granted and not activated."""
        self.epoch += 1
        view = View(self.epoch, leader, tuple(self.alive[name].node for name in servers), k, base=self.active.epoch)
        self.pending = view
        self.repeat_grant()

    def repeat_grant(self) -> None:
        """The leader may not have heard, or may be another process by now."""
        view = self.pending
        if view is not None and view.leader in self.alive and self.alive[view.leader].node in view.servers:
            leader = self.alive[view.leader]
            leader.step(leader.take_grant, view, self.active)

    def judge(self, request: tuple[NodeId, int]) -> None:
        """Somebody asks for its view to be active: only the newest grant becomes so."""
        node, epoch = request
        if self.pending is not None and self.pending.epoch == epoch:
            self.active, self.pending = self.pending, None
        if self.active.epoch == epoch:
            self.confirmations.append((node, self.active))

    def confirm(self, confirmation: tuple[NodeId, View]) -> None:
        """The answer reaches who asked, if it is still there."""
        node, view = confirmation
        process = self.alive.get(node[0])
        if process is not None and process.node == node:
            process.step(process.lead, view)

    def answer_all(self) -> None:
        """Judge every request and tell everybody."""
        while self.requests:
            self.judge(self.requests.pop(0))
        while self.confirmations:
            self.confirm(self.confirmations.pop(0))

    def leaders(self) -> list[Process]:
        """Who leads, rightly or not, the newest first."""
        found = [process for process in self.alive.values() if process.sequencer is not None]
        return sorted(found, key=lambda process: -process.replica.log.accepted)

    def takes_over(self, leader: Process) -> None:
        """A new leader is about to order: everything that anybody ever delivered must be in its log."""
        epoch = leader.replica.log.accepted
        assert self.epochs_led.setdefault(epoch, leader.node) == leader.node, "two leaders of one epoch"
        assert self.canonical == leader.log[: len(self.canonical)], "a stable entry did not survive"

    def survivors(self) -> list[str]:
        """Servers of the active view whose processes live."""
        return [name for name, which in self.active.servers if name in self.alive and self.alive[name].node[1] == which]

    def successor(self, left: list[str]) -> str:
        """Who of these survivors can take over from the active view; "" if nobody can."""
        leader = self.active.leader
        if leader in left and self.alive[leader].has_led(self.active):
            return leader if len(left) >= self.active.promises_its_leader_needs else ""
        return left[0] if len(left) >= self.active.promises_needed else ""

    # --- Processes ---

    def kill(self, name: str) -> None:
        """The process is gone with all it had; what it said is still on its way."""
        del self.alive[name]

    def start(self, name: str, state: list[bytes], epoch: int) -> None:
        """Another process under the name, inserted with what the leader had delivered."""
        self.incarnations[name] += 1
        host = ListHost()
        host.delivered = list(state)
        seq = len(state)
        stored = StoredStream(accepted=epoch, base=seq, checkpoint_seq=seq, checkpoint=host.snapshot())
        process = Process(self, (name, self.incarnations[name]), stored, tuple(state))
        process.replica.servers, process.replica.leader = self.active.names, self.active.leader
        self.alive[name] = process

    def discard_line(self) -> int:
        """What all have delivered; without large payloads receivers that lag are not waited for."""
        waited_for = self.alive if self.large_payloads else self.survivors()
        return min((len(self.alive[name].host.delivered) for name in waited_for), default=0)

    # --- The bag ---

    def say_to_all(self, sender: NodeId, message: PeerMessage) -> None:
        """One letter to each of the others."""
        self.bag += [Letter(sender, name, message) for name in NAMES if name != sender[0]]

    def deliver(self, letter: Letter) -> None:
        """A letter arrives at whoever has the name now."""
        process = self.alive.get(letter.to)
        if process is not None:
            process.step(process.receive, letter.sender, letter.message)

    def tick(self, seconds: float) -> None:
        """Time passes for everybody."""
        self.now += seconds
        for process in list(self.alive.values()):
            process.step(process.tick)


def is_large(body: bytes) -> bool:
    """Whether this payload travels apart from its order."""
    return body.startswith(b"large")


@functools.lru_cache(maxsize=10_000)
def identity(entry: bytes) -> Identity:
    """Who submitted an entry, under which number, and what: the same whether the payload stands in it or apart."""
    if is_reference(entry):
        reference = decode_reference(entry)
        return (reference.origin, reference.incarnation, reference.n, reference.crc)
    parts = decode_entry(entry)
    return (parts.origin, parts.incarnation, parts.n, crc32(parts.body))
