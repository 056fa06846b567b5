"""Simulated operators who make tokens, and machines that enrol with them.

An operator makes a token for one of a few names, or revokes what is listed for it; others do the same meanwhile. With
each token up to three machines come, each with a key of its own, though it is good for one: it was copied. A machine
shows it at any daemon and says its key; if it is not told what became of that it goes to another daemon and says the
same again. Sometimes one that was told yes asks once more. Name servers crash in between as they do anyhow.

The door is not simulated, where a token that is not listed is not let in: here everybody gets in, and the engine alone
has to tell them apart.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import attrs

from groupsvc.wire.history import EventType
from groupsvcd.core.access import TOKEN_MARK, TRUSTED, Principal
from groupsvcd.core.domain.enrolment import Door

from .clients import Call, Client

if TYPE_CHECKING:
    from .node import Node
    from .world import World

MACHINES_MAX = 3
"""That come with one token."""

ATTEMPTS_MAX = 5
"""Of a machine that is not told what became of its key."""

AGAIN = 0.3
"""How many of those who were told yes ask once more."""

REVOKES = 0.45
"""Share of what operators do."""


@attrs.frozen(kw_only=True)
class NewcomerHabits:
    """What operators and machines do."""

    operators: int = 0
    names: int = 2  # of nodes that are to come
    think_s: float = 1.5  # mean pause of an operator
    pause_s: float = 0.3  # of a machine before it tries again
    timeout_s: float = 2.0
    valid_s: float = 10.0  # at most


class Newcomer(Client):
    """A client that says who it is when it connects, and tells when its call has ended."""

    __slots__ = ("attempts", "key", "newcomers", "token", "wanted")

    def __init__(
        self, newcomers: Newcomers, name: str, node: Node, wanted: str = "", token: str = "", key: str = ""
    ) -> None:
        super().__init__(newcomers.world.clients, name, node)
        self.one_shot = True
        self.newcomers = newcomers
        self.token = token
        self.key = key
        self.wanted = wanted  # the name of the node that a machine is to be
        self.attempts = 0
        newcomers.world.clients.all.append(self)

    def connect(self) -> None:
        """The daemon is told who it is, as it would be by the door; then it need not say Hello."""
        clients = self.clients
        clients.connections += 1
        self.connection = clients.connections
        clients.by_connection[self.connection] = self
        self.node.client_came(self.connection, Principal(key=TOKEN_MARK + self.token) if self.token else TRUSTED)

    def _end(self, type_: EventType, result: dict[str, Any]) -> None:
        call = self.call
        assert call is not None
        super()._end(type_, result)
        self.newcomers.ended(self, call, type_, result)


class Newcomers:
    """All operators and machines of a world."""

    def __init__(self, world: World, rng: random.Random, habits: NewcomerHabits) -> None:
        self.world = world
        self.rng = rng
        self.habits = habits
        self._keys = 0
        self._machines = 0
        for number in range(1, habits.operators + 1):
            self._think(Newcomer(self, f"operator-{number}", world.nodes[rng.choice(world.names)]))

    def process_began(self, node: Node) -> None:
        """Its engine is told what only a driver knows: a door that is open, and the time of day."""
        enrolment = getattr(node.engine, "enrolment", None)
        if enrolment is not None and self.habits.operators:
            enrolment.door = lambda: Door(problem="", domain="sim", address="tcp://sim:1", server=f"{0:040d}")
            enrolment.wall_s = node.wall

    # --- Operators ---

    def _think(self, operator: Newcomer) -> None:
        pause = self.rng.expovariate(1.0) * self.habits.think_s
        self.world.push(self.world.t + pause, self._next, operator, None)

    def _next(self, operator: Newcomer, _: object) -> None:
        if self.world.clients.quiet:
            return
        if operator.call is not None or not operator.node.running:
            self._think(operator)
            return
        rng, habits = self.rng, self.habits
        node = f"new-{rng.randrange(habits.names)}"
        if rng.random() < REVOKES:
            operator.ask("token_revoke", {"node": node}, habits.timeout_s)
        else:
            valid = 1.0 + rng.random() * (habits.valid_s - 1.0)
            operator.ask("token_make", {"node": node, "token": self._key("t"), "valid": valid}, habits.timeout_s)

    def _key(self, kind: str) -> str:
        self._keys += 1
        return f"{kind}{self._keys:039d}"

    # --- Machines ---

    def ended(self, who: Newcomer, call: Call, type_: EventType, result: dict[str, Any]) -> None:
        """A call has ended."""
        if call.op == "enrol":
            self._enrolled(who, type_, result)
            return
        if call.op == "token_make" and type_ != "fail":  # what may have happened has perhaps happened
            for _ in range(self.rng.randint(1, MACHINES_MAX)):
                self._machines += 1
                node = self.world.nodes[self.rng.choice(self.world.names)]
                name = f"machine-{self._machines}"
                self._pause(Newcomer(self, name, node, call.args["node"], call.args["token"], self._key("k")))
        self._think(who)

    def _pause(self, machine: Newcomer) -> None:
        self.world.push(self.world.t + self.rng.expovariate(1.0) * self.habits.pause_s, self._try, machine, None)

    def _try(self, machine: Newcomer, _: object) -> None:
        if self.world.clients.quiet or machine.attempts >= ATTEMPTS_MAX:
            return
        machine.attempts += 1
        if not machine.node.running:
            self._elsewhere(machine)
            return
        args = {"node": machine.wanted, "token": machine.token, "key": machine.key}
        machine.ask("enrol", args, self.habits.timeout_s)

    def _enrolled(self, machine: Newcomer, type_: EventType, result: dict[str, Any]) -> None:
        refused = type_ == "fail" and result.get("code") == "refused"
        if refused or (type_ == "ok" and self.rng.random() >= AGAIN):
            machine.attempts = ATTEMPTS_MAX
            machine.hang_up()
        else:
            self._elsewhere(machine)

    def _elsewhere(self, machine: Newcomer) -> None:
        machine.hang_up()
        machine.node = self.world.nodes[self.rng.choice(self.world.names)]
        self._pause(machine)
