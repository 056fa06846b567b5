"""The clock that a session's lease is counted on.

CLOCK_BOOTTIME goes on while the machine is suspended: a laptop that wakes up knows at once that what it held is long
over. ``time.monotonic`` stands still meanwhile and would let it believe.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

now: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Seconds since the machine started, suspended time included."""
