"""Complaints are counted and rarely said; the measured priority is coarse."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupsvcd.io import clocks
from groupsvcd.io.complaints import Complaints
from groupsvcd.io.measure import measured_priority, power


def test_a_flood_of_complaints_is_one_line_per_interval(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    complaints = Complaints(lambda: now, interval_s=5.0)
    for _ in range(1000):
        complaints.note("bad frame", "nonsense")
    complaints.note("slow disk", "3 s")
    now = 106.0
    complaints.note("bad frame", "nonsense")
    assert {"bad frame": 1001, "slow disk": 1} == complaints.counts
    assert [
        "bad frame: nonsense",
        "slow disk: 3 s",
        "bad frame: nonsense (999 more like it were not logged)",
    ] == [record.getMessage() for record in caplog.records]


def test_the_priority_counts_powers_of_two() -> None:
    """DIST-02: twice the machine is one better, a little more is nothing."""
    assert [0, 1, 2, 2, 3, 3, 8, 8] == [power(n) for n in (0, 1, 2, 3, 4, 7, 128, 10**9)]
    assert 0 <= measured_priority(None) <= measured_priority(Path("/")) <= 32


def test_the_clock_of_leases_only_grows() -> None:
    before = clocks.now()
    assert clocks.now() >= before
