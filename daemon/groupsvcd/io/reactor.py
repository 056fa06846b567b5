"""The loop that drives the engine.

One round: wait until something is readable or a deadline comes; read everything there is, peers before
clients because leases hang on them; one engine step per frame; execute the effects, which lays messages into
outboxes; flush, so that everything for one receiver leaves in one frame.

Time has rules of its own here. A process can be stopped for seconds anywhere in this file (SIGSTOP, a debugger, a
suspended machine), and what the others sent meanwhile is waiting in the sockets. An engine that saw its clock jump
before it saw those frames would declare live nodes dead. So a Tick is given only after the sockets were found
empty, and not if the clock jumped since they were.

Programs inside the daemon act on the engine like everything else: within a step. They hand what they want to do to
``call``, from this thread.

``Persist`` goes to the journal thread; when it comes back its ``then`` is executed and the engine told. Without
a state directory it comes back in the same round, but never inside the step that asked for it.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Container, Sequence
from typing import Any, Protocol, cast

import attrs
import zmq

from groupsvc.errors import PeerProtocolError
from groupsvc.wire import frames
from groupsvc.wire.codec import Codec
from groupsvc.wire.kinds import FrameKind

from ..core import effects as fx
from ..core.access import Principal
from ..core.events import ClientCame, ClientFrame, ClientGone, Event, LocalCall, PeerFrame, PeerRefused, Persisted, Tick
from ..core.peer_messages import DOMAIN_TOPIC, PEER_CODEC, Goodbye, PeerMessage
from ..core.tally import Histogram, Measured
from ..observe import notable
from ..observe.log import event
from . import clocks
from .clients import Clients, Gone
from .complaints import Complaints
from .journal import Journal
from .outbox import Outbox
from .peers import EVERYTHING, Peers
from .sockets import GOODBYE_LINGER_MS
from .watch import Watch

FRAMES_PER_ROUND = 256
"""From each source before what came out of them is sent: bounds the delay of the first by the last."""
ROUNDS_BEFORE_TICK = 8
"""A flood of frames delays a Tick by at most this many rounds."""
JUMP_S = 0.05
"""A clock that advanced more than this between reading the sockets and the Tick: read them again."""
DEADLINE_EVERY_S = 0.005
"""While frames come in, the engine is asked for its deadline so often: one that has moved up may be late by this."""
WAIT_S_MAX = 1.0
STALE_WRITE_S = 1.0
ROUND_BOUNDS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Of the statistics: from a round with one frame in it, to one that costs the node its lease."""

EXIT_OK = 0
EXIT_HALTED = 3
EXIT_DISK = 5

log = logging.getLogger(__name__)


class Machine(Protocol):
    """What the reactor drives: ``groupsvcd.core.engine.Engine``."""

    @property
    def deadline(self) -> float: ...

    @property
    def incarnation(self) -> int: ...

    @property
    def domain(self) -> bytes: ...

    def start(self, now: float) -> list[fx.Effect]: ...

    def step(self, event: Event, now: float) -> list[fx.Effect]: ...


class EventJournal(Protocol):
    """Where ``Journal`` effects go: ``groupsvcd.observe.events.EventWriter``."""

    def write(self, effect: fx.Journal, incarnation: int) -> None: ...

    def flush(self) -> None: ...


class Attendant(Protocol):
    """Whoever is to hear of the daemon from time to time."""

    due: float

    def attend(self) -> None:
        """A round has ended, and ``due`` has come."""


class Sideline(Protocol):
    """What is done beside the engine, when there is time for it: ``groupsvcd.io.pages.Pages``."""

    @property
    def deadline(self) -> float: ...

    def tick(self) -> None: ...

    def close(self) -> None: ...


@attrs.frozen(kw_only=True)
class ReactorStatistics:
    """How the loop fares: every second since it began was waited or worked through."""

    rounds: Measured  # seconds of each, without the wait before it
    waited_s: float


