"""Journals that no daemon wrote are as daemons write them: an outsider finds them sound, and what is planted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groupsvc.journals.auditing import RULES, audit
from groupsvc.journals.segments import segments_of
from groupsvc.testing.made_journals import PLANTS, Shape, make_journals
from groupsvc.testing.made_journals.__main__ import main

SHAPE = Shape(
    blocks=100, groups=2, hot=0.8, entries=4, ballot_every=4, barrier_every=5, view_every=10, failure_every=12
)

ONLY_ON_SPARK = {"V3", "L6"}
"""Rules of which the single process looks at other lines than those that are planted: it compares no k, and no fences
of views."""


def _found(directory: Path) -> set[str]:
    return {one.rule for one in audit([directory]).contradictions}


@pytest.mark.parametrize("level", ["batch", "full"])
def test_a_story_in_which_all_goes_well_is_sound(tmp_path: Path, level: str) -> None:
    make_journals(tmp_path, Shape(blocks=100, groups=2, view_every=10, level=level), file_lines=100)
    assert set() == _found(tmp_path)
    assert 5 < len(segments_of(tmp_path))


def test_a_long_story_is_sound(tmp_path: Path) -> None:
    """Whoever would reject is late or has failed, now and then; then nobody does."""
    shape = Shape(blocks=300, groups=1, hot=1.0, entries=1, ballot_every=1, barrier_every=7, failure_every=3)
    make_journals(tmp_path, shape)
    assert set() == _found(tmp_path)


@pytest.mark.parametrize("rule", sorted(set(PLANTS) & set(RULES) - ONLY_ON_SPARK))
def test_what_is_planted_breaks_the_rule_and_none_that_it_does_not_name(tmp_path: Path, rule: str) -> None:
    make_journals(tmp_path, SHAPE, plants=[rule])
    found = _found(tmp_path)
    assert rule in found
    assert found <= PLANTS[rule].rules


@pytest.mark.parametrize("rule", PLANTS)
def test_every_plant_changes_something(tmp_path: Path, rule: str) -> None:
    make_journals(tmp_path / "sound", SHAPE)
    make_journals(tmp_path / "planted", SHAPE, plants=[rule])
    sound, planted = (
        [file.read_bytes() for _, file in segments_of(tmp_path / name)] for name in ("sound", "planted")
    )  # fmt: skip
    assert sound != planted


def test_the_command_writes_about_as_many_lines_as_it_is_asked_for(tmp_path: Path) -> None:
    assert 0 == main([str(tmp_path), "--events", "20000", "--nodes", "3"])
    lines = [json.loads(line) for _, file in segments_of(tmp_path) for line in file.read_bytes().splitlines()]
    assert 16_000 < len(lines) < 24_000
    assert {"n1", "n2", "n3"} == {line["node"] for line in lines}
