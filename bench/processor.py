"""The processor time of other processes: says what something costs, whatever else the machine does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path


def spent_s(pids: Sequence[int]) -> float:
    """Processor time of all threads of these processes until now, in seconds."""
    return sum(
        int((task / "schedstat").read_text().split()[0]) / 1e9
        for pid in pids
        for task in Path(f"/proc/{pid}/task").iterdir()
    )


def spent_between(pids: Sequence[int], begin: float, end: float) -> float:
    """Processor time of these processes between two moments of the monotonic clock, which are waited for."""
    time.sleep(max(0.0, begin - time.monotonic()))
    before = spent_s(pids)
    time.sleep(max(0.0, end - time.monotonic()))
    return spent_s(pids) - before
