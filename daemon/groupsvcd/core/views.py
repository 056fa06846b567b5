"""A view: who orders and who holds a stream, by whose word.

A *server* is ``(name, incarnation)``; in durable groups it is ``(name, state id)``, because there the disk and not the
process is what holds the stream. Views are granted and activated by the directory, and by nobody else.
"""

from __future__ import annotations

from typing import Any

import msgspec

from groupsvc.wire.notices import AttributeValue as AttributeValue

Server = tuple[str, int | str]
NodeId = tuple[str, int]
Views = tuple[tuple[int, int], ...]
"""Of a log: epoch and number of the first entry of each of its newest views, the oldest first."""


FENCE_CHANGES_BITS = 20
"""A fence is (entry that activated the view) x 2^20 + membership changes in it: it grows for ever."""


class View(msgspec.Struct, frozen=True, array_like=True):
    """Who orders and who holds a stream. ``leader`` is the name of one of ``servers``.

    ``base`` is the epoch of the view that was active when this one was granted, ``replaces`` the newest
    epoch granted before; both are 0 in the first view of a group. ``activated`` is the number of the entry that
    made it active, 0 while it is pending.
    """

    epoch: int
    leader: str
    servers: tuple[Server, ...]
    k: int
    forced: bool = False
    base: int = 0
    replaces: int = 0
    activated: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The servers' node names."""
        return tuple(name for name, _ in self.servers)

    @property
    def fence(self) -> int:
        """The first fence of the view."""
        return self.activated << FENCE_CHANGES_BITS

    @property
    def promises_needed(self) -> int:
        """|S| - k + 1: so many servers share one with every k of them, so they know all that was stable."""
        return len(self.servers) - self.k + 1

    @property
    def promises_its_leader_needs(self) -> int:
        """Not more than k: who led the view to its end has all that was numbered in it (see ``granted``)."""
        return min(self.k, self.promises_needed)

    def as_answer(self) -> dict[str, Any]:
        """The view as plain data."""
        return {
            "epoch": self.epoch,
            "leader": self.leader,
            "servers": [list(server) for server in self.servers],
            "k": self.k,
            "forced": self.forced,
            "base": self.base,
            "replaces": self.replaces,
            "activated": self.activated,
        }

    @classmethod
    def from_answer(cls, answer: dict[str, Any]) -> View:
        """The view that ``as_answer`` told of."""
        servers = tuple((name, which) for name, which in answer["servers"])
        return cls(**{**answer, "servers": servers})
