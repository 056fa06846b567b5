"""A node that is taken down in good order, at a bad moment.

An operator drains a node, most often the name server, and gives it little time or much. Whatever else is broken
meanwhile is for the other enemies. A node that is still at it when this ends is killed, and started again like one that
has got through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsvcd.core.engine import Engine

from .nemesis import Nemesis

if TYPE_CHECKING:
    from .node import Node

SECONDS = (0.3, 2.0, 5.0, 30.0)
"""How much time the node is given."""


class DrainNode(Nemesis):
    """A node is drained; started again when this ends."""

    name = "drain"
    lasts_s = (0.3, 9.0)
    node: Node | None = None
    is_over = False

    def begin(self) -> str | None:
        self.node = node = self.name_server_or_any()
        engine = node.engine if node is not None else None
        if node is None or not isinstance(engine, Engine):
            return None
        seconds = self.rng.choice(SECONDS)

        def drain() -> None:
            if not self.is_over:  # else the node stood still when it was asked to
                engine.drain.begin(seconds)

        node.call(drain)
        return f"{node.name} in {seconds:g} s"

    def end(self) -> None:
        assert self.node is not None
        self.is_over = True
        engine = self.node.engine
        if isinstance(engine, Engine) and engine.drain.is_on:
            self.node.crash("killed while it was drained")
        if not self.node.running:
            self.node.start()
