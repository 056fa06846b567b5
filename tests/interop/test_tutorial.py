"""The first part of the tutorial happens as it is told."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from groupsvc.testing import LocalDomain
from tests.interop.terminals import Prompt, agrees, typed_on

PAGE = (Path(__file__).parents[2] / "docs/tutorial.md").read_text()


def test_what_is_typed_at_two_terminals_prints_what_the_page_says(local_domain: LocalDomain) -> None:
    common = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    nodes = {terminal: common | {"GROUPSVC_ADDRESS": local_domain.address(f"n{terminal}")} for terminal in "12"}
    typed = list(typed_on(PAGE))
    assert len(typed) > 10
    with Prompt(nodes["1"]) as first, Prompt(nodes["2"]) as second:
        prompts = {"1": first, "2": second}
        for one in typed:
            if one.is_python:
                printed = prompts[one.terminal].type(one.text)
            else:
                printed = at_the_shell(one.text, nodes[one.terminal])
            assert agrees(one.prints, printed), f"{one.text}\nshould print\n{one.prints}\nand prints\n{printed}"
        assert -9 == second.wait()


def at_the_shell(command: str, environment: dict[str, str]) -> str:
    words = shlex.split(command)
    assert "groupsvc" == words[0]
    arguments = [sys.executable, "-m", "groupsvc.cli", *words[1:]]
    ended = subprocess.run(arguments, capture_output=True, text=True, env=environment, timeout=30)
    return ended.stdout + ended.stderr
