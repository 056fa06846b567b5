"""What is made of measured figures: only those of one round are divided, and parts of one day and commit are one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.load import head
from bench.peers import results
from bench.peers.aims import AIMS, PYTHON, Aim
from bench.peers.chart import chart, ticks
from bench.peers.page import BEGIN, END, advantage, filled, is_worse
from bench.peers.protobuf import fields, message
from bench.peers.results import Machine, Part, Results, Sample
from bench.peers.rows import LOADS, ROWS
from bench.peers.those import PEERS
from bench.peers.witness import EVERY, Witness, compared
from bench.spark_barriers import _together

MACHINE = Machine(cores=2, processor="one", kernel="6", system="Debian", python="3.11")


def some(run: str, *samples: tuple[int, str, str, float], commit: str = "abc") -> Results:
    found = [Sample(run, number, peer, row, value) for number, peer, row, value in samples]
    return Results(run, MACHINE, {"ours": "1", "redis": "7"}, {}, [Part(run, commit, "make bench-peers")], found)


def test_only_figures_of_one_round_are_divided() -> None:
    found = some(
        "2026-01-01 10:00:00",
        (0, "ours", "single", 2.0), (0, "redis", "single", 1.0),
        (1, "ours", "single", 4.0), (1, "redis", "single", 12.0),
        (2, "redis", "single", 100.0),
    )  # fmt: skip
    ratio = results.ratio(found, "single", "redis", "ours")
    assert ratio == results.Figure(1.75, 0.5, 3.0, 2)


def test_a_rate_is_better_when_it_is_higher() -> None:
    found = some("2026-01-01 10:00:00", (0, "ours", "one", 50.0), (0, "redis", "one", 100.0))
    factor = advantage(found, ROWS["one"], "redis")
    assert factor is not None
    assert 0.5 == factor.median
    assert is_worse(factor)


def test_parts_of_one_day_are_one_file_and_another_day_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "peers.json"
    first = some("2026-01-01 10:00:00", (0, "ours", "one", 50.0), (0, "ours", "single", 1.0))
    assert first == results.merged(file, first)
    results.write(file, first)
    assert first == results.read(file)
    second = results.merged(file, some("2026-01-01 11:00:00", (0, "ours", "one", 60.0)))
    assert [50.0, 1.0, 60.0] == [sample.value for sample in second.samples]
    assert ["make bench-peers"] * 2 == [part.command for part in second.parts]
    tomorrow = some("2026-01-02 10:00:00")
    assert tomorrow == results.merged(file, tomorrow)


def test_rows_that_are_measured_again_at_another_commit_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    file = tmp_path / "peers.json"
    results.write(file, some("2026-01-01 10:00:00", (0, "ours", "one", 50.0), (0, "ours", "single", 1.0)))
    second = results.merged(file, some("2026-01-01 12:00:00", (0, "ours", "one", 60.0), commit="def"))
    assert {"single": 1.0, "one": 60.0} == {sample.row: sample.value for sample in second.samples}
    assert ["abc", "def"] == results.commits(second)
    results.write(file, second)
    third = results.merged(file, some("2026-01-01 13:00:00", (0, "ours", "single", 2.0), commit="def"))
    assert ["def", "def"] == [part.commit for part in third.parts]


def test_the_page_names_who_is_better_and_keeps_what_people_wrote() -> None:
    found = some("2026-01-01 10:00:00", (0, "ours", "single", 2.0), (0, "redis", "single", 1.0))
    page = filled(f"before\n{BEGIN}what was here\n{END}after\n", found)
    assert page.startswith("before\n")
    assert page.endswith("after\n")
    assert "what was here" not in page
    assert "| **0.5 (0.5–0.5)** | Redis |" in page
    assert page == filled(page, found)
    assert "Redis" in chart(found)


def test_an_aim_is_judged_by_the_median_or_by_the_worst_and_an_unmet_one_says_why() -> None:
    found = some(
        "2026-01-01 10:00:00",
        (0, "ours", "single", 2.0), (0, "corosync", "single", 1.0), (0, "ours", "silent", 1000.0),
        (1, "ours", "single", 3.0), (1, "corosync", "single", 4.0), (1, "ours", "silent", 2600.0),
        (2, "ours", "single", 9.0), (2, "corosync", "single", 3.0), (2, "ours", "silent", 1100.0),
    )  # fmt: skip
    by_ratio = Aim(row="single", bound=2.0, to="corosync")
    of_three = by_ratio.found(found)
    assert results.Figure(2.0, 0.75, 3.0, 3) == of_three
    assert by_ratio.is_met(of_three)
    assert "≤ 2 × corosync" == by_ratio.words("corosync")
    silent = Aim(row="silent", bound=2500, is_worst=True)
    waited = silent.found(found)
    assert waited is not None
    assert not silent.is_met(waited)
    assert "≤ 2 500 ms" == silent.words("")
    page = filled(BEGIN + END, found)
    assert "| ≤ 1 × corosync CPG | 2 (0.75–3) | 3 | **no** | A message passes" in page


def test_more_than_the_bound_meets_an_aim_of_at_least() -> None:
    aim = Aim(row="three", bound=100_000, is_at_least=True)
    assert aim.is_met(results.Figure(100_000, 80_000, 120_000, 5))
    assert not aim.is_met(results.Figure(99_999, 80_000, 120_000, 5))
    assert "≥ 100 000 per s" == aim.words("")


def test_every_aim_is_about_a_row_that_ours_has_and_whom_it_is_compared_with() -> None:
    for aim in AIMS:
        compared_with = {aim.by, aim.to} - {"", "ours"}
        assert all(aim.row in PEERS[name].rows for name in compared_with), aim
        assert aim.row in PEERS["ours"].rows or aim.row == "spark", aim


def test_only_of_our_own_figures_it_is_said_that_they_are_met_elsewhere() -> None:
    """A ratio to another service was measured in these rounds and nowhere else; only Spark was, too."""
    elsewhere = {(aim.row, aim.to) for aim in AIMS if aim.why == PYTHON}
    assert {("spark", ""), ("spark", "ours"), ("three", ""), ("start", "")} == elsewhere


@pytest.mark.parametrize(
    "low, high, apart, expected",
    [
        (0.9, 12.0, 0.2, [1, 2, 5, 10]),
        (0.2, 60.0, 0.4, [0.3, 1, 3, 10, 30]),
        (1.0, 150_000.0, 0.9, [10.0**n for n in range(6)]),
        (1.0, 1e9, 1.4, [10.0**n for n in range(10)]),
    ],
)
def test_an_axis_has_round_numbers_that_are_apart(low: float, high: float, apart: float, expected: list[float]) -> None:
    assert pytest.approx(expected) == ticks(low, high, apart)


def test_a_spark_task_that_goes_before_all_have_come_is_found() -> None:
    fair = [{"wait": [(0.0, 3.0)]}, {"wait": [(2.0, 4.0)]}]
    assert {"wait": [3.0, 2.0]} == _together(fair)
    with pytest.raises(AssertionError, match="before all had come"):
        _together([{"wait": [(0.0, 1.0)]}, {"wait": [(2.0, 4.0)]}])


def test_every_peer_says_what_it_promises_where_it_is_measured_and_why_not_elsewhere() -> None:
    for peer in PEERS.values():
        for row in ROWS.values():
            if row.name in peer.rows:
                assert row.promise in peer.promises or row.promise in ("", "spark"), (peer.name, row.name)
            elif row.name not in ("idle", "loaded", "start", "spark", "alarms"):
                assert row.name in peer.without or "*" in peer.without, (peer.name, row.name)


def test_two_orders_of_two_senders_are_not_the_same() -> None:
    def seen(*order: tuple[int, int]) -> Witness:
        witness = Witness(0, LOADS["three"], lambda payload: None)
        for seq, (who, number) in enumerate(order, start=1):
            witness.deliver(seq, who, head.pack(who, number))
        witness.note()
        return witness

    many = [(who, number) for number in range(1, EVERY) for who in (0, 1)]
    swapped = [many[1], many[0], *many[2:]]
    assert len(many) == compared([seen(*many).notes, seen(*many).notes])
    with pytest.raises(AssertionError, match="different orders"):
        compared([seen(*many).notes, seen(*swapped).notes])


def test_messages_of_protocol_buffers_come_back_as_they_were() -> None:
    nested = message((1, b"key"), (5, 300))
    assert [(2, nested), (3, 0), (4, (1 << 64) - 1)] == [*fields(message((2, nested), (3, 0), (4, -1)))]
    assert [(1, b"key"), (5, 300)] == [*fields(nested)]


def test_what_others_use_is_a_part_of_the_machine() -> None:
    assert 0 <= results.used_by_others() <= 1


def test_results_are_readable_by_others() -> None:
    found = some("2026-01-01 10:00:00", (0, "ours", "one", 50.0))
    assert "ours" == msgspec.json.decode(msgspec.json.encode(found))["samples"][0]["peer"]
