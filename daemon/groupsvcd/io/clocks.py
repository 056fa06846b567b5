"""The clocks of a daemon.

Leases are counted on CLOCK_BOOTTIME: unlike CLOCK_MONOTONIC it goes on while the machine is suspended, so a
laptop that wakes up knows that its lease is long over. The wall clock is for people and for incarnations; no
promise depends on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

now: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds since the machine started, suspended time included."""


def wall_ns() -> int:
    """Nanoseconds since 1970, as the machine believes."""
    return time.time_ns()


def wall_us() -> int:
    """Microseconds since 1970: what incarnations are made of."""
    return time.time_ns() // 1_000


def clock_id() -> str:
    """By what ``now`` counts: processes for which it is the same read the same clock. Empty: not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
