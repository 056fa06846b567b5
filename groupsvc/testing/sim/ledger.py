"""The ledger: one line for every sample of seeds that was run, so that samples of one protocol add up.

"Twenty thousand seeds" means something only for one protocol. So each line says which: the frame version and a
fingerprint of the engine's sources; and the commit, for people. It also says in how many of the worlds somebody used
groups and in how many there were applications (``with_groups``, ``with_applications``), and how often each mark was hit
and each nemesis came (``marks``, ``faults``).

Older lines do not say everything. Whether the simulator of a line could do groups, or applications, is seen by its
marks: every sample of such a simulator has come by there. In how many of its worlds they were is drawn again from the
seeds, which have answered that in the same way ever since. Lines without marks are of a time before groups.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from pathlib import Path
from typing import Any

import attrs
import msgspec

from groupsvc.wire import versions

from .plan import has_applications, has_groups

GROUPS_MARK = "group-formed"
APPLICATIONS_MARK = "app-connected"
"""No sample of more than a few seeds misses these, if its simulator has groups, or applications."""


def protocol_version() -> str:
    """Wire version and fingerprint of everything the protocol is made of."""
    import groupsvc.wire
    import groupsvcd.core

    digest = hashlib.sha256()
    for package in (groupsvcd.core, groupsvc.wire):
        root = Path(next(iter(package.__path__)))
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{versions.WRITES}-{digest.hexdigest()[:12]}"


def commit() -> str:
    """The commit of the source tree, with a plus if it was changed since; "" outside a repository."""
    here = Path(__file__).parent
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=True)
        dirty = subprocess.run(["git", "status", "--porcelain"], cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.stdout.strip()[:12] + ("+" if dirty.stdout.strip() else "")


def append(file: Path, **entry: Any) -> None:
    """Add one line."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = msgspec.json.encode({"when": when, "commit": commit(), "protocol": protocol_version(), **entry})
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as ledger:
        ledger.write(line + b"\n")


def next_seed(file: Path, protocol: str) -> int:
    """The first seed that no sample of this protocol has run."""
    entries = _entries(file)
    return max((entry["first"] + entry["seeds"] for entry in entries if entry["protocol"] == protocol), default=0)


def seeds_so_far(file: Path, protocol: str) -> tuple[int, int]:
    """How many seeds of this protocol were run, and how many of them failed."""
    entries = [entry for entry in _entries(file) if entry["protocol"] == protocol]
    return sum(entry["seeds"] for entry in entries), sum(len(entry["failed"]) for entry in entries)


@attrs.define
class Sum:
    """What some samples add up to. A seed that was run twice counts twice."""

    samples: int = 0
    seeds: int = 0
    knew_groups: int = 0  # seeds of a simulator that has groups, whether or not their world has
    knew_applications: int = 0
    with_groups: int = 0  # seeds in whose world somebody uses groups
    with_applications: int = 0
    drawn_again: int = 0  # seeds of lines that do not say so themselves
    failed: int = 0
    simulated_s: int = 0
    marks: dict[str, int] = attrs.field(factory=dict)
    faults: dict[str, int] = attrs.field(factory=dict)

    def add(self, other: Sum) -> None:
        """Put together."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, more in ((self.marks, other.marks), (self.faults, other.faults)):
            for name, count in more.items():
                mine[name] = mine.get(name, 0) + count

    def describe(self) -> list[str]:
        """A few lines for people."""
        again = f" ({self.drawn_again} seeds are of lines that do not say it, and were drawn again)"
        lines = [
            f"{self.seeds} seeds in {self.samples} samples, {self.failed} failed, {self.simulated_s} simulated s",
            f"of a simulator that has groups: {self.knew_groups} seeds, applications: {self.knew_applications}",
            f"in whose world are groups: {self.with_groups} seeds, applications: {self.with_applications}"
            + (again if self.drawn_again else ""),
        ]
        for word, counts in (("faults", self.faults), ("marks", self.marks)):
            lines.append(
                f"{word}: " + (", ".join(f"{name} {counts[name]}" for name in sorted(counts)) or "not counted")
            )
        return lines


_COUNTS = [name for name, value in attrs.asdict(Sum()).items() if isinstance(value, int)]


def sums(file: Path) -> dict[str, Sum]:
    """Everything, by protocol, in the order in which each was first run."""
    found: dict[str, Sum] = {}
    for entry in _entries(file):
        found.setdefault(entry["protocol"], Sum()).add(_sum_of(entry))
    return found


def in_all(by_protocol: dict[str, Sum]) -> Sum:
    """The sum of these sums."""
    total = Sum()
    for one in by_protocol.values():
        total.add(one)
    return total


def _sum_of(entry: dict[str, Any]) -> Sum:
    """What one line says, and what follows from it."""
    seeds, marks = entry["seeds"], entry.get("marks", {})
    is_written = "with_groups" in entry
    knew_groups = is_written or GROUPS_MARK in marks
    knew_applications = is_written or APPLICATIONS_MARK in marks
    drawn = range(entry["first"], entry["first"] + seeds) if knew_groups and not is_written else range(0)
    return Sum(
        samples=1,
        seeds=seeds,
        knew_groups=seeds if knew_groups else 0,
        knew_applications=seeds if knew_applications else 0,
        with_groups=entry.get("with_groups", sum(map(has_groups, drawn))),
        with_applications=entry.get("with_applications", sum(map(has_applications, drawn)) if knew_applications else 0),
        drawn_again=len(drawn),
        failed=len(entry["failed"]),
        simulated_s=entry.get("simulated_s", 0),
        marks=dict(marks),
        faults=dict(entry.get("faults", {})),
    )


def _entries(file: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []
