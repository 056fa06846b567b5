"""What judges messages is shown what it must refuse: each kind of wrong is turned red, and what is right is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from .ceilings import RSS_ALLOWANCE_MIB, WARM_S, Ceilings, Use, Watched
from .stream_log import OVER, RECORD, STAY, TOLD_TO_END, Orders, payload_of, read_payload

GOOD = [(place, 7, place - 10) for place in range(11, 41)]
"""Thirty messages of life 7, from place 11 on."""


def judged(directory: Path, stays: dict[str, list[tuple[int, int, int]]], known: dict[int, int]) -> list[str]:
    """What is wrong with these stays, all of which have ended as they were told to."""
    for who, records in stays.items():
        file = directory / f"{who}@1-0{STAY}"
        file.write_bytes(b"".join(RECORD.pack(*record) for record in records))
        file.with_suffix(OVER).write_text(TOLD_TO_END)
    orders = Orders(directory)
    orders.judge(is_end=True)
    orders.settle(known)
    return [problem.partition(":")[0] for problem in orders.problems]


def test_all_have_the_same_and_nothing_is_found(tmp_path: Path) -> None:
    stays = {"r1-1": GOOD, "r2-1": GOOD[:12], "r2-2": GOOD[20:], "r3-1": GOOD}
    assert [] == judged(tmp_path, stays, {7: 30})


@pytest.mark.parametrize(
    "rule, wrong",
    [
        ("B3", [*GOOD[:5], *GOOD[6:]]),
        ("B3", [*GOOD[:5], GOOD[4], *GOOD[5:]]),
        ("B4", [*GOOD[:5], (16, 8, 1), *GOOD[6:]]),
    ],
    ids=["lost", "doubled", "another"],
)
def test_one_receiver_that_has_something_else_is_found(
    tmp_path: Path, rule: str, wrong: list[tuple[int, int, int]]
) -> None:
    """B1, B3, B4."""
    assert rule in judged(tmp_path, {"r1-1": GOOD, "r2-1": wrong, "r3-1": GOOD}, {7: 30})


def test_what_is_lost_doubled_or_turned_around_at_all_is_found(tmp_path: Path) -> None:
    """B5, by the counts of the sender."""
    for number, wrong in enumerate((
        [*GOOD[:5], *GOOD[6:]],
        [*GOOD[:5], (16, 7, 5), *((place, 7, count - 1) for place, _, count in GOOD[6:])],
        [*GOOD[:5], (16, 7, 7), (17, 7, 6), *GOOD[7:]],
    )):  # fmt: skip
        directory = tmp_path / str(number)
        directory.mkdir()
        assert "B5" in judged(directory, {"r1-1": wrong, "r2-1": wrong}, {7: 30})


def test_what_a_sender_was_told_to_be_delivered_and_nobody_has_is_found(tmp_path: Path) -> None:
    """B2."""
    assert ["B2"] == judged(tmp_path, {"r1-1": GOOD, "r2-1": GOOD}, {7: 31})


def test_what_nobody_watched_is_not_missed(tmp_path: Path) -> None:
    """All receivers were away between places 20 and 30."""
    assert [] == judged(tmp_path, {"r1-1": GOOD[:10], "r2-1": GOOD[:9], "r1-2": GOOD[20:]}, {7: 30})


def test_pieces_are_judged_as_the_whole_is(tmp_path: Path) -> None:
    """A message that is left out in the second of three pieces is found, and the files of who is gone are removed."""
    orders = Orders(tmp_path)
    wrong = [*GOOD[:15], *GOOD[16:]]
    for upto in (20, 30, 40, 40, 40):
        for who, records in (("r1-1", GOOD), ("r2-1", wrong)):
            part = [record for record in records if record[0] <= upto]
            (tmp_path / f"{who}@1-0{STAY}").write_bytes(b"".join(RECORD.pack(*record) for record in part))
        orders.judge()
    assert 30 == orders.delivered
    assert ["B3"] == [problem.partition(":")[0] for problem in orders.problems]
    for who in ("r1-1", "r2-1"):
        (tmp_path / f"{who}@1-0{OVER}").write_text("")
    orders.judge(is_end=True)
    assert [] == list(tmp_path.iterdir())


def test_changed_bytes_are_found() -> None:
    """B1."""
    payload = payload_of(3, 70_000)
    assert (3, 70_000) == read_payload(payload)
    with pytest.raises(ValueError, match="nobody has sent"):
        read_payload(payload[:-1] + bytes([payload[-1] ^ 1]))


def test_what_grows_over_its_ceiling_is_found() -> None:
    """X1: and what grows less, or is not warm yet, is not."""
    ceilings = Ceilings()
    own = {"n1-daemon": 1}
    ceilings.look(own)
    assert 0 == ceilings.most("daemon")["processes"]
    ceilings.watched[1] = Watched("n1-daemon", since=-2 * WARM_S)
    ceilings.look(own)
    assert 1 == ceilings.most("daemon")["processes"]
    assert [] == ceilings.problems
    ceilings.watched[1].warm = Use(-RSS_ALLOWANCE_MIB - 1.0, 10_000, 10_000)
    ceilings.look(own)
    assert ["X1"] == [problem.partition(":")[0] for problem in ceilings.problems]
    assert "MiB of memory" in ceilings.problems[0]
