"""One simulated machine: it drives a production engine as the daemon's reactor does, and can be hurt anywhere.

The reactor's promise is simple: effects are executed in the order of the list, messages of one step for one
peer leave in one frame, what is past its ``valid_until`` does not leave, ``then`` follows the sync. The
simulator keeps it, and between any two effects it may kill the process or make it stand still. A process that
stands still wakes with the rest of its effects undone and a queue of frames in front of it: that is how a
deposed name server finds out whether its words are still its own.

Clocks: the harness counts ``t``; this machine's clock shows ``offset + rate * t`` and never runs backwards.
"""

from __future__ import annotations

import math
import random
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from groupsvc.wire import frames
from groupsvc.wire.client_messages import ClientRequest, Status
from groupsvc.wire.kinds import FrameKind
from groupsvcd.core.access import Principal
from groupsvcd.core.effects import (
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
from groupsvcd.core.events import ClientCame, ClientFrame, ClientGone, Event, LocalCall, PeerRefused, Persisted, Tick
from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.parameters import Parameters
from groupsvcd.core.peer_messages import DOMAIN_TOPIC, PEER_CODEC, Beat, Goodbye, LeaderAlive, PeerMessage

from .any_engine import AnyEngine
from .audiences import Wishes
from .disk import Disk
from .history import NOTHING
from .network import DIRECT, Packet
from .spoken import ACKNOWLEDGING, SPOKEN, words_for
from .trap import Trap

if TYPE_CHECKING:
    from .world import World

INBOX_MAX = 20_000
"""Frames that wait for a process that stands still; more would not fit any socket buffer."""

IDLE_TICKS_MAX = 10_000
"""So many ticks in a row whose deadline has already passed are an engine that spins."""

TICK = Tick()


class Node:
    """A machine, its disk and its clock; the process on it comes and goes."""

    __slots__ = (
        "addresses", "boot", "discards", "disk", "down_silent", "engine", "frames_sent", "handling",
        "highest_incarnation", "idle_ticks", "inbox", "name", "name_bytes", "now", "offset", "on_persisted", "on_spoke",
        "parameters", "paused", "process", "rate", "resumed_at", "rng", "spoken", "starts", "steps", "tick_deadline",
        "trap", "undone", "wall_offset", "wanted", "wishes", "world",
    )  # fmt: skip

    def __init__(self, world: World, parameters: Parameters, rng: random.Random, rate: float, offset: float) -> None:
        self.world = world
        self.parameters = parameters
        self.name = parameters.node
        self.name_bytes = self.name.encode()
        self.rng = rng
        self.rate = rate
        self.offset = offset
        self.wall_offset = 0.0
        self.handling = 2e-5 + 8e-5 * rng.random()  # between a step and its frames on the wire
        self.disk = Disk(self, rng)
        self.engine: AnyEngine | None = None
        self.process = 0  # grows whenever a process begins or ends
        self.starts = 0
        self.boot = ""
        self.steps = 0
        self.frames_sent = 0
        self.highest_incarnation = 0
        self.paused = False
        self.resumed_at = -math.inf
        self.down_silent = False  # the machine is off: nobody there to refuse a connection
        self.now = -math.inf
        self.wanted = math.inf  # the engine's deadline as of its last step
        self.tick_deadline = math.inf  # the deadline for which a tick is on its way
        self.idle_ticks = 0
        self.trap: Trap | None = None
        self.on_persisted: Callable[[Node], None] | None = None
        self.on_spoke: Callable[[Node, str, int, int], None] | None = None  # kind, stream, epoch
        self.undone: list[Effect] = []
        self.inbox: list[tuple[Callable[[Any], None], Any]] = []
        self.addresses: dict[str, str] = {}
        self.wishes = Wishes(world.network.audiences, self.name)
        self.spoken: set[tuple[type[PeerMessage], int, int]] = set()
        self.discards: dict[int, int] = {}  # by group: what this process said, as leader, that nobody needs any more

    # --- The process ----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether a process is there, awake or not."""
        return self.engine is not None

    @property
    def groups(self) -> NodeGroups | None:
        """The groups of the running process; None for engines of tests, which have none."""
        return getattr(self.engine, "groups", None)

    def start(self) -> None:
        """Begin a process on whatever the disk holds."""
        world = self.world
        disk = self.disk
        if not self.parameters.durable:
            disk.make_blank()
        stored = disk.stored()
        incarnation = max(stored.incarnation + 1, int(self.wall() * 1e6))
        if stored.incarnation == 0:
            # A blank machine has only its clock; whoever sets it up sees to it that it is not behind.
            incarnation = max(incarnation, self.highest_incarnation + 1)
        disk.incarnation = incarnation
        self.process += 1
        self.starts += 1
        self.boot = f"{self.name}.{self.starts}"
        self.paused = self.down_silent = False
        self.now = -math.inf
        self.tick_deadline = math.inf
        self.idle_ticks = 0
        self.trap = self.on_persisted = None
        self.undone.clear()
        self.inbox.clear()
        self.spoken.clear()
        self.discards.clear()
        self.addresses = dict(self.parameters.voter_addresses)
        rng = random.Random(f"{world.seed}/{self.name}/{self.starts}")
        self.highest_incarnation = max(self.highest_incarnation, incarnation)
        parameters = attrs.evolve(self.parameters, started_ms=int(self.wall() * 1e3))
        try:
            engine = world.make_engine(parameters, stored, incarnation, rng)
        except Exception:
            world.found("engine", f"{self.name} could not be made: {traceback.format_exc()}")
            return
        self.engine = engine
        args: dict[str, Any] = {"rate": self.rate, "state_id": stored.state_id, "durable": self.parameters.durable}
        if stored.incarnation == 0 and self.starts > 1:
            args["lost_disk"] = True
        if disk.outdated:
            args["outdated"] = True
        self.line("boot", args)
        for stream, log in sorted(disk.logs.items()):
            if log.damage:
                self.line("damaged", {"what": log.damage}, group=stream)
        if self.starts > 1:
            self.line("restart", {})
        try:
            effects = engine.start(self.clock())
        except Exception:
            world.found("engine", f"{self.name} could not start: {traceback.format_exc()}")
            return
        self.execute(effects)
        self.plan_tick()
        if self.engine is engine:
            world.group_users.process_began(self)
            world.newcomers.process_began(self)

    def crash(self, why: str, *, power: bool = False) -> None:
        """End the process between two instructions. With ``power`` the machine is off, too, and refuses nobody."""
        engine = self.engine
        if engine is None:
            self.down_silent |= power
            return
        self.highest_incarnation = max(self.highest_incarnation, engine.incarnation)
        self.line("crash", {"why": why})
        self.engine = None
        self.process += 1
        self.paused = False
        self.down_silent = power
        self.undone.clear()
        self.inbox.clear()
        self.trap = self.on_persisted = None
        self.disk.process_died()
        self.wishes.forget()
        if power:
            self.offset = 60.0 * self.rng.random() - self.rate * self.world.t  # its clock counts from its boot
        self.world.process_ended(self)

    def disk_failed(self) -> None:
        """The sync came back with EIO: the daemon stops at once and does not try again."""
        self.crash("fsync answered EIO")

    def pause(self) -> None:
        """The process stands still; what comes for it waits."""
        if self.running and not self.paused:
            self.paused = True
            self.line("pause", {})

    def resume(self) -> None:
        """Go on: first what was left undone, then everything that waited, then a Tick."""
        if not self.paused:
            return
        self.paused = False
        if not self.running:
            return
        self.resumed_at = self.world.t
        self.line("resume", {})
        process = self.process
        undone, self.undone = self.undone, []
        self.execute(undone)
        inbox, self.inbox = self.inbox, []
        for position, (handle, what) in enumerate(inbox):
            if self.process != process:
                return
            if self.paused:
                self.inbox[:0] = inbox[position:]
                return
            handle(what)
        if self.process == process and not self.paused:
            self.tick_deadline = math.inf
            self.step(TICK)

    # --- Clocks ---------------------------------------------------------------------------------------

    def clock(self) -> float:
        """What this machine's steady clock shows."""
        self.now = max(self.now, self.offset + self.rate * self.world.t)
        return self.now

    def wall(self) -> float:
        """What this machine believes the time of day to be."""
        return self.world.wall_base + self.world.t + self.wall_offset

    # --- Events ---------------------------------------------------------------------------------------

    def step(self, event: Event) -> None:
        """One step of the engine and all its effects."""
        engine = self.engine
        if engine is None:
            return
        self.now = now = max(self.now, self.offset + self.rate * self.world.t)
        self.steps += 1
        try:
            effects = engine.step(event, now)
        except Exception:
            self.world.found("engine", f"{self.name} broke in a step with {event!r}: {traceback.format_exc()}")
            return
        if effects:
            self.execute(effects)
            if self.engine is not engine:
                return
        self.wanted = deadline = engine.deadline
        if deadline < self.tick_deadline:
            self._plan(deadline)

    def plan_tick(self) -> None:
        """Have a Tick when the engine wants one; an earlier one that is already planned looks again then."""
        if self.engine is not None:
            self.wanted = self.engine.deadline
            if self.wanted < self.tick_deadline:
                self._plan(self.wanted)

    def _plan(self, deadline: float) -> None:
        self.tick_deadline = deadline
        t = (deadline - self.offset) / self.rate
        self.world.push(max(t, self.world.t + 2e-5), self.tick, self.process, deadline)

    def tick(self, process: int, deadline: float) -> None:
        """The moment the engine asked for, if it still does."""
        if process != self.process or deadline != self.tick_deadline or self.engine is None:
            return
        self.tick_deadline = math.inf
        if self.paused:
            return  # ``resume`` ends with a Tick
        if deadline > self.now:
            self.now = max(deadline, self.offset + self.rate * self.world.t)
        if self.wanted > self.now:
            self._plan(self.wanted)  # it was put off since
            return
        self.step(TICK)
        if self.wanted > self.now or self.engine is None:
            self.idle_ticks = 0
            return
        self.idle_ticks += 1
        if self.idle_ticks > IDLE_TICKS_MAX:
            self.world.found("engine", f"{self.name} asks for ticks without end: deadline {deadline}")

    def receive(self, packet: Packet, _: object) -> None:
        """A frame has arrived."""
        if self.engine is None:
            return
        if self.paused:
            self.later(self.take, packet)
            return
        event = packet.event
        if event is None:
            event = packet.open()
            if event is None:
                self.world.network.frames_refused += 1
                return
        self.step(event)

    def take(self, packet: Packet) -> None:
        """A frame that waited in the queue."""
        self.receive(packet, None)

    def later(self, handle: Callable[[Any], None], what: Any) -> None:
        """Queue something for when the process runs again."""
        if len(self.inbox) < INBOX_MAX:
            self.inbox.append((handle, what))

    def _step_or_queue(self, event: Event) -> None:
        if self.paused:
            self.later(self.step, event)
        else:
            self.step(event)

    def refused(self, peer: str) -> None:
        """A connection attempt to a peer's address found nobody listening."""
        self._step_or_queue(PeerRefused(peer))

    def client_says(self, connection: int, message: ClientRequest) -> None:
        """A request has come from a local client."""
        self._step_or_queue(ClientFrame(connection, message))

    def client_came(self, connection: int, principal: Principal) -> None:
        """A local client has connected, and this is who it is."""
        self._step_or_queue(ClientCame(connection, principal))

    def client_gone(self, connection: int, *, process_ended: bool = False) -> None:
        """A local client has closed its connection, perhaps because its process has ended."""
        self._step_or_queue(ClientGone(connection, process_ended=process_ended))

    def call(self, action: Callable[[], None]) -> None:
        """A program inside the daemon acts on the engine, within a step."""
        self._step_or_queue(LocalCall(action))

    def persisted(self, batch: Sequence[Persist]) -> None:
        """The disk has synced these; their ``then`` effects may go and the engine is told, one by one."""
        for persist in batch:
            if self.paused:
                self.later(self.complete, persist)
            else:
                process = self.process
                self.complete(persist)
                if process != self.process:
                    return

    def complete(self, persist: Persist) -> None:
        """One write is safe."""
        if self.on_persisted is not None:
            process = self.process
            self.on_persisted(self)
            if self.process != process:
                return
            if self.paused:
                self.later(self.complete, persist)
                return
        process = self.process
        self.execute(persist.then)
        if self.process == process:
            self._step_or_queue(Persisted(persist.number))

    def persisted_in_memory(self, process: int, persist: Persist) -> None:
        """A node without a state directory has nothing to wait for, but is told as late as any other."""
        if process != self.process:
            return
        for record in persist.records:
            self.disk.apply(record, seen=True)
        self.persisted([persist])

    # --- Effects --------------------------------------------------------------------------------------

    def execute(self, effects: Sequence[Effect]) -> None:
        """Execute effects in order, unless a trap springs between two of them."""
        if self.trap is None:
            self._execute(effects)
            return
        for position, effect in enumerate(effects):
            trap = self.trap
            if trap is not None:
                if trap.effects_left <= 0:
                    self.trap = None
                    process = self.process
                    trap.spring(self)
                    if self.process != process:
                        return
                else:
                    trap.effects_left -= 1
            if self.paused:
                self._put_off(effects[position:])
                return
            self._execute((effect,))
            if self.engine is None:
                return

    def _put_off(self, effects: Sequence[Effect]) -> None:
        # What the engine says of itself was so when it took the step; only what others would see waits.
        for effect in effects:
            if isinstance(effect, Journal) and effect.valid_until == math.inf:
                self.journal(effect)
            else:
                self.undone.append(effect)

    def _execute(self, effects: Sequence[Effect]) -> None:
        world = self.world
        at = world.t + self.handling
        clock = self.offset + self.rate * at
        if clock < self.now:
            clock = self.now
        outgoing: dict[str | bytes, list[PeerMessage]] | None = None  # by peer, or by topic
        for effect in effects:
            kind = type(effect)
            if kind is SendToPeer:
                if effect.valid_until < clock:  # type: ignore[union-attr]
                    world.dropped_stale += 1
                    continue
                if outgoing is None:
                    outgoing = {}
                peer = effect.node  # type: ignore[union-attr]
                messages = outgoing.get(peer)
                if messages is None:
                    outgoing[peer] = [effect.message]  # type: ignore[union-attr, list-item]
                else:
                    messages.append(effect.message)  # type: ignore[union-attr, arg-type]
            elif kind is Journal:
                if effect.valid_until >= clock:  # type: ignore[union-attr]
                    self.journal(effect)  # type: ignore[arg-type]
            elif kind is Multicast:
                if effect.valid_until < clock:  # type: ignore[union-attr]
                    world.dropped_stale += 1
                    continue
                if outgoing is None:
                    outgoing = {}
                outgoing.setdefault(effect.topic, []).append(effect.message)  # type: ignore[union-attr, arg-type]
            elif isinstance(effect, Persist):
                if self.parameters.durable:
                    self.disk.submit(effect)
                else:
                    world.push(world.t + 1e-5, self.persisted_in_memory, self.process, effect)
            elif isinstance(effect, ReplyToClient):
                if effect.valid_until < clock:
                    world.dropped_stale += 1
                    continue
                world.replied(self, effect.client, effect.message, at)
            elif kind is Afterwards:
                world.push(at, self._do_afterwards, self.process, effect.action)  # type: ignore[union-attr]
            elif isinstance(effect, Connect | Disconnect | Subscribe | Unsubscribe):
                self._change_links(effect, at)
            elif isinstance(effect, Halt | Stop):
                if outgoing is not None:
                    self._flush(outgoing, at)
                self._halt(effect.reason) if isinstance(effect, Halt) else self._stop(at)
                return
        if outgoing is not None:
            self._flush(outgoing, at)

    def _do_afterwards(self, process: int, action: Callable[[], None]) -> None:
        if process == self.process:
            self._step_or_queue(LocalCall(action))

    def _change_links(self, effect: Connect | Disconnect | Subscribe | Unsubscribe, at: float) -> None:
        wishes, network = self.wishes, self.world.network
        if isinstance(effect, Connect):
            self.addresses[effect.node] = effect.address
            if effect.listen:
                wishes.listen(effect.node, at + network.one_way())
            else:
                wishes.ignore(effect.node)
        elif isinstance(effect, Disconnect):
            self.addresses.pop(effect.node, None)
            wishes.ignore(effect.node)
        elif isinstance(effect, Subscribe):
            wishes.subscribe(effect.topic, at + network.one_way())
        else:
            wishes.unsubscribe(effect.topic)

    def _flush(self, outgoing: dict[str | bytes, list[PeerMessage]], at: float) -> None:
        world = self.world
        engine = self.engine
        if engine is None:
            return
        network = world.network
        process = self.process
        spoken = self.spoken
        for target, messages in outgoing.items():
            peer, topic = (target, DIRECT) if isinstance(target, str) else ("", target)
            for message in messages:
                kind = type(message)
                if kind in SPOKEN:
                    # LeaderAlive is of the domain stream and does not say so.
                    stream = message.stream if kind is not LeaderAlive else 0  # type: ignore[attr-defined]
                    key = (kind, stream, message.epoch)  # type: ignore[attr-defined]
                    if key not in spoken:
                        spoken.add(key)
                        self._spoke(SPOKEN[kind], key[1], key[2])
                        if self.process != process:
                            return
                elif kind is Beat:
                    self._discards(message)  # type: ignore[arg-type]
                elif kind in ACKNOWLEDGING:
                    args = {"kind": ACKNOWLEDGING[kind], "to": peer}
                    self.line("acknowledged", args, epoch=message.epoch)  # type: ignore[attr-defined]
            body = PEER_CODEC.encode(messages)  # type: ignore[arg-type]
            frame = frames.pack(FrameKind.PEER, engine.domain, self.name_bytes, engine.incarnation, body)
            packet = Packet(frame, topic)
            self.frames_sent += 1
            if world.play is not None:
                world.play.sent(self, peer or words_for(topic), messages)
            if topic:
                for listener, since in network.audiences.of(self.name, topic):
                    if since <= at:
                        network.send(self.name, listener, packet, at)
                continue
            address = self.addresses.get(peer)
            reached = world.at_address.get(address) if address is not None else None
            if reached is None or reached is self:
                world.unroutable += 1
            else:
                network.send(self.name, reached.name, packet, at)

    @property
    def connections(self) -> tuple[str, ...]:
        """The nodes that this one keeps a connection to, sorted."""
        return tuple(sorted(name for name in self.addresses if name != self.name)) if self.running else ()

    def _halt(self, reason: str) -> None:
        self.line("halted", {"reason": reason})
        if self.world.halt_is_failure and not (self.disk.outdated and "state directory" in reason):
            self.world.found("halt", f"{self.name} halted: {reason}")
        self.crash(f"halted: {reason}")

    def _stop(self, at: float) -> None:
        """It ends in good order, and says goodbye, as the reactor does."""
        self._flush({DOMAIN_TOPIC: [Goodbye()], **{peer: [Goodbye()] for peer in self.connections}}, at)
        self.crash("stopped")

    # --- Lines of history -----------------------------------------------------------------------------

    def line(self, op: str, args: dict[str, Any], *, group: int = 0, epoch: int = 0, seq: int = 0) -> None:
        """Write what only the driver can see."""
        world = self.world
        engine = self.engine
        world.history.add_of_daemon(
            world.t, self.offset + self.rate * world.t, self.boot, self.name,
            self.highest_incarnation if engine is None else engine.incarnation,
            op, group, epoch, seq, args,
        )  # fmt: skip
        if world.play is not None:
            world.play.happened(self, op, group, epoch, seq, args)

    def journal(self, effect: Journal) -> None:
        """Write what the engine says of itself."""
        world = self.world
        engine = self.engine
        op = effect.op
        marks = world.marks
        if op == "mark":
            name = effect.args.get("name", "")
            marks[name] = marks.get(name, 0) + 1
            return
        marks[op] = marks.get(op, 0) + 1
        args = dict(effect.args) if effect.args else NOTHING
        world.history.add_of_daemon(
            world.t, self.now, self.boot, self.name, engine.incarnation if engine is not None else 0,
            op, effect.group, effect.epoch, effect.seq, args, effect.origin, effect.n, effect.crc,
        )  # fmt: skip
        if world.play is not None:
            world.play.happened(self, op, effect.group, effect.epoch, effect.seq, args)

    def note_persisted(self, record: str, stream: int, epoch: int, seq: int, *, seen: bool, base: int = 0) -> None:
        """Write that one record is on disk; a checkpoint tells behind which entry the log begins now."""
        args = {"kind": record, "seen": seen, "base": base} if base else {"kind": record, "seen": seen}
        self.line("persisted", args, group=stream, epoch=epoch, seq=seq)

    def _spoke(self, kind: str, stream: int, epoch: int) -> None:
        self.line("spoke", {"kind": kind}, group=stream, epoch=epoch)
        if self.on_spoke is not None:
            self.on_spoke(self, kind, stream, epoch)

    def _discards(self, beat: Beat) -> None:
        if beat.stream and beat.discard > self.discards.get(beat.stream, 0):
            self.discards[beat.stream] = beat.discard
            self.line("discarding", {}, group=beat.stream, epoch=beat.epoch, seq=beat.discard)

    def status(self) -> Status | None:
        """What the daemon would say of itself; None while it is down or stands still."""
        return None if self.engine is None or self.paused else self.engine.status(0, self.clock())
