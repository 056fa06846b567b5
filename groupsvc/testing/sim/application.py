"""One simulated application: a process on a node, which drives the client library's real machine.

It does what the drivers of the library do (``groupsvc.drivers``), without their threads: it greets the daemon, hands
the machine what comes, sends what the machine wants said, lets time pass when the machine's deadline has come, knocks
again when the connection is lost, and begins anew when the session is. Its clock is that of its node.

It acts only while its own clock says that the daemon vouches for it, and the last that it was told is that (K2).
Whatever it is told it writes down when it reads it, which may be late; what becomes of its calls, at once.

*Part* is what it has in one group: a membership, or a subscription.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from groupsvc.errors import (
    Failed,
    GroupServiceError,
    JoinRejected,
    OutcomeUnknown,
    PeerProtocolError,
    UsageError,
)
from groupsvc.events import Event, Message, Overrun, Proposed
from groupsvc.positions import Numberings, Position
from groupsvc.sansio import asking
from groupsvc.sansio.applying import MachineDue, Restore
from groupsvc.sansio.asking import Start
from groupsvc.sansio.calls import Call
from groupsvc.sansio.event_buffer import EventBuffer
from groupsvc.sansio.membership_machine import Membership
from groupsvc.sansio.session_machine import Due, SessionMachine, StateDue, VoteDue
from groupsvc.session_states import IS_OVER, SessionState
from groupsvc.views import text_of
from groupsvc.voting import Answer, Outcome, Proposal
from groupsvc.wire.client_messages import REPLY_CODEC, BarrierAsk, CastVote, ClientRequest, RoundAsk
from groupsvcd.core.sessions.sessions import LOST as NOT_RESUMED

from .application_lines import outcome_in_full, view_in_full
from .application_tables import SimulatedTable
from .local_connection import LocalConnection

if TYPE_CHECKING:
    from .applications import Applications
    from .node import Node

KNOCK_AGAIN_S = 0.1
"""Mean pause between two attempts to reach the daemon; the library's own are about as long."""

Ended = Callable[[str, Any], dict[str, Any]]
"""Given how a call ended and its result: what its line says of it."""


@attrs.define(eq=False)
class Part:
    """What an application has in one group."""

    m: int  # its number at this application
    name: str  # of the group
    group: int  # its id; 0 if the harness does not know it
    membership: Membership
    votes: str  # how it votes: by itself, when it reads, when it is asked; "" for a subscription
    sent: list[tuple[int, bytes]] = attrs.field(factory=list)  # multicasts that have not come back: call, payload
    counted: int = 0  # multicasts of it so far
    table: SimulatedTable | None = None
    began_with: int = attrs.field(init=False)  # the entry by which it was let in

    def __attrs_post_init__(self) -> None:
        self.began_with = self.membership.seq

    is_over: bool = False

    @property
    def is_provider(self) -> bool:
        """Whether it takes part, or watches."""
        return self.membership.my_id is not None

    @property
    def is_open(self) -> bool:
        """Whether anything more is told to it."""
        return not self.membership.has_ended

    @property
    def is_ready(self) -> bool:
        """Whether a program would have returned from its join, as a provider."""
        return self.is_provider and self.is_open and self.membership.is_caught_up


