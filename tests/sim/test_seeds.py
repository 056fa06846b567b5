"""A few seeds of the real thing on every run of the tests; ``make sim`` runs as many as there is time for."""

from __future__ import annotations

import pytest

from groupsvc.testing.sim import run_seed


@pytest.mark.parametrize("seed", range(20))
def test_a_seed_breaks_no_promise(seed: int) -> None:
    """V1-V4, V7, B1-B4, B6, L1-L5, K1, S1."""
    assert () == run_seed(seed).failures
