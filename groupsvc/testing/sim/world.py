"""A whole domain in one process, from one seed.

The world is a heap of things to come, ordered by (time, number): frames that arrive, syncs that end, ticks,
faults, what clients do next. Nothing else moves. All chance comes from ``random.Random(seed)`` and from
generators derived from the seed and a name, so that the same seed gives the same history, byte for byte,
whatever the interpreter's hash seed.

    world = World(seed=7, nodes=5, voters=3)
    world.run(until=10.0)
    world.nodes["n1"].crash("for the example")
    world.run(until=20.0)

A broken invariant, an exception in a step, or a spinning engine ends the world and is kept in ``failures``.
"""

from __future__ import annotations

import importlib
import random
import traceback
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import attrs

from groupsvc.wire.client_messages import ClientReply
from groupsvcd.core.parameters import Parameters

from .any_engine import EngineMaker
from .applications import FIRST_CONNECTION, ApplicationHabits, Applications
from .clients import Clients, Habits
from .disk import SYNC_S_SPREAD
from .group_users import GroupHabits, GroupUsers
from .group_wishes import Wishes
from .history import History
from .network import CALM, Network, Weather
from .newcomers import NewcomerHabits, Newcomers
from .node import Node
from .schedule import Schedule

if TYPE_CHECKING:
    from .transcript import Play

ENGINE = "groupsvcd.core.engine:Engine"
"""The engine of production; a test may name another in the same form."""

RATE_OFF_MAX = 0.004
"""How far a simulated clock may run from true. Two of them stay within ``CLOCK_DRIFT_MAX`` of each other."""

PROBE_FIRST_S = 0.03
PROBE_NEXT_S = 0.1
PROBE_SLOW_S = 1.0
PROBES_QUICK = 50
"""A broken connection is probed soon, then often, then now and then."""

Action = Callable[[Any, Any], None]


@attrs.frozen
class Failure:
    """A bug that a run has found: which invariant, what happened, when."""

    invariant: str
    text: str
    t: float


def load_engine(name: str = ENGINE) -> EngineMaker:
    """The engine class called ``module:class``."""
    module, _, attribute = name.partition(":")
    maker: EngineMaker = getattr(importlib.import_module(module), attribute)
    return maker


