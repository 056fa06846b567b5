"""A client of a real run: a process with one session, which does what the simulator's applications do.

    python -m tests.faults.client '{"address": …, "node": …, "name": …, "seed": …, "workload": …, "durable": …,
                                     "file": …}'

It *is* a simulated application (``groupsvc.testing.sim.application``), on a real socket and the machine's clock: the
client library's own session machine, and the same lines for whatever it calls and is told. So what judges simulated
applications judges real ones. What the simulator sees by looking into a daemon nobody sees here, and no line says it.

Like the library's own drivers it reads all that has come before it lets time pass, and looks again after it has sent.
It is told what to do by lines on its standard input, and answers each with one line:

    how     {"calls": open calls, "state": of its session, "parts": […]}
    quiet   from now on it begins nothing, and votes for whatever is open
    speak   one message more in every group, flushed, and a catch-up
    last    {"last": [number, group, barrier, resets, who]}: come to a barrier once more
    end     close the session, and end
"""

from __future__ import annotations

import heapq
import itertools
import json
import math
import os
import random
import select
import sys
from collections.abc import Callable
from typing import Any

import attrs

from groupsvc import clock
from groupsvc.attributes import GroupAttributes
from groupsvc.drivers.connection import DaemonConnection
from groupsvc.drivers.daemon_socket import DaemonSocket
from groupsvc.errors import GroupServiceError, PeerProtocolError
from groupsvc.sansio import asking
from groupsvc.sansio.event_buffer import EventBuffer
from groupsvc.sansio.membership_machine import Membership
from groupsvc.session_states import IS_OVER, SessionState
from groupsvc.testing.sim.application import Application, Part
from groupsvc.testing.sim.application_barriers import Attendance
from groupsvc.testing.sim.application_deeds import Deeds
from groupsvc.testing.sim.application_lines import Pen
from groupsvc.testing.sim.application_tables import SimulatedTable
from groupsvc.testing.sim.application_votes import cast
from groupsvc.testing.sim.applications import Applications
from groupsvc.views import text_of
from groupsvc.wire.client_messages import AnyClientRequest
from groupsvc.wire.history import SCHEMA_VERSION, EventType, HistoryEvent, to_line
from groupsvc.wire.limits import EVENTS_MAX

from .workloads import WORKLOADS, Workload

KNOCK_S = 1.0
"""How long a daemon may take to greet; one that is stopped is tried again."""

FRAMES_PER_LOOK = 256
LAST_S = 15.0
"""Of the last calls."""


class Lines:
    """Written at once and whole: whoever is killed has written what it did before."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._number = 0

    def add(
        self, t: float, op: str, *, local: float = 0.0, node: str = "", inc: int = 0, who: str = "",
        type: EventType = "event", group: int = 0, n: int = 0, crc: int = 0, args: dict[str, Any],
        result: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """A line of a call, or of an event."""
        self._write(HistoryEvent(
            v=SCHEMA_VERSION, i=self._next(), t=t, local=local, node=node, inc=inc, who=who, type=type, op=op,
            group=group, n=n, crc=crc, args=args, result=result or {},
        ))  # fmt: skip

    def add_of_application(
        self, t: float, local: float, node: str, who: str, group: int, seq: int, crc: int, args: dict[str, Any]
    ) -> None:
        """What it was told."""
        self._write(HistoryEvent(
            v=SCHEMA_VERSION, i=self._next(), t=t, local=local, node=node, who=who, op="told", group=group, seq=seq,
            crc=crc, args=args,
        ))  # fmt: skip

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _write(self, event: HistoryEvent) -> None:
        os.write(self._fd, to_line(event))


@attrs.define(eq=False)
class Place:
    """The node it is on, as an application of the simulator knows one."""

    name: str
    incarnation: int = 0  # of the daemon that greeted last
    engine: None = None
    offset: float = 0.0
    rate: float = 1.0
    running: bool = True
    paused: bool = False

    @property
    def highest_incarnation(self) -> int:
        """For lines."""
        return self.incarnation


class RealWorld:
    """The machine's clock, and what is to be done when."""

    play = None

    def __init__(self, seed: int, path: str) -> None:
        self.seed = seed
        self.history = Lines(path)
        self.marks: dict[str, int] = {}
        self._heap: list[tuple[float, int, Callable[[Any, Any], None], Any, Any]] = []
        self._numbers = itertools.count()

    @property
    def t(self) -> float:
        """Now."""
        return clock.now()

    def push(self, t: float, action: Callable[[Any, Any], None], a: Any = None, b: Any = None) -> None:
        """Do it at that time."""
        heapq.heappush(self._heap, (t, next(self._numbers), action, a, b))

    def run_due(self) -> None:
        """What is due now, but nothing that is put off by it to this same moment."""
        now = clock.now()
        while self._heap and self._heap[0][0] <= now:
            _, _, action, a, b = heapq.heappop(self._heap)
            action(a, b)

    @property
    def wait_s(self) -> float:
        """Until the next thing is due."""
        return max(0.0, self._heap[0][0] - clock.now()) if self._heap else math.inf

    def found(self, invariant: str, text: str) -> None:
        """Something that must not be; the harness reads it among the lines."""
        self.history.add(self.t, "found", who="sim", args={"invariant": invariant, "text": text})


