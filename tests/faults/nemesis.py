"""What every enemy of a real cluster has in common: it is prepared, strikes, lasts a while, heals; again and again.

A nemesis is one small class in a file of ``nemeses``, found there by its ``name``: a new file needs no list to be
changed. One object of it serves one run:

1. ``look``: raise ``Missing`` with the name of what this machine lacks; the run is skipped then, and says so;
2. ``prepare(scene)``: before any daemon starts. How a daemon is started can be changed: ``scene.outfits[node]`` has an
   environment, a program around it, settings, and what is to be done each time before its process begins. Here is also
   the place to mount something where a state directory will be (``scene.state_directory(node)``);
3. ``strike(scene, rng)``: do harm. Returns what was done, for the line in the history, or None if there was nothing to
   harm now. All chance comes from ``rng``; *who* leads at that moment does not, and is looked up;
4. ``heal(scene)``: undo it, as far as it can be undone; processes that were ended are started again. Called after every
   strike that returned something, and once more when the run is healed: it must not mind;
5. ``close(scene)``: give back what ``prepare`` took. All daemons have ended by then.

How long a strike lasts and what comes between two is drawn from the seed within ``lasts_s`` and ``gap_s``, before the
run begins: the same seed has the same plan, though not the same run.

A nemesis that ends processes calls ``scene.cluster.kill`` and the like, which write the lines that checkers need.
One whose harm makes a daemon end by itself (a disk that answers EIO) says with which codes, by ``ends_with``: whoever
ends otherwise, or without having been struck, has failed the run (``endings.py``). What the promises do not cover (a
disk that is lost for good) must not be done to more than a minority of the voters. One that is after disks says
``durable``: then all groups of the run are on disks, on three of them if there are as many, and stable on two.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from .wires import Missing, Wires, need

if TYPE_CHECKING:
    from .clients import Clients
    from .cluster import Cluster, Outfit

__all__ = ["Missing", "Nemesis", "Scene", "Strike", "plan_of"]


@attrs.define
class Scene:
    """Where it happens. ``cluster`` and ``clients`` are there from the start of the daemons on."""

    names: tuple[str, ...]
    voters: tuple[str, ...]
    directory: Path
    wires: Wires
    outfits: dict[str, Outfit]
    cluster: Cluster = attrs.field(init=False)
    clients: Clients = attrs.field(init=False)

    def state_directory(self, node: str) -> Path:
        """Where the daemon of this node will have its state."""
        return self.directory / f"{node}.state"

    # What several of them ask.

    def leader(self) -> str | None:
        """The name server."""
        return self.cluster.name_server()

    def running(self) -> list[str]:
        """The nodes whose daemon runs, and is not paused."""
        return self.cluster.running

    def leader_or_any(self, rng: random.Random) -> str | None:
        """The name server in most cases, otherwise somebody."""
        found = self.leader() if rng.random() < 0.7 else None
        running = self.running()
        return found or (rng.choice(running) if running else None)

    def others(self, node: str) -> list[str]:
        """All but this one."""
        return [name for name in self.names if name != node]


class Nemesis(ABC):
    """Strikes, lasts a while, heals."""

    name = ""
    needs: tuple[str, ...] = ()  # programs, looked for by ``look``
    nodes_min = 2
    lasts_s = (1.0, 5.0)
    gap_s = (1.0, 3.0)
    ends_with: frozenset[int] = frozenset()  # codes with which its harm may make a daemon end by itself
    durable = False  # whether all groups of the run are on disks

    def __init__(self) -> None:
        self.struck: frozenset[str] = frozenset()

    def look(self) -> None:
        """Raise ``Missing`` where it cannot be."""
        need(*self.needs)

    def prepare(self, scene: Scene) -> None:  # noqa: B027 (most have nothing to prepare)
        """Before the daemons start."""

    @abstractmethod
    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        """Do harm."""

    def heal(self, scene: Scene) -> None:  # noqa: B027 (some have nothing to undo)
        """Undo it."""

    def close(self, scene: Scene) -> None:  # noqa: B027 (most have taken nothing)
        """Give back what ``prepare`` took."""

    def has_struck(self, done: Mapping[str, Any]) -> None:
        """Told by the run what ``strike`` has returned: its ``target`` is one node, or some.

        Those are its until it strikes again: a daemon may be seen to have ended only when all is healed.
        """
        target = done.get("target", ())
        self.struck = frozenset([target] if isinstance(target, str) else target)

    def may_have_ended(self, node: str, code: int) -> bool:
        """Whether its harm can be why this daemon has ended by itself, with this code."""
        return node in self.struck and code in self.ends_with

    def found(self) -> list[str]:
        """Promises that were broken before its eyes, each with its id: what no line of a history can show."""
        return []

    def bites(self) -> int | None:
        """How often its harm has reached anybody, if it can tell: a disk may be full and nobody write."""
        return None


@attrs.frozen
class Strike:
    """One of a plan: how long nothing happens before it, how long it lasts, and where its choices come from."""

    gap_s: float
    lasts_s: float
    seed: str


def plan_of(nemesis: Nemesis, seed: int, seconds: float) -> list[Strike]:
    """As many strikes as there is time for; the last one may be cut short by the end of the run."""
    rng, plan, t = random.Random(f"{seed}/{nemesis.name}"), list[Strike](), 0.0
    while True:
        gap_s, lasts_s = rng.uniform(*nemesis.gap_s), rng.uniform(*nemesis.lasts_s)
        t += gap_s
        if t >= seconds:
            return plan
        plan.append(Strike(gap_s, lasts_s, f"{seed}/{nemesis.name}/{len(plan)}"))
        t += lasts_s