class World:
    """Nodes, network, disks, clocks, clients, and the order in which things happen."""

    make_network: type[Network] = Network  # a world that measures something has its own kinds of both
    make_node: type[Node] = Node

    def __init__(
        self,
        seed: int,
        nodes: int | Sequence[str] = 3,
        *,
        voters: int | None = None,
        faults: Sequence[str] = (),
        first_fault_at: float = 2.0,
        fault_gap_s: float = 3.0,
        parameters: Mapping[str, Any] | None = None,
        parameters_of: Mapping[str, Mapping[str, Any]] | None = None,
        weather: Weather = CALM,
        habits: Habits | None = None,
        group_habits: GroupHabits | None = None,
        application_habits: ApplicationHabits | None = None,
        newcomer_habits: NewcomerHabits | None = None,
        engine: EngineMaker | str = ENGINE,
        drift: bool = True,
        sync_spread_s: float = SYNC_S_SPREAD,
        start_within_s: float | None = 0.2,
        wall_base: float = 1_700_000_000.0,
        halt_is_failure: bool = True,
        play: Play | None = None,
    ) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.t = 0.0
        self.heap: list[tuple[float, int, Action, Any, Any]] = []
        self.pushed = 0
        self.processed = 0
        self.history = History()
        self.marks: dict[str, int] = {}
        self.failures: list[Failure] = []
        self.dropped_stale = 0
        self.unroutable = 0
        self.sync_spread_s = sync_spread_s
        self.wall_base = wall_base
        self.halt_is_failure = halt_is_failure
        self.play = play
        self.make_engine = load_engine(engine) if isinstance(engine, str) else engine
        self.names = tuple(f"n{i}" for i in range(1, nodes + 1)) if isinstance(nodes, int) else tuple(nodes)
        self.voters = self.names[: voters if voters is not None else min(len(self.names), 3)]
        self.network = self.make_network(self, self._random("network"), weather)
        self.nodes: dict[str, Node] = {}
        self.at_address: dict[str, Node] = {}
        for name in self.names:
            self._add_node(name, {**(parameters or {}), **((parameters_of or {}).get(name, {}))}, drift)
        self.clients = Clients(self, self._random("clients"), habits or Habits())
        wishes = Wishes(self, self._random("group wishes"))
        self.group_users = GroupUsers(self, self._random("group users"), group_habits or GroupHabits(), wishes)
        habits_of_applications = application_habits or ApplicationHabits()
        self.applications = Applications(self, self._random("applications"), habits_of_applications)
        self.newcomers = Newcomers(self, self._random("newcomers"), newcomer_habits or NewcomerHabits())
        for name in self.names:
            self.push(PROBE_FIRST_S, self._probe, self.nodes[name], (0, 0))
            if start_within_s is not None:
                self.push(self.rng.random() * start_within_s, self._first_start, self.nodes[name], None)
        self.schedule = Schedule(self, self._random("faults"), faults, gap_s=fault_gap_s)
        if faults:
            self.schedule.begin(first_fault_at)

    def _random(self, name: str) -> random.Random:
        return random.Random(f"{self.seed}/{name}")

    def _add_node(self, name: str, overrides: Mapping[str, Any], drift: bool) -> None:
        rng = self._random(f"node/{name}")
        is_voter = name in self.voters
        values: dict[str, Any] = {
            "node": name,
            "address": f"sim:{name}",
            "voters": tuple(sorted(self.voters)),
            "voter_addresses": {voter: f"sim:{voter}" for voter in self.voters},
            "durable": is_voter or rng.random() < 0.5,
            "journal_full": True,
            **overrides,
        }
        rate = 1.0 + (2 * rng.random() - 1) * RATE_OFF_MAX if drift else 1.0
        offset = rng.random() * 1e5 if drift else 0.0
        node = self.make_node(self, Parameters(**values), rng, rate, offset)
        self.nodes[name] = node
        self.at_address[node.parameters.address] = node

    def _first_start(self, node: Node, _: object) -> None:
        if not node.starts:
            node.start()

    # --- Time -----------------------------------------------------------------------------------------

    def push(self, at: float, action: Action, a: Any, b: Any) -> None:
        """Have ``action(a, b)`` happen at harness time ``at``."""
        self.pushed += 1
        heappush(self.heap, (at, self.pushed, action, a, b))

    def run(self, until: float, *, events_max: int | None = None) -> None:
        """Let everything happen up to a harness time, a number of events since the start, or the first failure."""
        heap = self.heap
        failures = self.failures
        left = (events_max - self.processed) if events_max is not None else 1 << 60
        action: Action | None = None
        try:
            while heap and left > 0 and heap[0][0] <= until and not failures:
                left -= 1
                self.processed += 1
                t, _, action, a, b = heappop(heap)
                if t > self.t:
                    self.t = t
                action(a, b)
        except Exception:
            self.found("driver", f"{action} broke: {traceback.format_exc()}")
        if not failures and left > 0 and until > self.t:
            self.t = until

    def run_until(self, condition: Callable[[], bool], *, within: float, every: float = 0.05) -> bool:
        """Run until ``condition()`` holds; False if it does not within so many seconds."""
        end = self.t + within
        while not self.failures:
            if condition():
                return True
            if self.t >= end:
                return False
            self.run(until=min(end, self.t + every))
        return False

    def found(self, invariant: str, text: str) -> None:
        """A bug: the world ends here."""
        self.failures.append(Failure(invariant, text, self.t))

    def replied(self, node: Node, client: int, message: ClientReply, at: float) -> None:
        """A daemon has said something over a connection of its node."""
        users = self.applications if client > FIRST_CONNECTION else self.clients
        users.replied(node, client, message, at)

    # --- What the nodes see of each other ---------------------------------------------------------------

    def process_ended(self, node: Node) -> None:
        """A process is gone: its clients lose their connections, its peers find its port closed."""
        self.clients.process_ended(node)
        self.group_users.process_ended(node)
        self.applications.daemon_ended(node)
        self.push(self.t + PROBE_FIRST_S, self._probe, node, (node.process, 0))

    def _probe(self, node: Node, probe: tuple[int, int]) -> None:
        process, count = probe
        if node.running or node.process != process:
            return
        if not node.down_silent:
            address = node.parameters.address
            for name in self.names:
                peer = self.nodes[name]
                if (
                    peer.running
                    and peer.addresses.get(node.name) == address
                    and self.network.works_both_ways(name, node.name)
                ):
                    peer.refused(node.name)
                    if node.running or node.process != process:
                        return
        pause = PROBE_NEXT_S if count < PROBES_QUICK else PROBE_SLOW_S
        self.push(self.t + pause, self._probe, node, (process, count + 1))

    # --- Looking at it ------------------------------------------------------------------------------------

    @property
    def running(self) -> list[Node]:
        """The nodes that have a process that is not standing still."""
        return [node for node in self.nodes.values() if node.running and not node.paused]

    @property
    def steps(self) -> int:
        """Engine steps so far, all nodes together."""
        return sum(node.steps for node in self.nodes.values())

    def connections(self) -> frozenset[tuple[str, str]]:
        """The pairs of nodes, each sorted, of which at least one keeps a connection to the other."""
        return frozenset((min(a, b), max(a, b)) for a in self.names for b in self.nodes[a].connections)

    def name_server(self) -> str | None:
        """The node that is name server with authority now, if there is one."""
        for node in self.running:
            if node.name in self.voters:
                status = node.status()
                if status is not None and status.role == "name server" and not status.suspended:
                    return node.name
        return None

    def fault(self, name: str, phase: str, **args: Any) -> None:
        """Write a line about something the harness does to the world."""
        self.history.add(self.t, name, who="sim", args={"phase": phase, **args})
        if phase == "begin":
            mark = f"fault {name}"
            self.marks[mark] = self.marks.get(mark, 0) + 1
        if self.play is not None:
            self.play.fault(self.t, name, phase, args)

    def heal(self) -> None:
        """Every link, disk and process works again and no more faults come; what was lost stays lost."""
        self.schedule.stop()
        self.network.heal_all()
        for name in self.names:
            node = self.nodes[name]
            node.trap = node.on_persisted = node.on_spoke = node.disk.on_submit = None
            disk = node.disk
            disk.error = False
            disk.slowness = 1.0
            if disk.stuck:
                disk.stuck = 1
                disk.unstick()
            if node.paused:
                node.resume()
            if not node.running:
                node.start()
        self.applications.heal()
