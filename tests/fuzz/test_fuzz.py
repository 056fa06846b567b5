"""A sample of each family with every test run, the same inputs every time; `make fuzz` looks for longer."""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.families import FAMILIES
from tests.fuzz.mutations import mutated

TARGET = Path(__file__).with_name("fuzz.py")
INPUTS = 10_000
"""Of each family."""
GROWTH_MIB_MAX = 64
"""Of the process while it reads them: none of them has more than 64 KiB, whatever lengths it claims."""
RUNS = 3_000
"""Inputs of libFuzzer for each family."""


@pytest.mark.parametrize("name", FAMILIES)
def test_whatever_the_bytes_are_they_are_answered_or_refused(name: str) -> None:
    """X2, with inputs that are nearly right. What fails is shown as bytes, for the test that comes before the mend."""
    family, rng = FAMILIES[name], Random(1)
    seeds = family.seeds()
    for seed in seeds:
        family.read(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(INPUTS):
        data = mutated(rng.choice(seeds), rng)
        try:
            family.read(data)
        except Exception as error:
            raise AssertionError(f"{name}: {data!r} is neither answered nor refused: {error!r}") from error
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < GROWTH_MIB_MAX


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_no_input_that_the_fuzzer_finds_soon_breaks_a_reader(name: str, tmp_path: Path) -> None:
    """X2. A finding is printed with the input that shows it."""
    arguments = [f"-runs={RUNS}", f"-artifact_prefix={tmp_path}/", "-seed=1", "-rss_limit_mb=512"]
    run = subprocess.run(
        [sys.executable, TARGET, name, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert 0 == run.returncode, run.stdout[-3000:] + run.stderr[-3000:]
    assert "Done " in run.stderr
