"""The end of a group, from the side of its leader.

D leads. A group ends in one of two ways. D is the last node that carries it and leaves: then it has it dropped. Or the
layer above has seen its last word in the stream, the same at all who carry it, and *closes* it: from then on nothing is
ordered for anybody, whoever comes is told to look the group up again, and no view is proposed. The others leave when
they have delivered that word, so D has the group dropped when all who are up have asked to. One that is cut off does
not keep the name for ever: after a lease D waits for nobody.

Letting all leave one by one, with a view after the other, was rejected: somebody who came meanwhile got into what was
left, and saw a group that had ended.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..domain.commands import DropGroup, encode_command
from ..peer_messages import Left, NotLeader

if TYPE_CHECKING:
    from .leading import Leading


class Ending:
    """How far one leader is with the end of its group."""

    __slots__ = ("_closed_at", "_leading", "is_dropping")  # a node has thousands

    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._closed_at = math.inf
        self.is_dropping = False  # the directory was asked to

    @property
    def is_closed(self) -> bool:
        """Whether nothing is ordered any more but what concerns nodes and views."""
        return self._closed_at < math.inf

    @property
    def has_begun(self) -> bool:
        """Whether nobody gets in, or has anything numbered."""
        return self.is_dropping or self.is_closed

    def close(self) -> None:
        """The layer above has seen the last word."""
        self._closed_at = min(self._closed_at, self._leading.turn.now)

    def redirect(self, name: str) -> None:
        """Whoever wants something of a group that is closed looks it up again, until it is there no more."""
        if self.is_closed:
            group = self._leading.group
            group.reach(name)
            self._leading.turn.send(name, NotLeader(group.id, self._leading.view.epoch, ""))

    @property
    def is_due(self) -> bool:
        """Whether all others know that it is over, or were given the time to."""
        leading, group = self._leading, self._leading.group
        others = [node for node in (*group.roll.members, *leading.inserting) if node != leading.station.me]
        waited_for = [node for node in others if node not in group.leaving and leading.station.is_up(node)]
        return not waited_for or leading.turn.now >= self._closed_at + leading.station.parameters.timers.lease

    def drop(self) -> None:
        """Have the directory end it."""
        leading = self._leading
        self.is_dropping = True
        body = encode_command(DropGroup(leading.server.stream, leading.view.epoch, leading.station.me))
        about = f"ending {leading.group.name!r}"
        leading.group.command(about, lambda: body, self._answered, leading.errand_failed)

    def _answered(self, answer: dict[str, Any]) -> None:
        leading = self._leading
        leading.errand_failed("")  # if it was refused
        if answer.get("ok"):
            leading.turn.mark("group-dropped")
            group, server = leading.group, leading.server
            for (name, incarnation), term in group.roll.members.items():
                if name != leading.turn.node:
                    server.carrier.vouch(name, Left(server.stream, incarnation, term))
            group.end("left")
