"""A daemon that ends by itself turns a run red, unless it was struck by what ends daemons, and ended as that does."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from groupsvcd.command_line import EXIT_USAGE
from groupsvcd.daemon import EXIT_CANNOT_BIND, EXIT_STATE
from groupsvcd.io.reactor import EXIT_DISK, EXIT_HALTED

from .cluster import Ended
from .endings import traces, unexpected
from .nemeses import NEMESES
from .nemesis import Nemesis, Scene
from .runs import Run
from .wires import Missing

KILLED, ABORTED = -signal.SIGKILL, -signal.SIGABRT
CODES = (KILLED, ABORTED, 0, EXIT_CANNOT_BIND, EXIT_USAGE, EXIT_HALTED, EXIT_STATE, EXIT_DISK)


def struck(name: str, target: str | list[str] = "n1") -> Nemesis:
    """This nemesis, after it has struck there."""
    nemesis = NEMESES[name]()
    nemesis.has_struck({"target": target})
    return nemesis


@pytest.mark.parametrize("name", sorted(NEMESES))
def test_who_was_not_struck_has_ended_by_itself_whatever_its_code(name: str) -> None:
    assert all(unexpected(struck(name), Ended("n2", code)) for code in CODES)
    assert all(unexpected(NEMESES[name](), Ended("n1", code)) for code in CODES)


@pytest.mark.parametrize(
    "name, codes",
    [("fsync-eio", {EXIT_DISK}), ("memory-limit", {KILLED}), ("power-loss-one", {EXIT_DISK, EXIT_STATE}),
     ("power-loss-all", {EXIT_DISK, EXIT_STATE}), ("kill", set()), ("disk-full", set()), ("isolate-one", set())],
)  # fmt: skip
def test_who_was_struck_may_end_as_its_nemesis_ends_daemons_and_in_no_other_way(name: str, codes: set[int]) -> None:
    assert codes == {code for code in CODES if not unexpected(struck(name, ["n3", "n1"]), Ended("n1", code))}


@pytest.mark.parametrize("name", ["bit-flip", "truncate"])
def test_who_has_damaged_state_may_refuse_it_also_when_another_one_is_struck(name: str) -> None:
    nemesis: Any = NEMESES[name]()
    nemesis._damaged.add("n1")
    nemesis.has_struck({"target": "n2", "spared": True})
    allowed = {(node, code) for node in ("n1", "n2") for code in CODES if not unexpected(nemesis, Ended(node, code))}
    assert {("n1", EXIT_STATE), ("n1", EXIT_DISK)} == allowed


def test_a_strike_is_over_when_somebody_else_is_struck() -> None:
    nemesis = struck("fsync-eio")
    assert not unexpected(nemesis, Ended("n1", EXIT_DISK))
    nemesis.has_struck({"target": "n2"})
    assert "n1 ended by itself with code 5; it was not struck" in unexpected(nemesis, Ended("n1", EXIT_DISK))


def test_a_stack_trace_in_a_log_is_found_and_plain_lines_are_not() -> None:
    assert [] == traces("12:00 n1 leads\n12:01 the disk is full\n")
    (found,) = traces("12:00 n1 leads\nTraceback (most recent call last):\n  File …\nKeyError: 7\n")
    assert "KeyError: 7" in found


class Accident(Nemesis):
    """Says that it makes daemons end, strikes one, and another one crashes."""

    name = "accident"
    ends_with = frozenset({EXIT_DISK})
    gap_s = (0.5, 1.0)
    lasts_s = (5.0, 5.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        one, other = rng.sample(scene.running(), 2)
        os.kill(scene.cluster.pid(other), signal.SIGABRT)
        return {"target": one}


@pytest.mark.alone
def test_a_run_in_which_a_daemon_crashes_that_was_not_struck_is_red(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also under a nemesis that ends daemons: it once excused all of them."""
    monkeypatch.setitem(NEMESES, Accident.name, Accident)
    try:
        result = Run(nemesis=Accident.name, workload="multicast", seed=1, seconds=3.0, histories=tmp_path).go()
    except Missing as missing:
        pytest.skip(str(missing))
    found = [finding.text for finding in result.findings if finding.rule == "run"]
    assert any(f"ended by itself with code {ABORTED}; it was not struck by accident" in text for text in found), found
    assert "red" == result.verdict
