"""Three voters A, B, C (and whoever else) driven by hand: every message, write and second is the test's to give.

The simulator meets what nobody thought of; here stands what somebody did think of. A test cuts the link from A to
B, loses one message, hangs one disk, lets half a second pass, and says what must be so:

    trio = Trio.in_service()
    trio.cut("A", "B")
    number = trio.set("A", "color", "red")
    trio.run(0.3)
    assert "red" == trio.value(number)

The rules of the driver are kept as the daemon keeps them: effects in order, what is past its ``valid_until`` does
not leave, writes complete in order and their ``then`` follows. Everything else is as plain as it can be: one
delay for all frames, one duration for all syncs, one clock for all nodes.
"""

from __future__ import annotations

import copy
import heapq
import itertools
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Self, TypeVar

import attrs

from groupsvc.testing.sim.disk import Log
from groupsvc.wire.client_messages import (
    ClientReply,
    ClientRequest,
    ConfigAsk,
    ConfigSet,
    ConfigValue,
    HandOverAsk,
    Status,
)
from groupsvcd.core.domain.name_server import NameServer
from groupsvcd.core.domain.voter import Voter
from groupsvcd.core.effects import (
    Adopt,
    Afterwards,
    Connect,
    Disconnect,
    Effect,
    Halt,
    Journal,
    Multicast,
    Persist,
    ReplyToClient,
    SendToPeer,
    Stop,
    Subscribe,
    Unsubscribe,
)
from groupsvcd.core.engine import Engine
from groupsvcd.core.events import ClientFrame, Event, LocalCall, PeerFrame, PeerRefused, Persisted, Tick
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.peer_messages import DOMAIN_STREAM, DOMAIN_TOPIC, Goodbye, PeerMessage
from groupsvcd.core.records import (
    NO_DOMAIN,
    AboutRecord,
    AppendRecord,
    CheckpointRecord,
    DropPayloadsRecord,
    ForgetRecord,
    NodeRecord,
    OpenRecord,
    OptionsRecord,
    PayloadRecord,
    PromiseRecord,
    Record,
    Stored,
)

Message = TypeVar("Message", bound=PeerMessage)

SETTLED_S = 4.0
"""From the first start until everybody is in: an election, registrations, one round of leases."""


class Disk:
    """A state directory: what was synced."""

    def __init__(self, state_id: str) -> None:
        self.state_id = state_id
        self.incarnation = 0
        self.domain = NO_DOMAIN
        self.options: tuple[tuple[str, str, int], ...] = ()
        self.logs: dict[int, Log] = {}

    @property
    def log(self) -> Log | None:
        """The domain stream, if there is anything of it."""
        return self.logs.get(DOMAIN_STREAM)

    def write(self, record: Record) -> None:
        """Make one record part of what a restart finds."""
        if isinstance(record, NodeRecord):
            self.incarnation, self.domain = record.incarnation, record.domain
            return
        if isinstance(record, OptionsRecord):
            self.options = record.options
            return
        if isinstance(record, ForgetRecord):
            self.logs.pop(record.stream, None)
            return
        log = self.logs.setdefault(record.stream, Log())
        if isinstance(record, PromiseRecord):
            log.promise(record)
        elif isinstance(record, AppendRecord):
            log.append(record)
        elif isinstance(record, OpenRecord):
            log.open(record)
        elif isinstance(record, CheckpointRecord):
            log.check_point(record)
        elif isinstance(record, AboutRecord):
            log.about = record.about
        elif isinstance(record, PayloadRecord):
            log.payloads[record.payload_id] = record.payload
        elif isinstance(record, DropPayloadsRecord):
            for payload_id in record.payload_ids:
                log.payloads.pop(payload_id, None)

    def stored(self) -> Stored:
        """What a starting engine is given."""
        streams = {stream: log.picture() for stream, log in self.logs.items()}
        return Stored(self.state_id, self.incarnation, self.domain, streams, self.options)

    def copy(self) -> Disk:
        """The same state directory as it is now, for later."""
        twin = Disk(self.state_id)
        twin.incarnation, twin.domain = self.incarnation, self.domain
        twin.options = self.options
        twin.logs = copy.deepcopy(self.logs)
        return twin