class Line:
    """A connection to the daemon."""

    def __init__(self, socket: DaemonSocket) -> None:
        self.socket = socket
        self.is_broken = False
        self.has_sent = False
        self.daemon = 0

    def say(self, requests: list[AnyClientRequest]) -> None:
        """One frame."""
        self.socket.send(requests)
        self.has_sent = True

    def break_off(self, **_: Any) -> None:
        """Close it."""
        self.is_broken = True
        self.socket.close()

    def process_ended(self, _: float) -> None:
        """As above."""
        self.break_off()


class Program(Application):
    """An application on a real socket."""

    connection: Any
    address = ""

    def enter(
        self, membership: Membership, votes: str, buffer: EventBuffer, table: SimulatedTable | None = None
    ) -> Part:
        self.all.group = membership.numbering[0]  # type: ignore[attr-defined]
        return super().enter(membership, votes, buffer, table)

    def _knock(self, life: int, session: int) -> None:
        machine = self.machine
        if session != self.session or machine is None or machine.state in IS_OVER or self.connection is not None:
            return
        try:
            opened = DaemonConnection(self.address, KNOCK_S, client=self.name)
        except GroupServiceError:
            self.turn()
            if self.machine is machine and not machine.id:
                machine.lose("no daemon")  # a session that was never open is not waited for
                self.turn()
            elif self.machine is machine:
                self.world.push(self.world.t + self.all.rng.uniform(0.02, 0.2), self._knock, life, session)
            return
        self.node.incarnation = opened.welcome.incarnation  # type: ignore[attr-defined]
        self.connection = Line(opened.detach())
        machine.connected(self.clock())
        self.turn()

    def look(self) -> bool:
        """Read all that has come; whether anything was done, so that one has to look again."""
        line = self.connection
        if line is None:
            return False
        machine, is_over, received = self.machine, line.socket.is_over, 0
        line.has_sent = False
        try:
            while received < FRAMES_PER_LOOK and (replies := line.socket.receive()) is not None:
                received += 1
                if machine is not None:
                    machine.received(replies, self.clock(), line.socket.last_size)
        except PeerProtocolError as problem:
            self.all.broken("K2", f"{self.name} is told what cannot be: {problem}", self)
            raise
        if received == FRAMES_PER_LOOK:
            self.turn()
            return True
        if (is_over or (machine is not None and machine.is_hung_up)) and self.connection is line:
            line.break_off()
            self._is_cut_off()
            return True
        self.turn()
        if self.connection is line:
            line.socket.flush()
        return received > 0 or line.has_sent

    def _is_cut_off(self) -> None:
        machine, self.connection = self.machine, None
        if machine is None:
            return
        machine.disconnected(self.clock())
        if machine.id:
            self.world.push(self.world.t + self.all.rng.uniform(0.005, 0.1), self._knock, self.life, self.session)
        else:
            machine.lose("the daemon closed the connection or died")
        self.turn()


class RealDeeds(Deeds):
    """The same, in the proportions of a workload; but nobody casts a vote past the library."""

    def be_like(self, workload: Workload, rng: random.Random) -> None:
        """From now on; what was drawn before is the same for all processes of a run."""
        self.rng = rng
        if workload.deeds:
            known = {deed.__name__.lstrip("_"): deed for _, deed in self._deeds}
            self._deeds = tuple((weight, known[name]) for name, weight in workload.deeds.items())  # type: ignore[assignment]
            self._weights = [weight for weight, _ in self._deeds]

    def be_durable(self) -> None:
        """All groups are on disks: on three, and stable on two, so that one of them can be lost."""
        for name, drawn in self.attributes.items():
            said = {word: getattr(drawn, word) for word in drawn._said if word != "delivery"}
            on_disk = {"durable": True, "on_quorum_lost": None, "replicas": 3, "commit_k": None}
            self.attributes[name] = GroupAttributes(**{**said, **on_disk})

    def _vote(self, app: Application, what: Any) -> None:
        part, proposal, answer = what
        if self.all.quiet and not app.may_act:
            app.world.push(app.world.t + 0.2, self._vote_later, (app, app.life), what)
            return
        cast(app, part, proposal, answer)


class Programs(Applications):
    """The one of this process."""

    def __init__(self, world: RealWorld, place: Place, name: str, address: str, workload: Workload) -> None:
        self.world = world  # type: ignore[assignment]
        self.rng = random.Random(f"{world.seed}/{name}")
        self.habits = workload.habits
        self.quiet = False
        self.group = 0
        self.pen = Pen()
        self.proposals = {}
        self.came_too_late = set()
        self._opened_in = {}
        deeds = RealDeeds(self, random.Random(f"{world.seed}/groups"))
        deeds.be_like(workload, random.Random(f"{world.seed}/{name}/deeds"))
        deeds.table_rng = random.Random(f"{world.seed}/{name}/tables")
        self.deeds = deeds
        self.attendance = Attendance(self)
        self.attendance.rng = random.Random(f"{world.seed}/{name}/barriers")
        self.attendance.kept_rng = random.Random(f"{world.seed}/{name}/kept")
        self.app = Program(self, name, place)  # type: ignore[arg-type]
        self.app.address = address
        self.all = [self.app]

    def begin(self) -> None:
        """It lives."""
        self.app.begin()
        self._think(self.app)
        if self.habits.barriers:
            self.attendance.begin(self.app)

    def group_of(self, app: Application, member: int) -> int:
        return self.group

    def become_quiet(self) -> None:
        """Nothing new; and it reads all."""
        self.quiet = True
        for part in self.app.parts.values():
            if part.membership.buffer is not None:
                part.membership.buffer._limit = EVENTS_MAX
        self.app.turn()

    # --- Told by the harness ---

    def obey(self, words: dict[str, Any]) -> dict[str, Any]:
        """One order."""
        match words["do"]:
            case "quiet":
                self.become_quiet()
            case "speak":
                for part in list(self.app.parts.values()):
                    if part.is_ready and self.app.may_act:
                        self._speak(part)
            case "last":
                self._come_last(*words["last"])
            case "close":
                if self.app.machine is not None and self.app.may_act:
                    self.app.close()
                    self.app.turn()
        return self.how()

    def how(self) -> dict[str, Any]:
        """How it stands."""
        app = self.app
        state = "none" if app.machine is None else app.machine.state.value
        return {
            "who": app.name, "node": app.node.name, "state": state, "calls": len(app.open_calls),
            "failed": len(app.failed_calls), "made": app.calls, "may_act": app.may_act,
            "is_behind": app.machine is not None and bool(app.machine.due),
            "open": [f"{op} {number}" for number, (op, _) in app.open_calls.items()][:5],
            "parts": [_about(part) for part in app.parts.values() if part.is_open],
            "barriers": {
                group: {terms.name: terms.parties for terms in all_terms}
                for group, all_terms in self.attendance.barriers.items()
            },
        }  # fmt: skip

    def _speak(self, part: Part) -> None:
        app = self.app
        app.multicast(part, 1)
        app.flush(part, LAST_S)
        if app.machine is None or not part.is_open:
            return

        def caught_up(verdict: str, result: Any) -> dict[str, Any]:
            if verdict != "ok":
                return {}
            app.read_all()
            return {"seq": result, "version": part.membership.view.state_version}

        start = asking.sync(app.machine, part.membership)
        app.call("catch_up", start, {"m": part.m}, LAST_S, caught_up, group=part.group)
        app.turn()

    def _come_last(self, number: int, group: str, barrier: str, resets: bool, those: list[str]) -> None:
        app = self.app
        for part in list(app.parts.values()):
            me = part.membership.my_id
            if part.name == group and me is not None and text_of(me) in those and app.may_act:
                terms = next(one for one in self.attendance.barriers[group] if one.name == barrier)
                self.attendance.come(app, part, terms, LAST_S, resets=resets, last=number)
        app.turn()


def _about(part: Part) -> dict[str, Any]:
    membership = part.membership
    return {
        "group": part.group, "name": part.name, "is_caught_up": membership.is_caught_up,
        "me": "" if membership.my_id is None else text_of(membership.my_id),
        "listed": sorted(provider.id for provider in membership.view.providers),
        "in_ballot": membership._proposal is not None,
    }  # fmt: skip


def main(argv: list[str]) -> int:
    """Live until standard input ends, or "end" comes."""
    told = json.loads(argv[0])
    workload = WORKLOADS[told["workload"]]
    world = RealWorld(told["seed"], told["file"])
    programs = Programs(world, Place(told["node"]), told["name"], told["address"], workload)
    if told["durable"]:
        programs.deeds.be_durable()  # type: ignore[attr-defined]
    programs.begin()
    app, unread, ends_at = programs.app, b"", math.inf
    os.set_blocking(0, False)
    while True:
        while app.look():
            pass
        world.run_due()
        if app.connection is not None and app.connection.has_sent:
            continue
        is_closed = app.machine is None or app.machine.state is SessionState.CLOSED
        if clock.now() >= ends_at or (ends_at < math.inf and is_closed):
            return 0
        waits = [0] if ends_at == math.inf else []
        if app.connection is not None:
            waits += app.connection.socket.fds
        wait_s = min(world.wait_s, 0.5, max(0.0, ends_at - clock.now()))
        ready, _, _ = select.select(waits, [], [], wait_s)
        if 0 in ready:
            read = os.read(0, 65536)
            *whole, unread = (unread + read).split(b"\n")
            if not read:
                whole.append(b'{"do": "end"}')
            for words in map(json.loads, whole):
                if words["do"] == "end":
                    ends_at = clock.now() + 3.0
                    programs.obey({"do": "close"})
                    continue
                sys.stdout.write(json.dumps(programs.obey(words)) + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
