"""A gap in service lasts until something comes again, whatever a receiver went through meanwhile."""

from __future__ import annotations

import io
import json

import pytest

from . import silences
from .kills import Kill, KillRun
from .silences import Silence, SilenceLog

PUT_OUT = (
    Silence(100.0, 100.0, "joined"), Silence(100.5, 100.5, "first"), Silence(110.5, 110.5, "Lost"),
    Silence(118.0, 118.0, "joined"), Silence(110.2, 119.0),
)  # fmt: skip
"""B, which was put out when A was killed, and came back: nothing between 110.2 and 119.0."""

KILLED = (
    Silence(100.0, 100.0, "joined"), Silence(100.5, 100.5, "first"), Silence(110.1, 110.1, "Lost"),
    Silence(114.0, 114.0, "joined"), Silence(110.1, 114.3), Silence(116.0, 119.5),
)  # fmt: skip
"""A, whose daemon was killed at 110.0 and was back at 114.0; later it lagged."""


def measured(logs: silences.Logs, *kills: Kill, ended: float = 140.0) -> KillRun:
    """A run with these kills, as these logs show it."""
    run = KillRun(kills=list(kills))
    run.measure(logs, ended)
    return run


def logged(*times: tuple[str, float]) -> list[Silence]:
    """What a receiver writes down that goes through this."""
    file = io.StringIO()
    log = SilenceLog(file)
    for what, at in times:
        match what:
            case "joined":
                log.joined(at)
            case "got":
                log.got(at)
            case "end":
                log.end(at)
            case why:
                log.put_out(at, why)
    return [Silence(*json.loads(line)) for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("why", ["Lost", "Overrun", "Dissolved"])
def test_a_silence_does_not_end_where_a_receiver_is_put_out_nor_where_it_comes_back(why: str) -> None:
    found = logged(("joined", 1.0), ("got", 2.0), ("got", 2.05), (why, 3.0), ("joined", 9.0), ("got", 9.5))
    assert [Silence(2.05, 9.5)] == [one for one in found if one.why in silences.GAPS]


def test_a_silence_that_nothing_ends_is_written_down_when_the_program_ends() -> None:
    found = logged(("joined", 1.0), ("got", 2.0), ("Lost", 3.0), ("end", 9.0))
    assert [Silence(2.0, 9.0, "open")] == [one for one in found if one.why in silences.GAPS]
    assert [] == [one for one in logged(("joined", 1.0), ("end", 9.0)) if one.why in silences.GAPS]


def test_the_gap_of_a_surviving_node_runs_from_its_last_message_to_the_next_one() -> None:
    run = measured({"a": KILLED, "b": PUT_OUT}, Kill("a", 110.0, both=False, down_s=2.0))
    (kill,) = run.kills
    assert pytest.approx(8.8) == kill.gap_s
    assert pytest.approx(8.8) == run.gap_any_s
    assert pytest.approx(4.0) == kill.back_s


def test_what_a_node_that_was_killed_missed_until_it_was_back_is_no_gap_and_what_it_missed_later_is_one_of_any() -> (
    None
):
    run = measured({"a": KILLED}, Kill("a", 110.0, both=False, down_s=2.0))
    assert 0.0 == run.kills[0].gap_s
    assert pytest.approx(3.5) == run.gap_any_s


def test_a_gap_that_is_open_at_the_end_counts_up_to_the_end() -> None:
    log = (*PUT_OUT[:3], Silence(110.2, 150.0, "open"))
    run = measured({"b": log}, Kill("a", 110.0, both=False, down_s=2.0))
    assert pytest.approx(29.8) == run.kills[0].gap_s
    assert [] == silences.gaps({"b": (Silence(141.0, 150.0, "open"),)}, [], 140.0)


def test_a_gap_counts_at_each_kill_in_whose_time_it_lies_and_at_no_other() -> None:
    kills = [Kill(node, at, both=False, down_s=2.0) for node, at in (("a", 105.0), ("c", 112.0), ("a", 125.0))]
    run = measured({"b": PUT_OUT}, *kills)
    assert [8.8, 8.8, 0.0] == [pytest.approx(kill.gap_s) for kill in run.kills]
    assert [None, None, None] == [kill.back_s for kill in run.kills]
