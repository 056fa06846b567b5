"""What the engine must be told about itself and its domain: one frozen class each.

Times are seconds. The formula of each derived time stands beside its field; the relation
``lease >= leader_silent + claim_delay + claim_timeout + 2 * alive_interval`` is checked so that a
re-election suspends nobody.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import attrs

CLOCK_DRIFT_MAX = 0.01
"""Two clocks of a domain may run apart by this fraction and every promise still holds."""


@attrs.frozen(kw_only=True)
class Timers:
    """All waiting times of the protocol, in seconds."""

    alive_interval: float = 0.2  # between two LeaderAlive
    leader_silent: float = 1.0  # 5 x alive_interval: silence after which a leader is looked for
    claim_delay_base: float = 0.02  # before a canvass ...
    claim_delay_rank: float = 0.05  # ... more per better candidate ...
    claim_delay_jitter: float = 0.05  # ... random up to this ...
    claim_delay_failed: float = 0.2  # ... and per failed canvass of one's own
    claim_timeout: float = 0.3  # for a canvass, and again for a claim
    lease: float = 2.0  # >= leader_silent + claim_delay + claim_timeout + 2 x alive_interval
    margin: float = 0.5  # beyond a lease before others act on its end
    repeat_first: float = 0.1  # Claim, Open, Submit: first repetition, doubling ...
    repeat_max: float = 1.0  # ... up to this
    beat_interval: float = 0.25  # Beat after the last Order
    repair_delay: float = 0.02  # a gap may close by itself within this

    def problems(self, voters: int) -> list[str]:
        """Everything wrong with these times, as sentences."""
        found = [
            f"timers.{field.name} = {getattr(self, field.name)!r} must be above 0"
            for field in attrs.fields(Timers)
            if not getattr(self, field.name) > 0
        ]
        claim_delay = self.claim_delay_base + self.claim_delay_rank * max(voters - 1, 0) + self.claim_delay_jitter
        least = self.leader_silent + claim_delay + self.claim_timeout + 2 * self.alive_interval
        if self.lease < least:
            found.append(
                f"timers.lease = {self.lease} must be at least leader_silent + claim_delay + claim_timeout"
                f" + 2 x alive_interval = {least:.3f}, or every re-election suspends the nodes"
            )
        if self.leader_silent < 3 * self.alive_interval:
            found.append(
                f"timers.leader_silent = {self.leader_silent} must be at least 3 x alive_interval"
                f" = {3 * self.alive_interval:.3f}, or two lost messages depose a leader"
            )
        return found


@attrs.frozen(kw_only=True)
class Parameters:
    """Who this node is and which domain it belongs to."""

    node: str
    domain: str = "groupsvc"  # the configured name; the random id is made at formation
    address: str = ""  # where peers reach this node
    voters: tuple[str, ...] = ()  # names, sorted; () means a domain of one: this node
    voter_addresses: dict[str, str] = attrs.field(factory=dict)
    durable: bool = False  # whether a state directory is behind this node
    candidate: bool = True  # whether this voter may become name server
    pinned: bool = False
    preference: int = 0  # the administrator's word in the priority
    measured: int = 0  # what the node measured of itself at start; see domain/priority.py
    form_without: tuple[str, ...] = ()  # voters the operator declares missing at the first formation
    started_ms: int = 0  # wall clock at start; numbering of a memory-only domain begins here
    timers: Timers = Timers()
    checkpoint_every: int = 1_000  # entries between two checkpoints of the directory
    checkpoint_block_bytes: int = 1024 * 1024  # of a checkpoint, in one frame: does not delay liveness
    retention_margin: int = 200  # entries kept before a checkpoint so that a short lag needs none
    answers_kept: int = 64  # per origin, so that a repeated command gets the same answer
    logical_lifetime: int = 100_000
    group_checkpoint_every: int = 1_000  # entries between two checkpoints of a group's roll
    history_entries_max: int = 100_000  # how far a member of a group may lag before nobody waits for it
    history_bytes_max: int = 24 * 1024 * 1024  # the same in bytes; with the queues of sockets below 64 MiB
    inline_bytes_max: int = 16 * 1024  # larger payloads travel apart from their order
    journals: bool = True  # whether the lines of history are kept that only an audit reads
    journal_full: bool = False  # a line of history per entry of a group, not per batch; and node lists whole
    written_in: Mapping[str, str] = attrs.field(factory=dict)  # essential parameter -> where it is set; "": all others
    journal_digests: bool = False  # a running digest of what groups deliver, by which journals can be compared

    @property
    def is_voter(self) -> bool:
        """Whether this node holds the directory."""
        return self.node in self.all_voters

    @property
    def all_voters(self) -> tuple[str, ...]:
        """The voters; a node without configuration is its own only voter."""
        return self.voters or (self.node,)

    @property
    def majority(self) -> int:
        """How many voters make a decision."""
        return len(self.all_voters) // 2 + 1

    def essentials(self) -> dict[str, str]:
        """What must be identical on every node of the domain (MSG-13), as text."""
        timers = {f"timers.{field.name}": repr(getattr(self.timers, field.name)) for field in attrs.fields(Timers)}
        return {
            "domain": self.domain,
            "voters": ",".join(self.all_voters),
            "limits.checkpoint_every": str(self.checkpoint_every),
            "limits.answers_kept": str(self.answers_kept),
            "limits.logical_lifetime": str(self.logical_lifetime),
            **timers,
        }

    def essentials_digest(self) -> str:
        """A short word for all of them: equal on two nodes exactly if they may be in one domain."""
        lines = "".join(f"{key}={value}\n" for key, value in sorted(self.essentials().items()))
        return f"{zlib.crc32(lines.encode()):08x}"

    def where(self, essential: str) -> str:
        """Where a person finds this parameter on this node, as a part of a sentence; "" if nobody told."""
        if essential in self.written_in:
            return f"{essential} is set in {self.written_in[essential]}"
        if "" not in self.written_in:
            return ""
        place = self.written_in[""] or "the environment or a configuration file"
        return f"{essential} is left at its default, {self.essentials().get(essential, 'none')}; set it in {place}"
