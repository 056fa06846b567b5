"""Who takes part in a group on this node: a program inside the daemon.

The layer of process groups is one, a driver of a benchmark is another. A user asks ``NodeGroups`` and is called back,
always within a step of the engine.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import attrs

from ..stream.entries import Entry
from ..views import AttributeValue, NodeId

NOW = -1
"""Begin with what is ordered from now on."""

CHECKPOINT = -2
"""Begin after the newest advertised checkpoint; with a machine, with its state."""


class Form(enum.Enum):
    """Whether a group is formed for somebody who asks for it."""

    IF_NONE = "if there is none"
    ONLY = "only if there is none: else it takes no part"
    NEVER = "never: if there is none it takes no part"


WhyNot = Literal["no such group", "group exists", "attributes mismatch"]
"""Why somebody cannot take part in a group, for programs; ``User.lost`` is told in words."""

NO_SUCH_GROUP = "there is no such group"
GROUP_EXISTS = "there is such a group already"
HAS_ENDED = "the group has ended"


class User(Protocol):
    """What a program that takes part in a group is told."""

    def joined(self, group: int, seq: int, members: tuple[NodeId, ...]) -> None:
        """This node carries the group: everything after entry ``seq`` will be delivered."""

    def delivered(self, first_seq: int, entries: Sequence[Entry]) -> None:
        """The next entries, without a gap; those without an origin are about views and members."""

    def changed(self, seq: int, members: tuple[NodeId, ...]) -> None:
        """Entry ``seq`` changed who carries the group."""

    def lost(self, reason: str) -> None:
        """Nothing more comes; whoever joins again begins anew."""


class Machine(Protocol):
    """A state that the entries of a group add up to, at every member the same (SAM-07).

    ``User.delivered`` applies entries to it. A member that is new, or that missed what is no longer kept, gets the
    state of others and goes on from there, while the traffic goes on. It fetches different parts from different
    members, so after the same entry ``snapshot`` must give **the same bytes** everywhere: no order of a set, no clock,
    no name of a node. The service compares length and checksum, and says so if they differ.
    """

    def snapshot(self) -> bytes:
        """The state after everything that was delivered so far."""

    def restore(self, seq: int, state: bytes) -> None:
        """Become the state after entry ``seq``; the next one that is delivered is the one behind it."""


@attrs.frozen(eq=False)
class Application:
    """How somebody asked to take part: what the group is to be like, and what it brings."""

    user: User
    attributes: dict[str, AttributeValue] = attrs.field(factory=dict)
    machine: Machine | None = None
    since: int = NOW  # or CHECKPOINT, or the number of the entry after which everything is wanted
    form: Form = Form.IF_NONE
    refused: Callable[[WhyNot], None] | None = None  # told why, right before its user is told ``lost``, if it cannot

    @property
    def formed_with(self) -> dict[str, AttributeValue]:
        """The attributes of the group, if there is none yet."""
        return {**self.attributes, "machine": True} if self.machine is not None else self.attributes
