"""A newcomer: a fresh virtual environment, the package, a domain of three, two programs that see each other.

The package cache is warm, as that of somebody who has installed something before; the index is asked all the same.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 60.0
MEMBER = """
import sys
import groupsvc
with groupsvc.connect() as session, session.join("hello", name=sys.argv[1]) as group:
    group.wait_for(lambda: len(group.providers) == 2, timeout=20)
    print(*(provider.name for provider in group.providers), flush=True)
    group.barrier(parties=2).wait(timeout=20)
"""


@pytest.mark.alone
def test_two_members_see_each_other_within_a_minute_of_nothing(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GROUPSVC_"))}
    warm = [sys.executable, "-m", "pip", "download", "-q", "-d", tmp_path / "warm", ROOT]
    subprocess.run(warm, check=True, env=environment)
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True, env=environment)
    binaries = tmp_path / "venv/bin"
    subprocess.run([binaries / "pip", "install", "-q", ROOT], check=True, env=environment, cwd=tmp_path)
    installed = time.monotonic()
    domain = subprocess.Popen(
        [binaries / "groupsvc", "dev"], stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    try:
        assert domain.stdout is not None
        exported = next(filter(None, (re.match(r"\s*export GROUPSVC_ADDRESS=(\S+)", line) for line in domain.stdout)))
        environment["GROUPSVC_ADDRESS"] = exported[1]
        formed = time.monotonic()
        members = [
            subprocess.Popen(
                [binaries / "python", "-c", MEMBER, name],
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
                cwd=tmp_path,
            )
            for name in ("anna", "bert")
        ]
        seen = [member.communicate(timeout=SECONDS)[0].split() for member in members]
        ended = time.monotonic()
    finally:
        domain.send_signal(signal.SIGINT)
        domain.wait(SECONDS)
    print(f"installed {installed - began:.1f} s, formed {formed - installed:.1f} s, seen {ended - formed:.1f} s")
    assert [0, 0, 0] == [domain.returncode, *(member.returncode for member in members)]
    assert sorted(seen[0]) == ["anna", "bert"]
    assert seen[0] == seen[1]
    assert ended - began < SECONDS
