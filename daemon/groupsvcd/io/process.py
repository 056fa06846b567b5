"""What the kernel says of this process: memory, processor time, descriptors."""

from __future__ import annotations

import os
import resource
import time

import attrs

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@attrs.frozen(kw_only=True)
class ProcessStatistics:
    """As of now; 0 for what cannot be read, where there is no /proc."""

    cpu_seconds: float
    resident_bytes: int
    virtual_bytes: int
    open_fds: int
    max_fds: int
    started: float  # seconds since 1970


_booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
"""When the machine was started, by the wall clock as it was when this was imported."""


def statistics() -> ProcessStatistics:
    """Of the calling process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    virtual, resident = _memory()
    return ProcessStatistics(
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        resident_bytes=resident,
        virtual_bytes=virtual,
        open_fds=_open_fds(),
        max_fds=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        started=_start_time(),
    )


def _memory() -> tuple[int, int]:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            virtual, resident = file.read().split()[:2]
    except OSError:
        return 0, 0
    return int(virtual) * PAGE_BYTES, int(resident) * PAGE_BYTES


def _open_fds() -> int:
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # but the one that lists them
    except OSError:
        return 0


def _start_time() -> float:
    """Field 22 of /proc/self/stat counts ticks since the machine was started; names may have spaces in them."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
    except OSError:
        return 0.0
    return _booted + ticks / os.sysconf("SC_CLK_TCK")
