"""Carriers whose direct messages need a link: the daemon drops what goes to a node without one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupsvcd.core.effects import Connect, Disconnect, Effect, SendToPeer
from tests.unit.core.nodegroups.carriers import Carriers


class Linked(Carriers):
    """As ``Carriers``; a message to a node that the sender is not connected to is dropped."""

    def __init__(self, *args: Any, **arguments: Any) -> None:
        super().__init__(*args, **arguments)
        self.linked: set[tuple[str, str]] = set()
        self.unlinked: list[tuple[str, str, object]] = []

    def kill(self, *names: str) -> None:
        super().kill(*names)
        self.linked = {pair for pair in self.linked if pair[0] not in names}

    def _execute(self, name: str, effects: Iterable[Effect]) -> None:
        kept: list[Effect] = []
        effects = list(effects)
        for effect in effects:  # the reactor connects at once and sends at the end of the step
            if isinstance(effect, Connect):
                self.linked.add((name, effect.node))
            elif isinstance(effect, Disconnect) and effect.node not in self.voters:
                self.linked.discard((name, effect.node))
        for effect in effects:
            if isinstance(effect, SendToPeer) and (name, effect.node) not in self.linked:
                self.unlinked.append((name, effect.node, effect.message))
            else:
                kept.append(effect)
        super()._execute(name, kept)
