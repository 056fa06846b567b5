"""Who shares a hole with many asks its own server, at its own moment; the leader when it is the last one left."""

from __future__ import annotations

from collections import Counter
from statistics import median

from hypothesis import given
from hypothesis import strategies as st

from groupsvcd.core.stream.asking import first_wait, in_turn, place_in, whom_to_ask

SERVERS = ("A", "B", "C", "D")
DELAY = 0.02


def test_the_leader_is_asked_last() -> None:
    """It has the most to do (SAM-06)."""
    assert ["B", "C", "A", "B"] == [whom_to_ask(SERVERS, "D", "A", attempt) for attempt in range(4)]
    assert ["C", "B", "A", "C"] == [whom_to_ask(SERVERS, "D", "A", attempt, place=1) for attempt in range(4)]


def test_who_else_may_have_it_is_asked_after_the_leader() -> None:
    """A payload: its origin has it until it knows that the entry is stable."""
    assert ["C", "B", "A", "E"] == [whom_to_ask(SERVERS[:3], "D", "A", i, "E", place=1) for i in range(4)]
    assert ["C", "B", "A", "C"] == [whom_to_ask(SERVERS[:3], "D", "A", i, "B", place=1) for i in range(4)]


def test_with_nobody_else_it_is_the_leader_from_the_first() -> None:
    assert ["A", "A"] == [whom_to_ask(("A", "B"), "B", "A", attempt, place=1) for attempt in range(2)]


@given(servers=st.integers(1, 9), first=st.integers(0, 50), askers=st.integers(1, 200))
def test_of_those_who_stand_in_line_each_server_gets_its_share(servers: int, first: int, askers: int) -> None:
    """SAM-06. Whoever they are, as long as they stand beside one another; none gets more than one beyond the others."""
    names = tuple(f"s{number}" for number in range(servers + 1))
    asked = Counter(in_turn(names, "me", "s0", place)[0] for place in range(first, first + askers))
    assert "s0" not in asked
    assert max(asked.values()) <= -(-askers // servers)


@given(first=st.integers(0, 50), askers=st.integers(10, 200))
def test_the_first_questions_of_many_are_spread_around_the_delay(first: int, askers: int) -> None:
    """SAM-06. None is much later than it would be alone; in no tenth of the time more than twice its share and two."""
    waits = [first_wait(DELAY, place) for place in range(first, first + askers)]
    assert 0.75 * DELAY <= min(waits) <= max(waits) <= 1.25 * DELAY
    assert abs(median(waits) - DELAY) < 0.1 * DELAY
    tenths = Counter(int((wait / DELAY - 0.75) * 20) for wait in waits)
    assert max(tenths.values()) <= askers / 5 + 2


def test_who_is_in_no_line_yet_has_a_place_by_its_name() -> None:
    """A hundred that come at once are in nobody's list, and do not all ask the same server."""
    assert 1 == place_in(("A", "B"), "B")
    asked = Counter(place_in(("A", "B"), f"node-{number}") % 2 for number in range(100))
    assert min(asked.values()) >= 30