class Reactor:
    """Drives one engine until it is stopped; ``run`` returns the exit code.

    It is made empty and gets its sockets by ``attach``, because the sockets report to it.
    """

    def __init__(
        self,
        engine: Machine,
        node: str,
        *,
        watch: Watch,
        complaints: Complaints,
        journal: Journal | None = None,
        events: EventJournal | None = None,
        clock: Callable[[], float] = clocks.now,
    ) -> None:
        self._engine = engine
        self._name = node
        self._node = node.encode()
        self._watch = watch
        self._complaints = complaints
        self._journal = journal
        self._events = events
        self._clock = clock
        self.other_version: Callable[[frames.OtherVersion], None] = self._bad_frame
        self.adopt: Callable[[fx.Adopt], None] = lambda effect: None  # the domain says something about options
        self._peers: Peers | None = None
        self._clients: Clients | None = None
        self._exit: int | None = None
        self._deadline = -math.inf  # of the engine, when it was last asked
        self._ask_deadline_at = -math.inf
        self._has_signals = False
        self._on_signal: dict[int, Callable[[], None]] = {}
        self._attendants: list[Attendant] = []
        self._sideline: Sideline | None = None
        self._rounds = Histogram(ROUND_BOUNDS_S)
        self._waited_s = 0.0
        self._waits_since = self._woke_at = math.inf  # the newest moments in which it began to wait, and to work
        self._unsynced: deque[fx.Persist] = deque()
        self._refused: deque[str] = deque()
        self._calls: deque[Callable[[], None]] = deque()
        self._to_do: deque[Callable[[], None]] = deque()  # when all has left that was laid down
        codec = cast(Codec[PeerMessage], PEER_CODEC)  # effects speak of the base class
        self._to_peers: Outbox[str, PeerMessage] = Outbox(codec, clock, self._too_large)
        self._to_topics: Outbox[bytes, PeerMessage] = Outbox(codec, clock, self._too_large)
        self._poller = zmq.Poller()
        self._poller.register(watch.fileno(), zmq.POLLIN)
        self._wake, self._wake_signal = socket.socketpair()
        self._wake.setblocking(False)
        self._wake_signal.setblocking(False)
        watch.add(self._wake.fileno(), self._signalled)
        if journal is not None:
            watch.add(journal.fileno(), self._journal_finished)
        self._execute_by_type: dict[type, Callable[[Any], None]] = {
            fx.SendToPeer: self._send_to_peer,
            fx.Multicast: self._multicast,
            fx.ReplyToClient: lambda effect: None,  # until there are clients
            fx.Persist: self._persist,
            fx.Connect: self._connect,
            fx.Disconnect: self._disconnect,
            fx.Subscribe: self._subscribe,
            fx.Unsubscribe: self._unsubscribe,
            fx.Journal: self._journal_event,
            fx.Afterwards: self._afterwards,
            fx.Adopt: lambda effect: self.adopt(effect),
            fx.Halt: self._halt,
            fx.Stop: self._stop,
        }

    def attach(self, peers: Peers | None, clients: Clients | None, sideline: Sideline | None = None) -> None:
        """The sockets to drive; a domain of one without an address has no peers."""
        self._peers, self._clients, self._sideline = peers, clients, sideline
        if peers is not None:
            for peer_socket in (peers.router, peers.subscriber):
                self._poller.register(peer_socket, zmq.POLLIN)
        if clients is not None:
            self._poller.register(clients.router, zmq.POLLIN)
            self._execute_by_type[fx.ReplyToClient] = clients.reply

    def statistics(self) -> ReactorStatistics:
        """Since the daemon started."""
        return ReactorStatistics(rounds=self._rounds.measured(), waited_s=self._waited_s)

    def refused(self, node: str) -> None:
        """Nobody listens at the address of ``node``; told to the engine in this round."""
        self._refused.append(node)

    def call(self, action: Callable[[], None]) -> None:
        """Do ``action`` in a step of the engine, in this round or the next; only from the thread of ``run``.

        Who is called by the engine, in a step, needs none of this: it acts on the engine directly.
        """
        self._calls.append(action)

    def client_came(self, client: int, principal: Principal) -> None:
        """A new connection of a program; the engine knows before its first request."""
        self._step(ClientCame(client, principal))

    def record(self, op: str, args: dict[str, Any]) -> None:
        """A line for the event journal and the log that the engine has no part in."""
        self._journal_event(fx.Journal(op, args=args))

    def stop_on_signals(self) -> None:
        """From now on SIGTERM and SIGINT end ``run`` cleanly."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # the byte in the wake-up socket is what counts
        signal.set_wakeup_fd(self._wake_signal.fileno(), warn_on_full_buffer=False)
        self._has_signals = True

    def on_signal(self, number: signal.Signals, action: Callable[[], None]) -> None:
        """From now on this signal means ``action``, done in the thread of ``run`` between two steps of the engine."""
        self._on_signal[number] = action
        signal.signal(number, lambda *_: None)

    def attended_by(self, attendant: Attendant) -> None:
        """Somebody is to hear, after rounds that really ended, that this one runs and how it is."""
        self._attendants.append(attendant)

    def halt(self, reason: str) -> None:
        """End ``run`` after this round: something that no restart of the others will change."""
        self._halt(fx.Halt(reason))

    def stop(self, exit_code: int = EXIT_OK) -> None:
        """End ``run`` after this round."""
        if self._exit is None:
            self._exit = exit_code

    def run(self) -> int:
        """Start the engine and drive it; the exit code."""
        try:
            self._execute(self._engine.start(self._clock()))
            self._settle()
            while self._exit is None:
                self._round(dict(self._poller.poll(self._wait_ms())))
                for attendant in self._attendants:
                    if self._clock() >= attendant.due:
                        attendant.attend()
        except Exception:
            text = "the engine or its driver broke; stopping, so that a fresh start can recover"
            log.exception(text, extra=event("broken"))
            return EXIT_HALTED
        return self._exit

    def say_goodbye(self) -> None:
        """Tell the peers that this incarnation will never act again; call after ``run`` returned ``EXIT_OK``."""
        if self._peers is None:
            return
        self._to_topics.put(DOMAIN_TOPIC, Goodbye())
        for node in self._peers.names:
            self._to_peers.put(node, Goodbye())
        self._flush_peers()

    def close(self, exit_code: int) -> None:
        """Close the sockets; after a clean end the last frames get a moment to leave."""
        linger_ms = GOODBYE_LINGER_MS if exit_code == EXIT_OK else 0
        if self._peers is not None:
            self._peers.close(linger_ms)
        if self._clients is not None:
            self._clients.close(linger_ms)
        if self._sideline is not None:
            self._sideline.close()
        if self._has_signals:
            signal.set_wakeup_fd(-1)
        self._wake.close()
        self._wake_signal.close()

    # --- One round --------------------------------------------------------------------------------------

    def _wait_ms(self) -> int:
        self._waits_since = now = self._clock()
        if self._woke_at < now:
            self._rounds.observe(now - self._woke_at)
        if now >= self._ask_deadline_at:
            self._deadline = deadline = self._engine.deadline
            self._ask_deadline_at = now + DEADLINE_EVERY_S
        else:
            deadline = min(self._deadline, self._ask_deadline_at)
        if self._unsynced or self._refused or self._calls or self._to_do:
            return 0
        if self._peers is not None:
            if self._peers.has_unread:
                return 0
            deadline = min(deadline, self._peers.deadline)
        if self._clients is not None:
            deadline = min(deadline, self._clients.deadline)
        for attendant in self._attendants:
            deadline = min(deadline, attendant.due)
        if self._sideline is not None:
            deadline = min(deadline, self._sideline.deadline)
        if deadline <= now:
            return 0  # also for -inf: a client that was given up while its replies were sent
        return math.ceil(min(deadline - now, WAIT_S_MAX) * 1000)

    def _round(self, ready: Container[object]) -> None:
        self._woke_at = looked = self._clock()
        if looked > self._waits_since:
            self._waited_s += looked - self._waits_since
        if self._sideline is not None and looked >= self._sideline.deadline:
            self._sideline.tick()
        if looked < self._deadline:  # no Tick is due; what is still unread comes in the next round
            self._read(ready, looked)
            self._settle()
            return
        self._ask_deadline_at = -math.inf
        for _ in range(ROUNDS_BEFORE_TICK):
            looked = self._clock()
            emptied = self._read(EVERYTHING, looked)
            self._settle()
            if self._exit is not None or looked < self._engine.deadline:
                return
            if emptied and self._clock() - looked < JUMP_S:
                break
        self._step(Tick())
        self._settle()

    def _read(self, ready: Container[object], now: float) -> bool:
        """Step with everything that has come to ``ready``, up to a cap; whether they are empty now."""
        if self._watch.fileno() in ready:
            self._watch.run()
        emptied = True
        peers = self._peers
        if peers is not None:
            peers.run()
            for raw in peers.receive(FRAMES_PER_ROUND, ready):
                self._peer_frame(raw)
            emptied = peers.is_empty
            if ready is EVERYTHING:  # nobody waits for what these say, so they need not wake us
                peers.read_subscriptions()
        while self._refused:
            self._step(PeerRefused(self._refused.popleft()))
        for _ in range(len(self._calls)):
            self._step(LocalCall(self._calls.popleft()))
        clients = self._clients
        if clients is not None and (clients.router in ready or clients.deadline <= now):
            for client, what in clients.receive(FRAMES_PER_ROUND):
                if isinstance(what, Gone):
                    self._step(ClientGone(client, process_ended=what is Gone.PROCESS))
                else:
                    self._step(ClientFrame(client, what))
            emptied = emptied and clients.is_empty
        return emptied

    def _settle(self) -> None:
        """Finish writes that need no disk, then send everything that was laid down."""
        for _ in range(len(self._unsynced)):
            self._finish(self._unsynced.popleft())
        if self._peers is not None:
            self._flush_peers()
        if self._to_do:
            self._do_what_could_wait()
        if self._clients is not None:
            self._clients.flush()
        if self._events is not None:
            self._events.flush()
        if self._journal is not None and self._journal.oldest_age() > STALE_WRITE_S:
            self._complaints.note("slow disk", f"the oldest write has been waiting {self._journal.oldest_age():.1f} s")

    def _do_what_could_wait(self) -> None:
        for _ in range(len(self._to_do)):
            self._step(LocalCall(self._to_do.popleft()))
        if self._peers is not None:
            self._flush_peers()

    def _peer_frame(self, raw: memoryview) -> None:
        try:
            frame = frames.unpack(raw)
            if frame.kind is not FrameKind.PEER:
                raise PeerProtocolError(f"a frame of kind {frame.kind.name} does not come from a peer")
            if frame.sender == self._name:
                raise PeerProtocolError(f"a frame that says it comes from {frame.sender}, which is this node")
            messages = PEER_CODEC.decode(frame.body)
        except frames.OtherVersion as problem:
            self.other_version(problem)
            return
        except (PeerProtocolError, RecursionError, ValueError) as problem:
            self._bad_frame(problem)
            return
        self._step(PeerFrame(frame.sender, frame.incarnation, frame.domain, messages, frame.wire))

    def _bad_frame(self, problem: Exception) -> None:
        self._complaints.note("bad frame", str(problem))

    # --- Steps and effects ------------------------------------------------------------------------------

    def _step(self, event: Event) -> None:
        if self._exit is None:
            self._execute(self._engine.step(event, self._clock()))

    def _execute(self, effects: Sequence[fx.Effect]) -> None:
        execute = self._execute_by_type
        for effect in effects:
            if self._exit is not None:
                return
            execute[type(effect)](effect)

    def _send_to_peer(self, effect: fx.SendToPeer) -> None:
        if self._peers is not None:
            self._to_peers.put(effect.node, effect.message, effect.valid_until)

    def _multicast(self, effect: fx.Multicast) -> None:
        if self._peers is not None:
            self._to_topics.put(effect.topic, effect.message, effect.valid_until)

    def _persist(self, effect: fx.Persist) -> None:
        if self._journal is None:
            self._unsynced.append(effect)
        else:
            self._journal.write(effect)

    def _connect(self, effect: fx.Connect) -> None:
        if self._peers is not None:
            self._peers.connect(effect.node, effect.address, listen=effect.listen)

    def _disconnect(self, effect: fx.Disconnect) -> None:
        if self._peers is not None:
            self._peers.disconnect(effect.node)

    def _subscribe(self, effect: fx.Subscribe) -> None:
        if self._peers is not None:
            self._peers.subscribe(effect.topic)

    def _unsubscribe(self, effect: fx.Unsubscribe) -> None:
        if self._peers is not None:
            self._peers.unsubscribe(effect.topic)

    def _journal_event(self, effect: fx.Journal) -> None:
        if effect.valid_until != math.inf and effect.valid_until < self._clock():
            return  # nor does what it tells of leave
        notable.tell(effect)
        if self._events is not None:
            self._events.write(effect, self._engine.incarnation)

    def _afterwards(self, effect: fx.Afterwards) -> None:
        self._to_do.append(effect.action)

    def _halt(self, effect: fx.Halt) -> None:
        log.error("halted: %s", effect.reason, extra=event("halted", reason=effect.reason))
        self.stop(EXIT_HALTED)

    def _stop(self, effect: fx.Stop) -> None:
        log.info("stopping: %s", effect.reason, extra=event("drained", reason=effect.reason))
        self.stop()

    def _flush_peers(self) -> None:
        if self._to_topics.waiting:
            self._to_topics.flush(self._multicast_body)
        if self._to_peers.waiting:
            self._to_peers.flush(self._send_body)

    def _multicast_body(self, topic: bytes, body: bytes) -> None:
        assert self._peers is not None
        self._peers.multicast(self._packed(body, topic))

    def _send_body(self, node: str, body: bytes) -> None:
        assert self._peers is not None
        self._peers.send(node, self._packed(body))

    def _packed(self, body: bytes, topic: bytes = b"") -> bytes:
        engine = self._engine
        return frames.pack(FrameKind.PEER, engine.domain, self._node, engine.incarnation, body, topic=topic)

    def _too_large(self, text: str) -> None:
        self._complaints.note("message too large", text)

    # --- Wake-ups ---------------------------------------------------------------------------------------

    def _journal_finished(self) -> None:
        journal = self._journal
        assert journal is not None
        for effect in journal.finished():
            self._finish(effect)
        if journal.error is not None:
            text = "writing to the state directory failed (%s); stopping at once"
            log.critical(text, journal.error, extra=event("disk_failed", reason=journal.error))
            self.stop(EXIT_DISK)

    def _finish(self, effect: fx.Persist) -> None:
        self._execute(effect.then)
        self._step(Persisted(effect.number))

    def _signalled(self) -> None:
        try:
            numbers = os.read(self._wake.fileno(), 64)
        except BlockingIOError:
            return
        for number in numbers:
            if number in (signal.SIGTERM, signal.SIGINT):
                name = signal.Signals(number).name
                log.info("stopping on %s", name, extra=event("stopping", signal=name))
                self.stop()
            elif number in self._on_signal:
                self._on_signal[number]()
