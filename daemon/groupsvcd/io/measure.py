"""What a node measures of itself at its start: its strength as a candidate (DIST-02).

The number takes part in elections, so it must be coarse: two equal machines must not differ because one has
a few megabytes less. Each of four quantities counts by its order of magnitude, as a power of two:

    measured = power(CPUs) + power(memory in GiB) + power(free disk in GiB) + power(uptime in hours)
    power(x) = 0 for x < 1, else 1 + floor(log2(x)), at most 8

So a machine twice as large in one respect is better by 1, and none is better by more than 32. The
administrator's ``preference`` is added on top of it by the engine and easily outweighs all of this.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

POWER_MAX = 8


def power(quantity: int) -> int:
    """The order of magnitude of ``quantity``: 0 for nothing, 1 for one, 2 for two and three, 3 from four on."""
    return min(max(quantity, 0).bit_length(), POWER_MAX)


def measured_priority(state_directory: Path | None) -> int:
    """The strength of this machine, 0 to 32; whatever cannot be measured counts nothing."""
    return sum(power(quantity) for quantity in (_cpus(), _memory_gib(), _free_disk_gib(state_directory), _hours_up()))


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def _memory_gib() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**30
    except (OSError, ValueError):
        return 0


def _free_disk_gib(directory: Path | None) -> int:
    if directory is None:
        return 0
    try:
        disk = os.statvfs(directory)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize // 2**30


def _hours_up() -> int:
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) // 3600)
