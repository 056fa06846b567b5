"""What a group's attributes say about its ballots, with what holds where none is given (GS-22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, cast

from groupsvc.wire.notices import AttributeValue, DefaultVote, Kind

from .commands import DYNAMIC, ONE_PHASE

CHECKPOINT_EVERY = 1_000
"""As the stream's own checkpoints, unless the group says otherwise. Members keep what was said since the newest."""

BATCH_WINDOW_S = 0.05
TIME_LIMIT_S = 30.0

PHASES_OF: dict[Kind, str] = {
    "join": "join_phases",
    "leave": "leave_phases",
    "expel": "leave_phases",
    "failure": "failure_phases",
    "state": "state_phases",
    "message": "message_phases",
    "attributes": "state_phases",
}
"""Which attribute says whether proposals of a kind are voted on."""

RULES_BY_DEFAULT: dict[str, AttributeValue] = {
    "client_version": "",
    "batch": "none",
    "batch_window": BATCH_WINDOW_S,
    "default_vote": "approve",
    "time_limit": TIME_LIMIT_S,
    **dict.fromkeys(PHASES_OF.values(), "one"),
}
"""What holds where a group says nothing."""

CHANGEABLE = frozenset({"batch", "batch_window", "default_vote", "time_limit", *PHASES_OF.values()})
"""What a group can change while it exists; everything else was settled when it was formed."""


class Rules:
    """How one group votes."""

    def __init__(self, attributes: Mapping[str, AttributeValue]) -> None:
        self.attributes = dict(attributes)

    def phases(self, kind: Kind) -> int:
        """How many phases proposals of this kind have, unless they say so themselves."""
        return DYNAMIC if self.attributes.get(PHASES_OF[kind]) == "n" else ONE_PHASE

    def batches(self, what: Literal["joins", "leaves"]) -> bool:
        """Whether joins, or leaves and failures, are collected for a while and voted on as one."""
        return self.attributes.get("batch", "none") in (what, "both")

    @property
    def has_machines(self) -> bool:
        """Whether every provider keeps a state that the messages add up to."""
        return self.attributes.get("state_machine") is True

    @property
    def checkpoint_every(self) -> int:
        """Messages after which a checkpoint of it is wanted."""
        value = self.attributes.get("checkpoint_every")
        return value if type(value) is int and value > 0 else CHECKPOINT_EVERY

    @property
    def durable(self) -> bool:
        """Whether what the group agreed upon outlives all of its providers: disks have it (GS-31)."""
        return self.attributes.get("durable") is True

    @property
    def is_fast(self) -> bool:
        """Whether any change of the leader may lose entries that were delivered."""
        return self.attributes.get("delivery") == "fast"

    @property
    def exclusive(self) -> bool:
        """Whether a provider may hold something alone: who takes over waits until its node is gone, not only down."""
        return self.attributes.get("exclusive") is True

    @property
    def batch_window(self) -> float:
        """For how long, in seconds."""
        return self._seconds("batch_window", BATCH_WINDOW_S)

    @property
    def time_limit(self) -> float:
        """Seconds that a phase may take."""
        return self._seconds("time_limit", TIME_LIMIT_S)

    @property
    def default_vote(self) -> DefaultVote:
        """What is voted for who cannot, as the group was formed."""
        return "reject" if self.attributes.get("default_vote") == "reject" else "approve"

    def _seconds(self, name: str, otherwise: float) -> float:
        value = self.attributes.get(name)
        return otherwise if isinstance(value, bool) or not isinstance(value, int | float) else cast(float, value)
