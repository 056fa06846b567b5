"""Every file keeps to the house rules, and each rule is shown a file that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tidy import house_rules
from tests.tidy.source_tree import SourceFile, package_files, script_files

Rule = Callable[[str], str | None]

FOR_EVERY_FILE: list[Rule] = [
    house_rules.too_long,
    house_rules.tells_no_story,
    house_rules.unfinished,
    house_rules.heartbeats,
]
WHERE_SLEEPING_IS_FAIR = ("tests/interop/", "tests/faults/", "examples/", "bench/")


def _problems(rule: Rule, files: list[SourceFile]) -> list[str]:
    return [f"{file.name} {problem}" for file in files if (problem := rule(file.text)) is not None]


@pytest.mark.parametrize("rule", FOR_EVERY_FILE, ids=lambda rule: rule.__name__)
def test_every_file_keeps_the_rule(rule: Rule) -> None:
    assert [] == _problems(rule, [*package_files(), *script_files()])


def test_no_test_uses_mocks() -> None:
    assert [] == _problems(house_rules.mocks, list(script_files()))


def test_no_test_sleeps_outside_those_with_real_daemons() -> None:
    files = [file for file in script_files() if not file.name.startswith(WHERE_SLEEPING_IS_FAIR)]
    assert [] == _problems(house_rules.sleeps, files)


PLANTED: dict[str, tuple[Rule, str]] = {
    "long": (house_rules.too_long, "x = 1\n" * 601),
    "no docstring": (house_rules.tells_no_story, "x = 1\n"),
    "empty docstring": (house_rules.tells_no_story, '"""."""\n'),
    "undone": (house_rules.unfinished, "x = 1  # " + "TO" + "DO later\n"),
    "broken": (house_rules.unfinished, "# FIX" + "ME: wrong\n"),
    "marked": (house_rules.unfinished, "# " + "X" * 3 + "\n"),
    "heartbeat": (house_rules.heartbeats, "import zmq\nsocket.setsockopt(zmq.HEARTBEAT_IVL, 1)\n"),
    "mock": (house_rules.mocks, "from unittest import mock\n"),
    "mock inside": (house_rules.mocks, "from unittest.mock import patch\n"),
    "mock whole": (house_rules.mocks, "import unittest.mock\n"),
    "sleep": (house_rules.sleeps, "import time\ntime.sleep(1)\n"),
    "sleep by name": (house_rules.sleeps, "from time import sleep\nsleep(1)\n"),
}


@pytest.mark.parametrize("rule, text", PLANTED.values(), ids=PLANTED.keys())
def test_planted_violation_is_found(rule: Rule, text: str) -> None:
    assert rule(text) is not None


@pytest.mark.parametrize(
    "rule", [*FOR_EVERY_FILE, house_rules.mocks, house_rules.sleeps], ids=lambda rule: rule.__name__
)
def test_a_plain_file_is_left_alone(rule: Rule) -> None:
    assert rule('"""The table of nodes: who is up, down or gone."""\n\nimport time\n\nnow = time.monotonic()\n') is None
