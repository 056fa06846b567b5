"""A group's attributes, as far as they concern its stream, with what holds where none is given."""

from __future__ import annotations

from ..domain.groups import default_k
from ..domain.limits import GROUP_SERVERS_WANTED
from ..groups.rules import RULES_BY_DEFAULT
from ..parameters import Parameters
from ..views import AttributeValue

SYNC_WINDOW = 5
"""Multicasts without acknowledgement before all are asked, unless the group says otherwise (GS-13)."""


class GroupSettings:
    """What was agreed upon when the group was formed."""

    def __init__(self, values: dict[str, AttributeValue], parameters: Parameters) -> None:
        self._values = values
        self._parameters = parameters
        self.durable = values.get("durable") is True  # whether disks hold the stream
        # How far a member may lag before nobody waits for it, and the same in bytes: asked for with every step.
        self.history_entries_max = self._number("history_entries_max", parameters.history_entries_max)
        self.history_bytes_max = self._number("history_bytes_max", parameters.history_bytes_max)

    @property
    def machine(self) -> bool:
        """Whether the members have a state that the entries add up to."""
        return self._values.get("machine") is True

    @property
    def processes(self) -> bool:
        """Whether the stream is that of a process group."""
        return self._values.get("processes") is True

    @property
    def fast(self) -> bool:
        """Whether members deliver on arrival, before k servers hold an entry."""
        return self._values.get("delivery") == "fast"

    @property
    def sync_window(self) -> int:
        """How many multicasts of a fast group nobody has to acknowledge, before one that all must (GS-13)."""
        return self._number("sync_window", SYNC_WINDOW)

    @property
    def replicas(self) -> int:
        """How many servers there should be."""
        return self._number("replicas", GROUP_SERVERS_WANTED)

    @property
    def k_wanted(self) -> int:
        """How many of them must hold an entry."""
        return self._number("commit_k", default_k(self.replicas))

    @property
    def data_k(self) -> int:
        """How many servers must have a large payload before it gets a number; 0: as many as must hold an entry."""
        return self._number("data_k", 0)

    @property
    def logical_lifetime(self) -> int:
        """Numbers after which what was not numbered yet never is."""
        return self._number("logical_lifetime", self._parameters.logical_lifetime)

    @property
    def checkpoint_k(self) -> int:
        """How many servers must have a checkpoint before it is advertised; 0: as many as must hold an entry."""
        return self._number("checkpoint_k", 0)

    @property
    def checkpoint_every(self) -> int:
        """Entries from one checkpoint to the next."""
        return self._number("checkpoint_every", self._parameters.group_checkpoint_every)

    @property
    def inline_bytes_max(self) -> int:
        """Larger payloads travel apart from their order."""
        return self._number("inline_bytes_max", self._parameters.inline_bytes_max)

    def is_given(self, attribute: str) -> bool:
        """Whether whoever formed the group said so."""
        return attribute in self._values

    def value_of(self, attribute: str) -> AttributeValue:
        """What holds in this group, given or by default."""
        values: dict[str, AttributeValue] = {
            "replicas": self.replicas,
            "commit_k": self.k_wanted,
            "data_k": self.data_k or self.k_wanted,
            "checkpoint_k": self.checkpoint_k or self.k_wanted,
            "checkpoint_every": self.checkpoint_every,
            "inline_bytes_max": self.inline_bytes_max,
            "logical_lifetime": self.logical_lifetime,
            "history_entries_max": self.history_entries_max,
            "history_bytes_max": self.history_bytes_max,
            "sync_window": SYNC_WINDOW,
            "delivery": "safe",
            "durable": False,
            "machine": False,
            "processes": False,
            "exclusive": False,
            "state_machine": False,
            "source_group": None,
            "on_quorum_lost": "wait" if self.durable else "continue",
            **RULES_BY_DEFAULT,
        }
        return {**values, **self._values}[attribute]

    def _number(self, attribute: str, otherwise: int) -> int:
        value = self._values.get(attribute)
        return value if type(value) is int else otherwise
