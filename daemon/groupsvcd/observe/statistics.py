"""Everything that a daemon says of itself in numbers: what its parts say, put together when somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from ..core.statistics import EngineStatistics
    from ..core.tally import Measured
    from ..io.clients import ClientStatistics
    from ..io.journal import JournalStatistics
    from ..io.pages import PageStatistics
    from ..io.peers import PeerStatistics
    from ..io.process import ProcessStatistics
    from ..io.reactor import ReactorStatistics


@attrs.frozen(kw_only=True)
class ClockStatistics:
    """The wall clock, and how far it has moved against the clock of the leases since the daemon started."""

    wall: float
    skew: float


@attrs.frozen(kw_only=True)
class EventJournalStatistics:
    """The lines for audits."""

    lines_written: int
    lines_lost: int
    bytes_waiting: int


@attrs.frozen(kw_only=True)
class Build:
    """What runs here."""

    version: str
    python: str
    libzmq: str


@attrs.frozen(kw_only=True)
class DaemonStatistics:
    """One daemon, at one moment. A part that this daemon does not have is None."""

    build: Build
    engine: EngineStatistics
    reactor: ReactorStatistics
    clients: ClientStatistics
    peers: PeerStatistics | None
    store: JournalStatistics | None
    journal: EventJournalStatistics | None
    pages: PageStatistics | None
    complaints: dict[str, int]
    clock: ClockStatistics
    process: ProcessStatistics


def as_objects(statistics: DaemonStatistics) -> dict[str, Any]:
    """The same as dicts, lists, texts and numbers, by part: for ``groupsvc statistics``."""
    found: dict[str, Any] = attrs.asdict(statistics, recurse=False)
    engine: EngineStatistics = found.pop("engine")
    parts = {"build": found.pop("build"), **attrs.asdict(engine, recurse=False), **found}
    return {name: _plain(part) for name, part in parts.items() if part is not None}


def _plain(value: Any) -> Any:
    if hasattr(value, "bounds"):
        return _shown(value)
    if attrs.has(type(value)):
        return {name: _plain(part) for name, part in attrs.asdict(value, recurse=False).items()}
    if isinstance(value, dict):
        return {"/".join(key) if isinstance(key, tuple) else key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _shown(measured: Measured) -> dict[str, Any]:
    """How many, their sum, and how many in each bucket: up to a bound, and above all of them."""
    named = [*(f"{bound:g}" for bound in measured.bounds), "+Inf"]
    buckets = {name: count for name, count in zip(named, measured.counts, strict=True) if count}
    return {"count": measured.count, "sum": measured.sum, "up_to": buckets}
