"""The documents name every command and every exit code that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode

ROOT = Path(__file__).parents[3]
REFERENCE = (ROOT / "docs/reference/commands.md").read_text()


def commands(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """All commands that the help lists."""
    main([])
    return re.findall(r"^    ([a-z-]+) ", capsys.readouterr().err, flags=re.MULTILINE)


def test_the_reference_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    found = commands(capsys)
    assert {"groups", "members", "watch", "state", "send", "why", "status"} <= set(found)
    assert [] == [name for name in found if f"| `groupsvc {name}" not in REFERENCE]


def test_every_command_shows_an_example_of_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in commands(capsys):
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert f"example:\n  groupsvc {name}" in capsys.readouterr().out


def test_the_reference_lists_every_exit_code() -> None:
    table = REFERENCE.partition("## Exit codes")[2]
    described = re.findall(r"^\| (\d+) \|", table, flags=re.MULTILINE)
    assert [str(int(code)) for code in ExitCode] == described