class Application:
    """One process after the other, under one name, on one node."""

    def __init__(self, applications: Applications, name: str, node: Node) -> None:
        self.all = applications
        self.world = applications.world
        self.name = name
        self.node = node
        self.life = 0  # grows whenever a process begins or ends
        self.is_running = False
        self.is_stopped = False
        self.reads_again_at = -math.inf
        self.machine: SessionMachine | None = None
        self.session = 0  # how many it has opened
        self.told_state = SessionState.SUSPENDED  # the last that it was told of its session
        self.connection: LocalConnection | None = None
        self.connections: list[LocalConnection] = []  # of this process
        self.parts: dict[int, Part] = {}
        self.on_their_way: dict[int, Callable[[LocalConnection], None]] = {}  # by the id of the request
        self.kept_tables: dict[str, SimulatedTable] = {}  # by group, of parts of this process that are over
        self.read_upto: dict[str, Position] = {}  # by group, the last message that this process has read
        self._numberings = Numberings()  # what this process knows of groups, whatever becomes of its sessions
        self.open_calls: dict[int, tuple[str, dict[str, Any]]] = {}
        self.calls = 0
        self.failed_calls: list[int] = []  # the numbers of those that did not end well
        self.values = 0
        self.members = 0
        self.now = -math.inf
        self._tick_at = math.inf
        self._inbox: list[tuple[LocalConnection, bytes]] = []
        self._noticed: list[LocalConnection] = []
        self._flushes: list[tuple[int, Part, float]] = []  # call, of whom, until when
        self._opening = 0

    # --- The process ---

    def begin(self) -> None:
        """A process begins."""
        self.life += 1
        self.is_running, self.is_stopped = True, False
        self.now, self.reads_again_at = -math.inf, -math.inf
        self.connections, self._inbox, self._noticed = [], [], []
        self.kept_tables, self.read_upto, self._numberings = {}, {}, Numberings()
        self.write("process_began", {"life": self.life})

    def end(self, why: str, daemon_after: float) -> None:
        """kill -9, or its machine is off: what it had asked for, nobody will ever be told."""
        if not self.is_running:
            return
        self.life += 1
        self.is_running = self.is_stopped = False
        self._give_up(f"the process ended: {why}")
        self.write("process_ended", {"why": why})
        for connection in self.connections:
            connection.process_ended(daemon_after)
        self.machine = self.connection = None
        self._tick_at = math.inf

    def _give_up(self, reason: str) -> None:
        for number, (op, args) in list(self.open_calls.items()):
            self.ended(number, op, args, "info", {"why": reason})
        for part in list(self.parts.values()):
            self._part_is_over(part, reason)
        self.parts.clear()
        self._flushes.clear()
        self._opening = 0

    def stop(self) -> None:
        """SIGSTOP."""
        if self.is_running and not self.is_stopped:
            self.is_stopped = True
            self.write("process_stopped", {})

    def go_on(self) -> None:
        """SIGCONT: time has passed, and something may have come."""
        if not self.is_running or not self.is_stopped:
            return
        self.is_stopped = False
        self.write("process_goes_on", {})
        self.turn()
        inbox, self._inbox = self._inbox, []
        for connection, frame in inbox:
            self.receive(connection, frame)
        noticed, self._noticed = self._noticed, []
        for connection in noticed:
            self.disconnected(connection)

    def clock(self) -> float:
        """What its clock shows: its node's, which never runs backwards."""
        self.now = max(self.now, self.node.offset + self.node.rate * self.world.t)
        return self.now

    # --- The session ---

    def open_session(self) -> None:
        """A new session, on a new connection."""
        self.session += 1
        self.told_state = SessionState.SUSPENDED
        self.on_their_way.clear()
        self.machine = SessionMachine(self.name, self._cast, self._numberings)
        self._opening = self.invoke("open_session", {"session": self.session})
        self._knock(self.life, self.session)

    def _knock(self, life: int, session: int) -> None:
        """Try to reach the daemon, until the session is over."""
        machine = self.machine
        if life != self.life or session != self.session or machine is None or machine.state in IS_OVER:
            return
        if self.connection is not None:
            return
        node = self.node
        if self.is_stopped or not node.running or node.paused:
            if not self.is_stopped:
                self.turn()
                if not machine.id and machine.state not in IS_OVER and not node.running:
                    machine.lose("no daemon")  # a session that was never open is not waited for
                    self.turn()
                    return
            pause = self.all.rng.expovariate(1.0 / KNOCK_AGAIN_S)
            self.world.push(self.world.t + pause, self._knock, life, session)
            return
        self.connection = self.all.connect(self)
        self.connections.append(self.connection)
        machine.connected(self.clock())
        self.turn()

    def receive(self, connection: LocalConnection, frame: bytes) -> None:
        """A frame has come."""
        if self.is_stopped:
            self._inbox.append((connection, frame))
            return
        machine = self.machine
        if connection is not self.connection or machine is None or not self.is_running:
            return
        try:
            machine.received(REPLY_CODEC.decode(frame), self.clock())
        except PeerProtocolError as problem:
            self.all.broken("K2", f"{self.name} is told what cannot be: {problem}", self)
            return
        self.turn()

    def arrives(self, connection: LocalConnection, request: ClientRequest) -> None:
        """Something that it has said arrives at its daemon, by the connection that it has."""
        if isinstance(request, CastVote | BarrierAsk | RoundAsk) and connection is self.connection:
            arrived = self.on_their_way.pop(request.id, None)
            if arrived is not None:
                arrived(connection)

    def disconnected(self, connection: LocalConnection) -> None:
        """It notices that a connection is over."""
        if self.is_stopped:
            self._noticed.append(connection)
            return
        machine = self.machine
        if connection is not self.connection or machine is None:
            return
        self.connection = None
        machine.disconnected(self.clock())
        if machine.id:
            pause = self.all.rng.expovariate(1.0 / KNOCK_AGAIN_S)
            self.world.push(self.world.t + pause, self._knock, self.life, self.session)
        else:
            machine.lose("the daemon closed the connection or died")
        self.turn()

    # --- A turn, as the library's drivers take it ---

    def turn(self) -> None:
        """Let time pass, send what is to be sent, do what is due, read."""
        machine = self.machine
        if machine is None or self.is_stopped:
            return
        now = self.clock()
        machine.tick(now)
        self._send(machine)
        self._hand_out(machine)
        if now >= self.reads_again_at:
            self.read()
        self._look_at_flushes(now)
        self._send(machine)
        if self._opening and machine.is_on:
            number, self._opening = self._opening, 0
            self.ended(number, "open_session", {"session": self.session}, "ok", {"number": machine.id})
        if machine.state in IS_OVER:
            self._session_is_over(machine)
        else:
            self._plan(machine)

    def _send(self, machine: SessionMachine) -> None:
        machine.say_what_gathers()
        if machine.outbox and self.connection is not None:
            self.connection.say(machine.outbox)
            machine.outbox.clear()

    def _plan(self, machine: SessionMachine) -> None:
        deadline = min(machine.deadline, *(until for _, _, until in self._flushes), math.inf)
        if self.reads_again_at > self.now:
            deadline = min(deadline, self.reads_again_at)
        if deadline < self._tick_at:
            self._tick_at = deadline
            t = (deadline - self.node.offset) / self.node.rate
            self.world.push(max(t, self.world.t + 2e-5), self._tick, self.life, deadline)

    def _tick(self, life: int, deadline: float) -> None:
        if life != self.life or deadline != self._tick_at:
            return
        self._tick_at = math.inf
        if not self.is_stopped:
            self.now = max(self.now, deadline)
            self.turn()

    def _session_is_over(self, machine: SessionMachine) -> None:
        if machine.end_reason == NOT_RESUMED:
            self.all.mark("app-not-resumed")
        state = "closed" if machine.state is SessionState.CLOSED else "lost"
        if self._opening:
            number, self._opening = self._opening, 0
            self.ended(number, "open_session", {"session": self.session}, "info", {"why": machine.end_reason})
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.break_off(process_after=0.0, daemon_after=0.001, lingers=True)
        self.read_all()
        self.machine = None
        self._tick_at = math.inf
        self._give_up(f"the session is {state}: {machine.end_reason}")

    def close(self) -> None:
        """The program wants its session no longer."""
        machine = self.machine
        assert machine is not None

        def closed(verdict: str, result: Any) -> dict[str, Any]:
            machine.end()
            return {}

        self.call("close_session", asking.close(machine), {}, 2.0, closed)

    # --- Calls ---

    def invoke(self, op: str, args: dict[str, Any], *, group: int = 0) -> int:
        """A call begins."""
        self.calls += 1
        args["id"] = self.calls
        self.open_calls[self.calls] = (op, args)
        self.all.pen.line(self, op, "invoke", args, group=group)
        return self.calls

    def ended(
        self, number: int, op: str, args: dict[str, Any], verdict: Any, result: dict[str, Any], *, group: int = 0
    ) -> None:
        """A call has ended."""
        if self.open_calls.pop(number, None) is None:
            self.all.broken("K1", f"{op} {number} of {self.name} ended twice", self)
            return
        if verdict != "ok":
            self.failed_calls.append(number)
        short: dict[str, Any] = {name: args[name] for name in ("id", "m", "session") if name in args}
        short["id"] = number
        self.all.pen.line(self, op, verdict, short, result, group=group)

    def call(self, op: str, start: Start, args: dict[str, Any], timeout: float, ends: Ended, *, group: int = 0) -> None:
        """Begin a call of the library; its end is one more line."""
        args = {**args, "timeout": timeout}
        number = self.invoke(op, args, group=group)
        life = self.life

        def done() -> None:
            if life == self.life:
                self._call_is_done(call, number, op, args, ends, group)

        try:
            call = start(self.clock(), timeout)
        except GroupServiceError as problem:
            verdict = "info" if isinstance(problem, OutcomeUnknown) else "fail"
            result = {"error": type(problem).__name__, **ends(verdict, problem)}
            self.ended(number, op, args, verdict, result, group=group)
            return
        call.on_done = done

    def _call_is_done(
        self, call: Call, number: int, op: str, args: dict[str, Any], ends: Ended, group: int
    ) -> None:  # fmt: skip
        problem = call.error
        if problem is None:
            result = ends("ok", call.result)
            self.ended(number, op, args, "ok", result, group=int(result.get("group", group)))
        elif isinstance(problem, OutcomeUnknown):
            ends("info", problem)
            self.ended(number, op, args, "info", {"error": "OutcomeUnknown", "ids": list(problem.ids)}, group=group)
        elif isinstance(problem, UsageError | PeerProtocolError) or not isinstance(problem, Failed):
            self.all.broken("K1", f"{op} {args} of {self.name} ended with {problem!r}", self)
        else:
            result = {"error": type(problem).__name__, **ends("fail", problem)}
            if isinstance(problem, JoinRejected):
                result["outcome"] = outcome_in_full(problem.outcome)
            self.ended(number, op, args, "fail", result, group=group)

    # --- Its parts ---

    def enter(
        self, membership: Membership, votes: str, buffer: EventBuffer, table: SimulatedTable | None = None
    ) -> Part:
        """It takes part in a group, or watches it."""
        self.members += 1
        group = self.all.group_of(self, membership.number)
        part = Part(self.members, membership.group, group, membership, votes, table=table)
        if table is not None and membership.my_id is not None:
            line = {"m": part.m}
            table.begins(
                text_of(membership.my_id), group,
                lambda seq, args: self.write("table", {**line, "seq": seq, **args}, group=group),
            )  # fmt: skip
        membership.buffer = EventBuffer() if self.all.quiet else buffer
        self.parts[part.m] = part
        return part

    def began(self, part: Part) -> dict[str, Any]:
        """What the line of a join or of a subscription says."""
        membership = part.membership
        me = "" if membership.my_id is None else text_of(membership.my_id)
        attributes = {name: value for name, value in membership._attributes.items() if name in RULES}
        return {
            "m": part.m, "group": part.group, "provider": me, "view": view_in_full(membership.view),
            "attributes": attributes, "durable": membership._attributes.get("durable") is True,
        }  # fmt: skip

    def _part_is_over(self, part: Part, reason: str) -> None:
        if part.is_over:
            return
        part.is_over = True
        for number, _ in part.sent:
            if number in self.open_calls:
                self.ended(number, "multicast", {"m": part.m}, "info", {"why": reason}, group=part.group)
        part.sent.clear()
        for number, of, _ in self._flushes:
            if of is part and number in self.open_calls:
                self.ended(number, "flush", {"m": of.m}, "info", {"why": reason}, group=part.group)
        self._flushes = [one for one in self._flushes if one[1] is not part]
        self.parts.pop(part.m, None)
        if part.table is not None and part.table.at:
            self.kept_tables[part.name] = part.table
        self.write("member_ended", {"m": part.m, "why": reason}, group=part.group)

    # --- Reading ---

    def read(self) -> None:
        """Everything that is there to be read."""
        for part in list(self.parts.values()):
            buffer = part.membership.buffer
            if buffer is None:
                continue
            while not buffer.is_empty:
                event = buffer.take()
                if event is None:
                    break
                self._has_read(part, event)
            if part.membership.nothing_more and self.parts.get(part.m) is part:
                self._part_is_over(part, part.membership.end_reason or "")

    def read_all(self) -> None:
        """The same for the last time, slow or not."""
        self.reads_again_at = -math.inf
        if self.machine is not None:
            self._hand_out(self.machine)  # what its tables have before them
        self.read()

    def _has_read(self, part: Part, event: Event) -> None:
        if isinstance(event, Overrun):
            self.write("missed", {"m": part.m, "missed": event.missed}, group=part.group)
            self.all.mark("app-missed")
            return
        if not self.all.pen.told(self, part.m, part.group, event):
            return
        if isinstance(event, Message):
            self.read_upto[part.name] = event.view.position
            if event.seq < part.began_with:
                self.all.mark("app-told-earlier")
            self._look_for_own(part, event)
        elif isinstance(event, Proposed) and part.votes == "read" and self.is_running:
            self.all.deeds.asked(self, part, event.proposal)
        self.all.seen(self, part, event)

    def _look_for_own(self, part: Part, message: Message) -> None:
        if part.membership.my_id is None or message.origin != text_of(part.membership.my_id) or not part.sent:
            return
        number, payload = part.sent[0]
        if payload == message.payload:
            del part.sent[0]
            self.ended(number, "multicast", {"m": part.m}, "ok", {"seq": message.seq}, group=part.group)

    # --- Messages ---

    def multicast(self, part: Part, count: int) -> None:
        """So many messages, or as many as there is room for."""
        machine, own = self.machine, part.membership.own
        assert machine is not None
        for _ in range(count):
            part.counted += 1
            name = f"{self.name}:{part.m}:{part.counted}"
            payload = self.all.deeds.payload(part, name)
            if not own.has_room(len(payload)):
                part.counted -= 1
                break
            number = self.invoke("multicast", {"m": part.m, "payload": name}, group=part.group)
            machine.has_spoken.add(part.membership)
            own.add(payload)
            part.sent.append((number, payload))
            if own.wants_out:
                self._send(machine)
        self.turn()

    def flush(self, part: Part, timeout: float) -> None:
        """Wait until all of them have come back."""
        number = self.invoke("flush", {"m": part.m, "timeout": timeout}, group=part.group)
        self._flushes.append((number, part, self.clock() + timeout))
        self.turn()

    def _look_at_flushes(self, now: float) -> None:
        for flush in list(self._flushes):
            number, part, until = flush
            own = part.membership.own
            if flush not in self._flushes or not (own.is_idle or own.error is not None or now >= until):
                continue
            if part.membership.has_ended:
                continue  # it ends with its part
            self.read_all()  # what has come back is read before its author says so
            if flush not in self._flushes:
                continue  # that was the end of its part, or a vote that it was asked for came to look here before
            self._flushes.remove(flush)
            error, own.error = own.error, None
            if error is None and not own.is_idle:
                error = OutcomeUnknown("", own.ids())
            verdict = "ok" if error is None else "info" if isinstance(error, OutcomeUnknown) else "fail"
            self.ended(number, "flush", {"m": part.m}, verdict, {}, group=part.group)

    # --- Votes ---

    def _hand_out(self, machine: SessionMachine) -> None:
        """What is due, in order; while it is slow its tables wait, and the votes that are asked for behind them."""
        due = machine.due
        waiting: list[Due] = []
        is_slow = self.now < self.reads_again_at
        while due:
            task = due.popleft()
            if isinstance(task, StateDue):
                self.told_state = task.state
                self.all.mark(f"app-{task.state.value}")
                self.write("session", {"state": task.state.value, "session": self.session})
            elif waiting or (is_slow and isinstance(task, MachineDue)):
                waiting.append(task)
            else:
                part = next((one for one in self.parts.values() if one.membership is task.membership), None)
                if part is not None and isinstance(task, VoteDue):
                    self.all.deeds.asked(self, part, task.proposal)
                elif isinstance(task, MachineDue):
                    self._apply(task, part)
        due.extend(waiting)

    def _apply(self, task: MachineDue, part: Part | None) -> None:
        checkpoints = [item for item in task.items if isinstance(item, Restore)]
        if part is not None and part.table is not None:
            part.table.checkpoints.extend(item.at for item in checkpoints)
        if any(item.blocks for item in checkpoints):
            self.all.mark("app-table-restored")
        task.run()
        task.settle()
        if task._error is not None:
            self.all.broken("driver", f"the table of {self.name} broke: {task._error!r}", self)

    def _cast(self, membership: Membership, proposal: Proposal, answer: Answer | None) -> None:
        raise AssertionError("applications vote through their part")

    # --- Lines ---

    def write(self, op: str, args: dict[str, Any], *, group: int = 0) -> None:
        """An event."""
        self.all.pen.line(self, op, "event", args, group=group)

    @property
    def may_act(self) -> bool:
        """Whether its own clock says that what it knows is true, and so does the last that it was told of that."""
        machine = self.machine
        if machine is None or not self.is_running or self.is_stopped:
            return False
        states = (machine.state, self.told_state)  # in one frame there may be several, and a vote between two
        return states == (SessionState.CONNECTED,) * 2 and machine.valid_for(self.clock()) > 0

    def new_value(self) -> bytes:
        """Something that nobody has said before."""
        self.values += 1
        return f"{self.name}={self.values}".encode()


RULES = frozenset({
    "batch", "batch_window", "default_vote", "time_limit", "join_phases", "leave_phases", "failure_phases",
    "state_phases", "message_phases", "exclusive",
})  # fmt: skip
"""Attributes of a group that decide about ballots, and who is listed."""


def outcome_of(verdict: str, result: Any) -> dict[str, Any]:
    """What the line of a proposal says of its end."""
    return outcome_in_full(result) if isinstance(result, Outcome) else {}
