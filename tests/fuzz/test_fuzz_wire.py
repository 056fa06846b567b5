"""A short run of the fuzz target with every test run; `make fuzz` is for longer ones."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TARGET = Path(__file__).with_name("fuzz_wire.py")
SECONDS = 10


@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed")
@pytest.mark.slow
def test_no_input_found_within_seconds_breaks_a_reader(tmp_path: Path) -> None:
    """X2: any bytes are answered or refused. A finding is printed with the input that shows it."""
    run = subprocess.run(
        [sys.executable, TARGET, f"-max_total_time={SECONDS}", f"-artifact_prefix={tmp_path}/", "-seed=1"],
        capture_output=True,
        text=True,
        timeout=SECONDS + 60,
        check=False,
    )
    assert 0 == run.returncode, run.stdout[-3000:] + run.stderr[-3000:]
    assert "Done " in run.stderr
