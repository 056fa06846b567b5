"""The files of ``examples/spark/bulk_load.py``, without Spark: whoever reads sees all of a load, or nothing of it."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples/spark/bulk_load.py"
RANKS = range(4)


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE), run_name="example")


def attempt(example: dict[str, Any], target: Path) -> bool:
    """All tasks write their parts and vote."""
    votes = [example["write_part"](str(target), "monday", rank, [rank]) for rank in RANKS]
    return all(votes)


def seen(target: Path) -> list[str]:
    """By who reads: what has a name without a dot."""
    return sorted(f"{load.name}/{part}" for load in target.glob("[!.]*") for part in os.listdir(load))


WHOLE = [f"monday/part-{rank}" for rank in RANKS]


def test_a_load_is_there_with_one_rename(example: dict[str, Any], tmp_path: Path) -> None:
    assert attempt(example, tmp_path)
    assert [] == seen(tmp_path)
    assert example["settle"](str(tmp_path), "monday", True)
    assert WHOLE == seen(tmp_path)
    assert ["monday"] == os.listdir(tmp_path)


def test_a_death_between_the_vote_and_the_rename_leaves_nothing_to_be_seen(
    example: dict[str, Any], tmp_path: Path
) -> None:
    """All have voted for it and rank 0 dies; Spark runs all tasks again."""
    assert attempt(example, tmp_path)
    assert [] == seen(tmp_path)
    assert attempt(example, tmp_path)
    assert example["settle"](str(tmp_path), "monday", True)
    assert WHOLE == seen(tmp_path)


@pytest.mark.parametrize("approved", [True, False])
def test_after_the_rename_what_was_decided_stays(example: dict[str, Any], tmp_path: Path, approved: bool) -> None:
    """Somebody dies before all know; the second attempt finds it done, whatever it would vote now."""
    attempt(example, tmp_path)
    example["settle"](str(tmp_path), "monday", True)
    attempt(example, tmp_path)
    assert example["settle"](str(tmp_path), "monday", approved)
    assert WHOLE == seen(tmp_path)
    assert ["monday"] == os.listdir(tmp_path)


def test_a_load_that_was_voted_down_leaves_nothing(example: dict[str, Any], tmp_path: Path) -> None:
    assert attempt(example, tmp_path)
    assert not example["write_part"](str(tmp_path), "monday", 3, [1, -1])
    assert not example["settle"](str(tmp_path), "monday", False)
    assert [] == os.listdir(tmp_path)
