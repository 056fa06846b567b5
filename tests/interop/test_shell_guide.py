"""The guide for scripts, and the script among the examples, with ``groupsvc`` as a command that a shell finds."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from groupsvc.testing import LocalDomain

from .terminals import agrees, typed_on
from .typed_commands import PATIENCE_S, command, environment

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/shell.md").read_text()
SCRIPT = ROOT / "examples/rolling_restart.sh"


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """A search path with ``groupsvc`` in it."""
    program = tmp_path / "bin" / "groupsvc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command())} "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def test_what_is_typed_prints_what_the_page_says(shared_domain: LocalDomain, installed: str) -> None:
    typed = list(typed_on(GUIDE))
    assert len(typed) > 5
    ahead = ""  # what runs in the background meanwhile
    for one in typed:
        if one.text.endswith("&"):
            ahead = f"{one.text}\n"
            continue
        ended = subprocess.run(
            ["sh", "-c", ahead + one.text], capture_output=True, text=True, timeout=PATIENCE_S,
            env=environment(shared_domain, f"n{one.terminal}") | {"PATH": installed},
        )  # fmt: skip
        ahead = ""
        assert agrees(one.prints, ended.stdout), f"{one.text}\nprints\n{ended.stdout}\n{ended.stderr}"
        assert "" == ended.stderr


def started(domain: LocalDomain, installed: str, number: int, *restart: str) -> subprocess.Popen[str]:
    """The script on one node."""
    return subprocess.Popen(
        [str(SCRIPT), f"web{number}", "web1,web2,web3", "--", *restart],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment(domain, f"n{number}") | {"PATH": installed, "MEET_S": "3"},
    )  # fmt: skip


def test_a_rolling_restart_restarts_one_after_the_other(
    shared_domain: LocalDomain, installed: str, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    restart = ("sh", "-c", f"echo down >> {record}; sleep 0.1; echo up >> {record}")
    nodes = {number: started(shared_domain, installed, number, *restart) for number in (1, 2, 3)}
    for number, process in nodes.items():
        said, complained = process.communicate(timeout=PATIENCE_S)
        assert (0, "") == (process.returncode, complained)
        told = [f"web{number}: {what}" for what in ("all are here", "restarts", "serves again", "all serve again")]
        assert told == said.splitlines()
    assert ["down", "up"] * 3 == record.read_text().split()


def test_a_node_that_does_not_serve_again_is_named_to_the_others(shared_domain: LocalDomain, installed: str) -> None:
    nodes = {
        number: started(shared_domain, installed, number, "true" if number < 3 else "false") for number in (1, 2, 3)
    }
    codes = {}
    for number, process in nodes.items():
        _, complained = process.communicate(timeout=PATIENCE_S)
        codes[number] = process.returncode
        assert (number < 3) is ("missing: web3" in complained)
    assert {1: 124, 2: 124, 3: 1} == codes
