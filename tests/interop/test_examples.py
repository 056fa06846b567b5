"""Every example runs, as a user would run it: as a program of its own, its output not a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = {
    "demo.py": ["is name server", "kill -9", "took over", "is back with a new incarnation", "all daemons have ended"],
    "shared_setting.py": ["bert was too late", "everybody reads '3'"],
}


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_the_example_tells_its_story(example: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / example)], capture_output=True, text=True, timeout=60, env=environment
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    for words in WORDS[example]:
        assert words in ended.stdout
    assert "\x1b" not in ended.stdout
    assert time.monotonic() - began < 15.0
