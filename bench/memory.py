"""What a daemon that has nothing to do keeps in memory, beside an interpreter with the same imports."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from groupsvc.testing import LocalDomain

from .row import Effort, Row, at_most

IMPORTS = "import attrs, msgspec, zmq, sqlite3, tomllib, logging, threading"


def measure(effort: Effort) -> list[Row]:
    """One domain with as many daemons as runs are wanted, looked at after a minute."""
    with LocalDomain(nodes=max(3, effort.runs)) as domain:
        time.sleep(effort.choose(60, 10))
        sizes = [[resident_mib(domain.pid(name))] for name in domain.names]
    bare = _bare_interpreter_mib()
    note = f"a bare interpreter with the imports has {bare:.1f} MiB"
    return [at_most("idle daemon, resident memory", "MiB", sizes, worst_max=40, note=note)]


def resident_mib(pid: int) -> float:
    """VmRSS of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"process {pid} has no VmRSS")


def _bare_interpreter_mib() -> float:
    process = subprocess.Popen(
        [sys.executable, "-c", f"{IMPORTS}; print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        return resident_mib(process.pid)
    finally:
        process.communicate(b"\n")
