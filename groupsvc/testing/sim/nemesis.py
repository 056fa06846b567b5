"""What every enemy of a domain has in common: it begins, lasts a while, and ends."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .node import Node

if TYPE_CHECKING:
    from .world import World


class Nemesis(ABC):
    """Begins, lasts a while, ends."""

    name = ""
    lasts_s = (0.5, 8.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self.ended = False

    @abstractmethod
    def begin(self) -> str | None:
        """Do harm; says to whom, or None if there is nothing to harm now."""

    def end(self) -> None:  # noqa: B027 (some have nothing to undo)
        """Undo what can be undone."""

    # What several of them need.

    def victim(self, among: Sequence[str] | None = None) -> Node | None:
        """A running node, voters more often than others."""
        names = among if among is not None else (self.world.names if self.rng.random() < 0.3 else self.world.voters)
        running = [name for name in names if self.world.nodes[name].running]
        return self.world.nodes[self.rng.choice(running)] if running else None

    def name_server_or_any(self) -> Node | None:
        """The name server in most cases; otherwise any victim."""
        leader = self.world.name_server() if self.rng.random() < 0.7 else None
        return self.world.nodes[leader] if leader is not None else self.victim()

    def restart_later(self, node: Node, after: float) -> None:
        """Start the process again, unless somebody else has done so by then."""
        self.world.push(self.world.t + after, self._restart, node, None)

    def _restart(self, node: Node, _: object) -> None:
        if not node.running:
            node.start()
