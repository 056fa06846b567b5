"""What an operator can decide about one daemon; the example configuration says what each option means."""

from __future__ import annotations

from pathlib import Path

import attrs

from groupsvc.addresses import TCP, stays_here
from groupsvc.keys import Keys

from ..core.access import Rule
from ..core.parameters import Parameters, Timers

ENVIRONMENT_PREFIX = "GROUPSVC_"


@attrs.frozen(kw_only=True)
class Limits:
    """How much of everything; what the engine compares between nodes (MSG-13) must be the same on all."""

    checkpoint_every: int = 1_000  # directory entries between two checkpoints
    retention_margin: int = 200  # entries kept before a checkpoint for a node that lags a little
    answers_kept: int = 64  # answers per origin, for repeated commands
    logical_lifetime: int = 100_000  # entries after which an unrepeated submission is forgotten
    clients_max: int = 1_000  # connections of applications
    clients_per_principal_max: int = 1_000  # of one user or key
    members_per_principal_max: int = 50_000  # memberships, subscriptions, and groups it only formed
    peer_queue_frames_max: int = 96  # frames waiting for one peer; 96 x 256 KiB + 8 MiB = 32 MiB, see io/peers.py
    client_queue_frames_max: int = 1_000  # frames waiting for one client; beyond it it is given up
    journal_file_bytes_max: int = 64 * 1024 * 1024  # size at which the event journal begins a new file
    journal_file_seconds_max: int = 3_600  # age at which it begins one
    journal_files_max: int = 4  # full files of the event journal, or as much in smaller ones, that are kept
    metrics_series_max: int = 100  # groups, and peers, that have metrics of their own; sums count all


@attrs.frozen(kw_only=True)
class Config:
    """Everything an operator can decide about one daemon."""

    node: str
    domain: str = "groupsvc"
    address: str = ""
    voters: dict[str, str] = attrs.field(factory=dict)
    candidate: bool = True
    pinned: bool = False
    preference: int = 0
    form_without: tuple[str, ...] = ()
    state_directory: Path | None = None
    runtime_directory: Path
    client_address: str
    journal_directory: Path | None = None
    journal_level: str = "batch"
    log_level: str = "info"
    log_format: str = "text"
    metrics_address: str = ""
    metrics_insecure: bool = False
    insecure: bool = False
    key_file: Path | None = None
    keys: Keys | None = None  # what is in the key file
    node_keys: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    client_keys: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    listen_clients: str = ""
    access: tuple[Rule, ...] = ()
    timers: Timers = Timers()
    limits: Limits = Limits()
    file: str = attrs.field(default="", eq=False)  # that it was read from
    places: dict[str, str] = attrs.field(factory=dict, eq=False)  # option -> where it is set; defaults are not listed

    @property
    def is_voter(self) -> bool:
        """Whether this node holds the directory."""
        return not self.voters or self.node in self.voters

    @property
    def may_leave(self) -> bool:
        """Whether frames may leave the machine."""
        return self.insecure or self.key_file is not None

    def parameters(self, *, measured: int, started_ms: int) -> Parameters:
        """What the engine must know of all this."""
        return Parameters(
            node=self.node,
            domain=self.domain,
            address=self.address,
            voters=tuple(sorted(self.voters)),
            voter_addresses=dict(self.voters),
            durable=self.state_directory is not None,
            candidate=self.candidate,
            pinned=self.pinned,
            preference=self.preference,
            measured=measured,
            form_without=self.form_without,
            started_ms=started_ms,
            timers=self.timers,
            checkpoint_every=self.limits.checkpoint_every,
            retention_margin=self.limits.retention_margin,
            answers_kept=self.limits.answers_kept,
            logical_lifetime=self.limits.logical_lifetime,
            journals=self.journal_directory is not None,
            journal_full=self.journal_level == "full",
            journal_digests=self.journal_directory is not None,
            written_in={key: place for key, place in self.places.items() if key in ESSENTIAL} | {"": self.file},
        )

    def warnings(self) -> list[str]:
        """What is allowed and still worth a second thought."""
        found = []
        if len(self.voters) == 2:
            found.append(
                "two voters are both needed: if one is gone the other suspends;"
                " a third voter without clients (a witness) gives fail-over"
            )
        elif len(self.voters) % 2 == 0 and self.voters:
            found.append(f"{len(self.voters)} voters survive no more failures than {len(self.voters) - 1} would")
        if self.insecure and self.keys is not None:
            found.append("insecure = true says nothing beside key_file: keys are asked for; remove it")
        elif self.insecure:
            found.append("insecure = true: frames travel in clear and anybody who reaches a port may send some")
        if self.listen_clients and self.keys is None and not self.insecure:
            found.append("listen_clients without keys: every user of this machine may connect to it")
        if self.listen_clients and self.keys is not None and not self.client_keys:
            found.append("listen_clients without [client_keys]: nobody but new nodes with a token can connect to it")
        if self.access and self.listen_clients and self.keys is None:
            found.append("[[access]] with listen_clients and without keys: who comes over tcp is nobody but *")
        if self.metrics_address and not stays_here(self.metrics_address.replace("http://", TCP, 1)):
            found.append(
                "metrics_address is not loopback: anybody who reaches it reads the metrics, names of groups too"
            )
        if self.form_without:
            found.append(f"form_without = {', '.join(self.form_without)}: remove it after the first formation")
        return found


# --- The options ------------------------------------------------------------------------------------

TOP: dict[str, type] = {
    "node": str,
    "domain": str,
    "address": str,
    "candidate": bool,
    "pinned": bool,
    "preference": int,
    "form_without": list,
    "state_directory": Path,
    "runtime_directory": Path,
    "client_address": str,
    "journal_directory": Path,
    "journal_level": str,
    "log_level": str,
    "log_format": str,
    "metrics_address": str,
    "metrics_insecure": bool,
    "insecure": bool,
    "key_file": Path,
    "listen_clients": str,
}
TABLES: dict[str, dict[str, type]] = {
    "timers": {field.name: float for field in attrs.fields(Timers)},
    "limits": {field.name: int for field in attrs.fields(Limits)},
}
OPTIONS: dict[str, type] = TOP | {
    f"{table}.{name}": kind for table, names in TABLES.items() for name, kind in names.items()
}
"""Every option but the free tables, those of voters and of keys, as written with its table; the type of its value."""

ESSENTIAL: tuple[str, ...] = (
    "domain",
    "voters",
    "limits.checkpoint_every",
    "limits.answers_kept",
    "limits.logical_lifetime",
    *(f"timers.{name}" for name in TABLES["timers"]),
)
"""What must be the same on every node of a domain: who differs is not let in (``Parameters.essentials``, MSG-13)."""

ACQUIRABLE: tuple[str, ...] = (
    "log_level",
    "limits.clients_max",
    "limits.client_queue_frames_max",
    "limits.journal_file_bytes_max",
    "limits.journal_file_seconds_max",
    "limits.journal_files_max",
)
"""What the domain may decide for all its nodes, while they run (``acquired``): matters of taste and of how much, on
which nothing depends that nodes have promised each other. Each has a part of the daemon that takes a new value."""


def environment_name(key: str) -> str:
    """The variable that sets option ``key``."""
    if key == "address":
        return ENVIRONMENT_PREFIX + "PEER_ADDRESS"
    return ENVIRONMENT_PREFIX + key.replace(".", "_").upper()