@attrs.frozen
class Sent:
    """One message on the wire, whether it arrives or not."""

    at: float
    sender: str
    receiver: str
    message: PeerMessage


@attrs.frozen
class Line:
    """One line of the journal."""

    at: float
    node: str
    op: str
    epoch: int
    args: dict[str, Any]
    group: int = 0
    seq: int = 0


class Trio:
    """A few engines, and the links, disks and clients between them."""

    def __init__(
        self, voters: str = "ABC", others: str = "", *, delay: float = 0.001, sync: float = 0.001,
        of: dict[str, dict[str, Any]] | None = None, **parameters: Any,
    ) -> None:  # fmt: skip
        self.voters = tuple(voters)
        self.names = (*voters, *others)
        self.delay = delay
        self.sync = sync
        self.parameters = parameters
        self.parameters_of = of or {}
        self.now = 100.0
        self.engines: dict[str, Engine] = {}
        self.disks = {name: Disk(f"disk-{name}") for name in self.names}
        self.loses: Callable[[str, str, PeerMessage], bool] = lambda sender, receiver, message: False
        self.sent: list[Sent] = []
        self.journal: list[Line] = []
        self.replies: dict[int, ClientReply] = {}
        self.halted: dict[str, str] = {}
        self.adopted: dict[str, list[tuple[tuple[str, str, int], ...]]] = {}
        self.stopped: dict[str, str] = {}  # in good order, and why
        self.waiting_writes: dict[str, list[Callable[[], None]]] = {}  # of the disks that hang
        self.addresses: dict[tuple[str, str], str] = {}  # who has a link to whom, at which address
        self._listens: set[tuple[str, str]] = set()  # who hears whose multicasts ...
        self._topics: set[tuple[str, bytes]] = set()  # ... and on which topics
        self._cut: set[tuple[str, str]] = set()
        self._to_come: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._requests = itertools.count(1)
        self._lives = dict.fromkeys(self.names, 0)
        self._incarnations = itertools.count(1000, 1000)

    @classmethod
    def in_service(cls, voters: str = "ABC", others: str = "", **arguments: Any) -> Self:
        """All started, a name server elected, everybody let in. Without special wishes A is name server."""
        trio = cls(voters, others, **arguments)
        trio.boot(*trio.names)
        trio.run(SETTLED_S)
        trio.forget_the_past()
        return trio

    def forget_the_past(self) -> None:
        """Only what happens from now on is looked at."""
        self.sent.clear()
        self.journal.clear()

    # --- Processes ---

    def boot(self, *names: str) -> None:
        """Start a process on each one's disk."""
        for name in names:
            self.boot_on(name, self.disks[name])

    def boot_on(self, name: str, disk: Disk) -> None:
        """Start a process on this disk, which is the node's from now on."""
        self.disks[name] = disk
        self._lives[name] += 1
        disk.incarnation = max(disk.incarnation + 1, next(self._incarnations))
        addresses = {voter: f"at:{voter}" for voter in self.voters}
        values: dict[str, Any] = {"voters": self.voters, "voter_addresses": addresses, "durable": True}
        values["address"] = f"at:{name}"
        values |= {**self.parameters, **self.parameters_of.get(name, {})}
        parameters = Parameters(node=name, **values)
        engine = Engine(parameters, disk.stored(), disk.incarnation, Random(f"{name}/{self._lives[name]}"))
        self.engines[name] = engine
        self._execute(name, engine.start(self.now))
        self._plan_tick(name)

    def kill(self, *names: str) -> None:
        """End the process; what is on disk stays, what waits for the disk is lost."""
        for name in names:
            self.engines.pop(name, None)
            self._lives[name] += 1
            self._listens = {pair for pair in self._listens if pair[0] != name}
            self._topics = {pair for pair in self._topics if pair[0] != name}
            if name in self.waiting_writes:
                self.waiting_writes[name] = []

    def refuse(self, node: str, *observers: str) -> None:
        """Each observer finds nobody listening at the node's address."""
        for observer in observers:
            self.step(observer, PeerRefused(node))

    # --- Links and disks ---

    def cut(self, one: str, *others: str) -> None:
        """Both directions between one node and each of the others."""
        self._cut |= {pair for other in others for pair in ((one, other), (other, one))}

    def heal(self) -> None:
        """All links work and nothing is lost any more."""
        self._cut.clear()
        self.loses = lambda sender, receiver, message: False

    def hang_disk(self, name: str) -> None:
        """No write of this node completes until ``mend_disk``."""
        self.waiting_writes.setdefault(name, [])

    def mend_disk(self, name: str) -> None:
        """The writes that waited complete in their order."""
        for complete in self.waiting_writes.pop(name):
            self._at(self.now + self.sync, complete)

    # --- Time ---

    def run(self, seconds: float) -> None:
        """Let this much time pass and everything happen that falls into it."""
        end = self.now + seconds
        while self._to_come and self._to_come[0][0] <= end:
            at, _, action = heapq.heappop(self._to_come)
            self.now = max(self.now, at)
            action()
        self.now = end

    def run_until(self, condition: Callable[[], bool], within: float = 10.0) -> None:
        """Let time pass, half a millisecond at a time, until the condition holds; it must within so many seconds."""
        end = self.now + within
        while not condition():
            assert self.now < end, f"not within {within} s"
            self.run(0.0005)

    def _at(self, at: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._to_come, (at, next(self._order), action))

    def _plan_tick(self, name: str) -> None:
        engine, life = self.engines.get(name), self._lives[name]
        if engine is None or engine.deadline > self.now + 1e9:
            return

        def tick() -> None:
            if self._lives[name] == life and engine.deadline <= self.now:
                self.step(name, Tick())

        self._at(max(engine.deadline, self.now), tick)

    # --- Steps ---

    def step(self, name: str, event: Event) -> None:
        """One event for one engine."""
        engine = self.engines.get(name)
        if engine is not None:
            self._execute(name, engine.step(event, self.now))
            self._plan_tick(name)

    def frame(self, sender: str, receiver: str, *messages: PeerMessage, incarnation: int | None = None) -> None:
        """These very messages arrive now, as from the sender's present process unless told otherwise."""
        engine = self.engines[sender]
        inc = engine.incarnation if incarnation is None else incarnation
        self.step(receiver, PeerFrame(sender, inc, engine.domain, messages))

    def _execute(self, name: str, effects: Iterable[Effect]) -> None:
        out: dict[str, list[PeerMessage]] = {}
        for effect in effects:
            if isinstance(effect, SendToPeer | Multicast | ReplyToClient | Journal) and effect.valid_until < self.now:
                continue
            if isinstance(effect, SendToPeer):
                out.setdefault(effect.node, []).append(effect.message)
            elif isinstance(effect, Multicast):
                for other in self._audience(name, effect.topic):
                    out.setdefault(other, []).append(effect.message)
            elif isinstance(effect, Persist):
                self._write(name, effect)
            elif isinstance(effect, ReplyToClient):
                number = effect.message.id  # type: ignore[attr-defined]
                assert number not in self.replies, f"a second reply: {effect.message}"
                self.replies[number] = effect.message
            elif isinstance(effect, Journal):
                line = Line(self.now, name, effect.op, effect.epoch, effect.args, effect.group, effect.seq)
                self.journal.append(line)
            elif isinstance(effect, Afterwards):
                self._do_afterwards(name, effect.action)
            elif isinstance(effect, Adopt):
                self.adopted.setdefault(name, []).append(effect.options)
            elif isinstance(effect, Stop):
                self._send(name, out)
                self._say_goodbye(name, effect.reason)
                return
            elif isinstance(effect, Halt):
                self._send(name, out)
                self.halted[name] = effect.reason
                self.kill(name)
                return
            else:
                self._change_links(name, effect)
        self._send(name, out)

    def _say_goodbye(self, name: str, reason: str) -> None:
        """The daemon ends, and tells all others."""
        self._send(name, {other: [Goodbye()] for other in self.names if other != name})
        self.stopped[name] = reason
        self.kill(name)

    def _do_afterwards(self, name: str, action: Callable[[], None]) -> None:
        life = self._lives[name]

        def do() -> None:
            if self._lives[name] == life:
                self.step(name, LocalCall(action))

        self._at(self.now, do)

    def _change_links(self, name: str, effect: Connect | Disconnect | Subscribe | Unsubscribe) -> None:
        if isinstance(effect, Connect):
            self.addresses[name, effect.node] = effect.address
            change = self._listens.add if effect.listen else self._listens.discard
            change((name, effect.node))
        elif isinstance(effect, Disconnect):
            self.addresses.pop((name, effect.node), None)
            self._listens.discard((name, effect.node))
        elif isinstance(effect, Subscribe):
            self._topics.add((name, effect.topic))
        else:
            self._topics.discard((name, effect.topic))

    def _audience(self, sender: str, topic: bytes) -> list[str]:
        """Who hears a multicast: of the domain everybody, of a group who listens to its sender and wants its topic."""
        others = [name for name in self.names if name != sender]
        if topic == DOMAIN_TOPIC:
            return others
        return [name for name in others if (name, sender) in self._listens and (name, topic) in self._topics]

    def _send(self, name: str, out: dict[str, list[PeerMessage]]) -> None:
        engine = self.engines[name]
        for receiver, messages in out.items():
            arriving: list[PeerMessage] = []
            for message in messages:
                self.sent.append(Sent(self.now, name, receiver, message))
                if (name, receiver) not in self._cut and not self.loses(name, receiver, message):
                    arriving.append(message)
            if arriving:
                frame = PeerFrame(name, engine.incarnation, engine.domain, tuple(arriving))
                self._at(self.now + self.delay, lambda to=receiver, frame=frame: self.step(to, frame))  # type: ignore[misc]

    def _write(self, name: str, persist: Persist) -> None:
        life, disk = self._lives[name], self.disks[name]

        def complete() -> None:
            if self._lives[name] != life:
                return
            if name in self.waiting_writes:
                self.waiting_writes[name].append(complete)
                return
            for record in persist.records:
                disk.write(record)
            self._execute(name, persist.then)
            self.step(name, Persisted(persist.number))

        self._at(self.now + self.sync, complete)

    # --- Clients ---

    def call(self, node: str, request: Callable[[int], ClientRequest]) -> int:
        """A client of this node asks; returns the number under which its reply is found."""
        number = next(self._requests)
        self.step(node, ClientFrame(1, request(number)))
        return number

    def set(self, node: str, key: str, value: str, if_version: int = 0, timeout: float = 5.0) -> int:
        """A client sets a setting."""
        return self.call(node, lambda number: ConfigSet(number, key, value, if_version, timeout))

    def get(self, node: str, key: str, timeout: float = 5.0) -> int:
        """A client reads a setting."""
        return self.call(node, lambda number: ConfigAsk(number, key, timeout))

    def hand_over(self, node: str, to: str, timeout: float = 5.0) -> int:
        """A client wants another name server."""
        return self.call(node, lambda number: HandOverAsk(number, to, timeout))

    def value(self, number: int) -> str:
        """The value that a call was told."""
        reply = self.replies[number]
        assert isinstance(reply, ConfigValue), reply
        return reply.value

    # --- Looking at it ---

    def status(self, node: str) -> Status:
        """What a daemon says of itself."""
        return self.engines[node].status(0, self.now)

    def voter(self, name: str) -> Voter:
        """The hats of one voter."""
        voter = self.engines[name].voter
        assert voter is not None
        return voter

    def office(self, name: str) -> NameServer:
        """The office of the name server."""
        office = self.voter(name).office
        assert office is not None
        return office

    @property
    def leaders(self) -> list[str]:
        """Who is in office, rightly or not."""
        return [name for name in self.voters if name in self.engines and self.voter(name).office is not None]

    def messages(self, kind: type[Message], sender: str = "", receiver: str = "") -> list[Message]:
        """All messages of a kind that were sent, arrived or not."""
        return [
            line.message
            for line in self.sent
            if isinstance(line.message, kind) and sender in ("", line.sender) and receiver in ("", line.receiver)
        ]

    def lines(self, op: str) -> list[Line]:
        """All lines of the journal with this name."""
        return [line for line in self.journal if line.op == op]
