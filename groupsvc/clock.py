"""The clock that a session's lease is counted on.

CLOCK_BOOTTIME goes on while the machine is suspended: a laptop that wakes up knows at once that what it held is long
over. ``time.monotonic`` stands still meanwhile and would let it believe.
"""

from __future__ import annotations

import time

_BOOTTIME = time.CLOCK_BOOTTIME
_clock_gettime = time.clock_gettime


def now() -> float:
    """Seconds since the machine started, suspended time included."""
    return _clock_gettime(_BOOTTIME)
