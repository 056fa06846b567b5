"""The ledger: one line for every sample of seeds that was run, so that samples of one protocol add up.

"Twenty thousand seeds" means something only for one protocol. So each line says which: the frame version and a
fingerprint of the engine's sources; and the commit, for people. It also says in how many of the worlds somebody used
groups and in how many there were applications (``with_groups``, ``with_applications``), and how often each mark was hit
and each nemesis came (``marks``, ``faults``); older lines do not, and count for nothing there.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from pathlib import Path
from typing import Any

import attrs
import msgspec

from groupsvc.wire import frames


def protocol_version() -> str:
    """Frame version and fingerprint of everything the protocol is made of."""
    import groupsvc.wire
    import groupsvcd.core

    digest = hashlib.sha256()
    for package in (groupsvcd.core, groupsvc.wire):
        root = Path(next(iter(package.__path__)))
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{frames.VERSION}-{digest.hexdigest()[:12]}"


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
    total = sums(file).get(protocol, Sum())
    return total.seeds, total.failed


@attrs.define
class Sum:
    """What the samples of one protocol add up to."""

    samples: int = 0
    seeds: int = 0
    with_groups: int = 0
    with_applications: int = 0
    failed: int = 0
    simulated_s: int = 0
    marks: dict[str, int] = attrs.field(factory=dict)
    faults: dict[str, int] = attrs.field(factory=dict)

    def add(self, entry: dict[str, Any]) -> None:
        """One more sample."""
        self.samples += 1
        self.seeds += entry["seeds"]
        self.with_groups += entry.get("with_groups", 0)
        self.with_applications += entry.get("with_applications", 0)
        self.failed += len(entry["failed"])
        self.simulated_s += entry.get("simulated_s", 0)
        for mine, more in ((self.marks, entry.get("marks", {})), (self.faults, entry.get("faults", {}))):
            for name, count in more.items():
                mine[name] = mine.get(name, 0) + count

    def describe(self) -> list[str]:
        """A few lines for people."""
        lines = [f"{self.seeds} seeds in {self.samples} samples, {self.failed} failed, {self.simulated_s} simulated s"]
        if self.with_groups:
            lines.append(f"{self.with_groups} with groups, {self.with_applications} with applications")
        for word, counts in (("faults", self.faults), ("marks", self.marks)):
            lines.append(
                f"{word}: " + (", ".join(f"{name} {counts[name]}" for name in sorted(counts)) or "not counted")
            )
        return lines


def sums(file: Path) -> dict[str, Sum]:
    """Everything, by protocol, in the order in which each was first run."""
    found: dict[str, Sum] = {}
    for entry in _entries(file):
        found.setdefault(entry["protocol"], Sum()).add(entry)
    return found


def _entries(file: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []
