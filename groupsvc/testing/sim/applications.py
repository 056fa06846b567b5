"""All simulated applications of a world: where they run, what befalls them, and what is known of them together.

Beside what their daemons suffer (``nemeses``), they have troubles of their own, drawn from the seed: a connection
breaks, and each side notices in its own time; a process is killed and started again; it is stopped, for longer than any
lease; it reads too slowly; its code that answers is stuck, which its library says, while other code of it goes on and
votes. When its machine is off, it is, too.

An application does not know which group it is in, only its name: a group can end, and another one be formed under the
same name. The harness notes the id when a daemon says that somebody has joined, so that the checkers know.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import attrs

from groupsvc import events
from groupsvc.errors import Rejected
from groupsvc.sansio.session_machine import SessionMachine
from groupsvc.voting import Counted, Outcome
from groupsvc.voting_words import DefaultCast
from groupsvc.wire.client_messages import AnyClientReply, CastVote, ClientReply, ClientRequest, JoinedAs, Subscribed
from groupsvc.wire.limits import EVENTS_MAX, RESPONSIVE_S

from .application import Application, Part
from .application_barriers import Attendance
from .application_deeds import Deeds
from .application_lines import Pen
from .application_ops import FENCE_BITS
from .application_tasks import Stage
from .application_votes import note_taken
from .holders import look_for_holders
from .local_connection import LocalConnection

if TYPE_CHECKING:
    from .node import Node
    from .world import World

FIRST_CONNECTION = 1_000_000
"""Connections of applications have numbers from here on, those of other clients lower ones."""

TROUBLES = ("app-break", "app-kill", "app-stop", "app-slow")
"""What befalls an application; the lines and marks of each begin with its name."""

STUCK = "app-stuck"
"""One more, which may come beside the others: it is drawn from a source of its own."""

PROPOSALS_KNOWN_MAX = 30
"""Of a group, for whoever asks how one ended."""


@attrs.frozen(kw_only=True)
class ApplicationHabits:
    """What the applications of a world do, and how they fare."""

    count: int = 0
    groups: int = 2
    parts_max: int = 2  # groups that one of them is in
    think_s: float = 0.5  # mean pause between two deeds
    burst: int = 3  # messages in one deed, at most
    watch: float = 0.2  # share of those who come that only watch
    tables: float = 0.0  # share of the groups whose providers keep a table
    barriers: int = 0  # of each group; 0: nobody comes to any
    keeps: float = 0.0  # share of the barriers whose rounds are kept, and at which who dies is waited for
    ranks: int = 0  # so many tasks work in rounds, beside the others, and who dies is replaced; 0: there are none
    earlier: float = 0.0  # share of joins to other groups that ask for earlier messages
    trouble_s: float = 10.0  # mean pause between two troubles of one application; 0: they have none
    troubles: tuple[str, ...] = TROUBLES
    exclusive: float = 0.0  # share of the groups in which a provider may hold something alone
    fast: float = 0.0  # share of the groups that deliver before k servers hold an entry
    continues: float = 0.0  # share of those that go on without their tail when their quorum is lost; others dissolve
    hunted: bool = False  # whether the enemies of groups look for theirs, too
    breaks_again: float = 0.0  # share of broken connections after which the next one breaks as soon as it is made
    stuck_s: float = 0.0  # mean pause between two times that the code which answers is stuck; 0: it never is


class Applications:
    """All of them."""

    def __init__(self, world: World, rng: random.Random, habits: ApplicationHabits) -> None:
        self.world = world
        self.rng = rng
        self.habits = habits
        self.quiet = False
        self.pen = Pen()
        self.proposals: dict[int, list[str]] = {}  # by group: the ids of some that have ended
        self.came_too_late: set[str] = set()  # names of those whose join was taken back, or lost
        self._opened_in: dict[tuple[int, int], int] = {}  # by group and ballot: the view in which it was opened
        self._connections: dict[int, LocalConnection] = {}
        self._last_connection = FIRST_CONNECTION
        self._group_of: dict[tuple[str, int, int], int] = {}
        self.deeds = Deeds(self, rng)
        self.attendance = Attendance(self)
        self._again_rng = random.Random(f"{world.seed}/connections that break again")
        self._breaks_next: set[str] = set()  # names of those whose next connection breaks at once
        self._stuck_rng = random.Random(f"{world.seed}/applications that are stuck")
        self.all = [
            Application(self, f"app-{number}", world.nodes[rng.choice(world.names)])
            for number in range(1, habits.count + 1)
        ]
        for app in self.all:
            world.push(rng.random(), self._begin, app, None)
            if habits.trouble_s:
                world.push(rng.expovariate(1.0 / habits.trouble_s), self._trouble, app, None)
            if habits.stuck_s:
                world.push(self._stuck_rng.expovariate(1.0 / habits.stuck_s), self._get_stuck, app, None)
        self.stage = Stage(self)
        self.all += self.stage.workers
        for app in self.stage.workers:
            world.push(self.stage.rng.random(), self._begin, app, None)
            if habits.trouble_s:
                world.push(self.stage.rng.expovariate(1.0 / habits.trouble_s), self._trouble, app, None)

    def at(self, node: Node, name: str) -> Application:
        """An application that runs now, and does only what it is told."""
        app = Application(self, name, node)
        self.all.append(app)
        app.begin()
        return app

    # --- Lives ---

    def _begin(self, app: Application, _: object) -> None:
        if app.is_running:
            return
        if app.node.down_silent:  # the machine is off
            self.world.push(self.world.t + 0.5, self._begin, app, None)
            return
        app.begin()
        if app in self.stage.workers:
            self.stage.begin(app)
            return
        self._think(app)
        if self.habits.barriers:
            self.attendance.begin(app)

    def _think(self, app: Application) -> None:
        pause = self.rng.expovariate(1.0) * self.habits.think_s
        self.world.push(self.world.t + pause, self._next, app, app.life)

    def _next(self, app: Application, life: int) -> None:
        if app.life != life:
            return
        if not app.is_stopped:
            self.deeds.next(app)
        if app.life == life:
            self._think(app)

    def daemon_ended(self, node: Node) -> None:
        """The process of a daemon is gone; if its machine is off, so are the applications."""
        for app in self.all:
            if app.node is not node:
                continue
            if node.down_silent:
                app.end("its machine is off", 0.0)
                self.world.push(self.world.t + self.rng.uniform(0.5, 3.0), self._begin, app, None)
            elif app.connection is not None:
                app.connection.daemon_died(self.rng.random() * 0.05)

    # --- Troubles ---

    def _trouble(self, app: Application, _: object) -> None:
        if self.quiet:
            return
        rng, world = self.rng, self.world
        world.push(world.t + rng.expovariate(1.0 / self.habits.trouble_s), self._trouble, app, None)
        what = rng.choice(self.habits.troubles)
        if not app.is_running or app.is_stopped:
            return
        if what == "app-kill":
            world.fault(what, "begin", target=app.name)
            app.end("killed", rng.random() * 0.01)
            world.push(world.t + rng.expovariate(1.0), self._begin, app, None)
        elif what == "app-stop":
            world.fault(what, "begin", target=app.name)
            app.stop()
            world.push(world.t + rng.choice([0.5, 3.0, 7.0]) * (0.5 + rng.random()), self._go_on, app, app.life)
        elif what == "app-slow":
            world.fault(what, "begin", target=app.name)
            app.reads_again_at = app.clock() + rng.uniform(1.0, 8.0)
        elif app.connection is not None:
            world.fault(what, "begin", target=app.name)
            self.break_connection(app)

    def _get_stuck(self, app: Application, _: object) -> None:
        """Its code that answers has been busy for so long that its library says so from now on, for a while."""
        if self.quiet:
            return
        rng, world = self._stuck_rng, self.world
        world.push(world.t + rng.expovariate(1.0 / self.habits.stuck_s), self._get_stuck, app, None)
        machine, lasts_s = app.machine, rng.uniform(0.3, 4.0)
        if machine is not None and app.is_running and not app.is_stopped:
            world.fault(STUCK, "begin", target=app.name)
            machine.busy_since = app.clock() - RESPONSIVE_S
            world.push(world.t + lasts_s, self._works_again, machine, None)

    def _works_again(self, machine: SessionMachine, _: object) -> None:
        machine.busy_since = None

    def break_connection(self, app: Application) -> None:
        """Its connection breaks; each side notices in its own time."""
        rng, connection = self.rng, app.connection
        assert connection is not None
        slow = rng.random() < 0.15
        connection.break_off(
            process_after=rng.uniform(2.0, 5.0) if slow else rng.random() * 0.2,
            daemon_after=rng.uniform(0.0, 3.0) if rng.random() < 0.3 else rng.random() * 0.1,
            lingers=rng.random() < 0.5,
        )
        if self._again_rng.random() < self.habits.breaks_again:
            self._breaks_next.add(app.name)

    def _go_on(self, app: Application, life: int) -> None:
        if app.life == life:
            app.go_on()

    def heal(self) -> None:
        """Nothing befalls them any more: all run, and all read."""
        self.quiet = True
        self._breaks_next.clear()
        for app in self.all:
            app.go_on()
            for connection in app.connections:
                connection.hurry()
            app.reads_again_at = app.clock() if app.is_running else app.reads_again_at
            if app.machine is not None:
                app.machine.busy_since = None
            for part in app.parts.values():
                if part.membership.buffer is not None:
                    part.membership.buffer._limit = EVENTS_MAX
            if app.is_running:
                app.turn()
            else:
                self._begin(app, None)

    # --- Connections ---

    def connect(self, app: Application) -> LocalConnection:
        """A new connection to the daemon of its node."""
        self._last_connection += 1
        connection = LocalConnection(app, app.node, self._last_connection)
        self._connections[connection.number] = connection
        if app.name in self._breaks_next:
            self._breaks_next.discard(app.name)
            rng = self._again_rng
            # What it says first comes late: perhaps after what it has said by the one after this.
            connection.break_off(
                process_after=rng.random() * 0.2, daemon_after=rng.uniform(0.1, 2.0), lingers=True
            )  # fmt: skip
        return connection

    def has_arrived(self, connection: LocalConnection, request: ClientRequest) -> None:
        """What one of them has said has come to its daemon, which has dealt with it, unless it stands still."""
        app = connection.application
        if isinstance(request, CastVote) and connection is app.connection:
            note_taken(app, connection, request)

    def replied(self, node: Node, number: int, message: ClientReply, at: float) -> None:
        """A daemon says something to one of them."""
        connection = self._connections.get(number)
        if connection is None:
            return
        reply: AnyClientReply = message  # type: ignore[assignment]
        if isinstance(reply, JoinedAs | Subscribed):
            self._note_group(connection, reply)
        connection.replied(reply, at)

    def _note_group(self, connection: LocalConnection, reply: JoinedAs | Subscribed) -> None:
        node = connection.node
        key = (node.name, node.process, reply.member)
        sessions = getattr(node.engine, "sessions", None)
        if key in self._group_of or sessions is None:
            return
        session = sessions._by_connection.get(connection.number)
        part = session.parts.get(reply.member) if session is not None else None
        local = getattr(part, "local", None)
        # Who came and went within one step of its daemon is no part of it any more, and is told of which it was.
        self._group_of[key] = local.id if local is not None else reply.numbering[0]

    def group_of(self, app: Application, member: int) -> int:
        """The id of the group that it is a member of; 0 if nobody knows."""
        connection = app.connection
        return 0 if connection is None else self._group_of.get((app.node.name, connection.daemon, member), 0)

    # --- What they find out ---

    def seen(self, app: Application, part: Part, event: events.Event) -> None:
        """One of them has read something; rare things leave a mark."""
        match event:
            case events.Approved() | Rejected():
                self._note_outcome(part, event.outcome)
                opened_in = self._opened_in.pop((part.group, event.outcome.proposal.ballot), None)
                if opened_in is not None and event.view is not None and opened_in != event.view.fence >> FENCE_BITS:
                    self.mark("app-ballot-across-views")
            case events.PhaseEnded():
                self._note_defaults(event.tally)
            case events.Proposed():
                self._opened_in.setdefault((part.group, event.proposal.ballot), event.view.fence >> FENCE_BITS)
            case events.Joined():
                if len(event.providers) > 1:
                    self.mark("app-batch-of-joins")
                if any(one.name in self.came_too_late for one in event.providers):
                    self.mark("app-join-withdrawn-after-approval")
            case events.Left():
                self.mark(f"app-left-{event.cause.value}")
                look_for_holders(self, app, part, event)
            case events.Unresponsive():
                self.mark("app-unresponsive")
            case _:
                pass

    def _note_outcome(self, part: Part, outcome: Outcome) -> None:
        self._note_defaults(outcome.tally)
        known = self.proposals.setdefault(part.group, [])
        if "@" not in outcome.proposal.id and outcome.proposal.id not in known:
            known.append(outcome.proposal.id)
            del known[:-PROPOSALS_KNOWN_MAX]

    def _note_defaults(self, tally: tuple[Counted, ...]) -> None:
        for counted in tally:
            if counted.default is not DefaultCast.NOT:
                self.mark(f"app-default-{counted.default.value}")

    def mark(self, name: str) -> None:
        """A place worth knowing that a run came by."""
        self.world.marks[name] = self.world.marks.get(name, 0) + 1

    def broken(self, invariant: str, text: str, app: Application) -> None:
        """An application was told something it must not be told."""
        self.world.found(invariant, f"{text} (at {app.node.name})")
