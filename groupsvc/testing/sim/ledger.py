"""The ledger: one line for every sample of seeds that was run, so that samples of one protocol add up.

"Twenty thousand seeds" means something only for one protocol. So each line says which: the frame version and a
fingerprint of the engine's sources; and the commit, for people.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from pathlib import Path
from typing import Any

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
    entries = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()] if file.exists() else []
    return max((entry["first"] + entry["seeds"] for entry in entries if entry["protocol"] == protocol), default=0)


def seeds_so_far(file: Path, protocol: str) -> tuple[int, int]:
    """How many seeds of this protocol were run, and how many of them failed."""
    run = failed = 0
    if file.exists():
        for line in file.read_bytes().splitlines():
            entry = msgspec.json.decode(line)
            if entry["protocol"] == protocol:
                run += entry["seeds"]
                failed += len(entry["failed"])
    return run, failed
