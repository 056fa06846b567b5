"""What simulated programs ask of a group: its attributes, whether its members have a state, and where they begin.

If there is no such group yet, a program says what it is to be like. If there is one, most programs take it as it is,
some state what it is, and a few state something else: those must be refused, with an answer that names what differs,
and nobody else may be. Whether there is one is read from the directory of a node, so it may be old news: two programs
that form a group at the same time with different wishes meet as well.

All choices come from a stream of random numbers of their own.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.nodegroups.user import CHECKPOINT
from groupsvcd.core.views import AttributeValue

if TYPE_CHECKING:
    from .world import World

Attributes = dict[str, AttributeValue]

STATED = 0.2
"""Share of the programs that state what the group is."""

WITH_MACHINES = 0.35
"""Share of the groups whose members have a state."""

EARLIER = 0.2
"""Share of the programs without a state that want what came before."""

OTHERWISE = 0.05
"""Share of those that ask for another one."""


class Wishes:
    """The wishes of all programs of a world."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self._with_machines: dict[str, bool] = {}

    def attributes(self, group: str, drawn: Attributes) -> Attributes:
        """What a program states when it joins ``group``; ``drawn`` is how it would form it."""
        present = self._present(group)
        if present is None:
            return {**drawn, **self._more(drawn)}
        chance = self.rng.random()
        if chance < OTHERWISE:
            return {**present, "replicas": 1 + int(present.get("replicas", 3) == 1), "commit_k": 1}
        return present if chance < OTHERWISE + STATED else {}

    def brings_machine(self, groups: NodeGroups, group: str) -> bool:
        """Whether a program that joins at this node brings a state machine: one does, if the group has them."""
        if group not in self._with_machines:
            self._with_machines[group] = self.rng.random() < WITH_MACHINES
        here = groups._by_name.get(group)
        return self._with_machines[group] and (here is None or here.participants.machine is None)

    def since(self, group: str) -> int | None:
        """Where a program without a state wants to begin: mostly now, else after a checkpoint or a recent entry."""
        if self.rng.random() >= EARLIER:
            return None
        reached = [
            status.delivered
            for node in self.world.nodes.values()
            if node.engine is not None and node.groups is not None
            for status in node.groups.status()
            if status.name == group
        ]
        if not reached or self.rng.random() < 0.3:
            return CHECKPOINT
        return max(0, max(reached) - self.rng.randrange(30))

    def _present(self, group: str) -> Attributes | None:
        """What the group is, as far as the directory of the name server, or of any voter, knows."""
        for name in (self.world.name_server(), *self.world.voters):
            engine = self.world.nodes[name].engine if name else None
            directory = getattr(getattr(engine, "voter", None), "directory", None)
            if directory is not None:
                record = directory.groups.named(group)
                return None if record is None else {**record.attributes}
        return None

    def _more(self, drawn: Attributes) -> Attributes:
        rng, found = self.rng, Attributes()
        replicas = drawn.get("replicas", 3)
        assert isinstance(replicas, int)
        for name in ("data_k", "checkpoint_k"):
            if rng.random() < 0.3:
                found[name] = rng.randint(1, replicas)
        if rng.random() < 0.5:
            found["checkpoint_every"] = rng.choice([3, 10, 40, 300])
        if rng.random() < 0.3:
            found["inline_bytes_max"] = rng.choice([0, 12, 500])
        return found
