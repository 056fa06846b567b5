"""What the leader remembers of those who wait at barriers."""

from __future__ import annotations

import pytest

from groupsvcd.core.groups.gathering import Gathering
from groupsvcd.core.groups.papers import OnFailure, Waiter

from .assembly import Assembly


def test_of_a_barrier_where_only_the_dead_have_waited_nothing_is_kept() -> None:
    """X1: the entry that tells of the death may be the last one for long, so nobody looks there again."""
    group = Assembly()
    group.join("A1", "B1")
    rulings: list[bytes] = []
    gathering = Gathering(group.group, rulings.append)
    gathering.take(("B", 1), [Waiter(1, "start", 1, group.group.seq, 2, "continue")], now=1.0)
    assert ["start"] == list(gathering._waiters)
    group.fail_nodes("B")
    gathering.look((), now=2.0)
    assert [] == rulings
    assert {} == gathering._waiters
    assert {} == gathering._opened_at


def test_who_still_waits_is_not_forgotten_with_the_dead() -> None:
    group = Assembly()
    group.join("A1", "B1", "C1")
    rulings: list[bytes] = []
    gathering = Gathering(group.group, rulings.append)
    for node in "AB":
        gathering.take((node, 1), [Waiter(1, "start", 1, group.group.seq, 3, "continue")], now=1.0)
    group.fail_nodes("B")
    gathering.look((), now=2.0)
    assert {"start": [("A", 1, 1)]} == {barrier: list(those) for barrier, those in gathering._waiters.items()}


@pytest.mark.parametrize("on_failure", ["continue", "wait"])
def test_a_round_in_which_nobody_is_left_releases_nobody(on_failure: OnFailure) -> None:
    """R1: all providers have died, and all who are left, none, have come; whoever joins next comes to this round."""
    group = Assembly()
    group.join("A1", "B1")
    rulings: list[bytes] = []
    gathering = Gathering(group.group, rulings.append)
    gathering.take(("B", 1), [Waiter(1, "start", 1, group.group.seq, 0, on_failure)], now=1.0)
    group.fail_nodes("A", "B")
    gathering.look((), now=2.0)
    assert [] == rulings
    assert {} == gathering._waiters
