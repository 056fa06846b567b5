"""What ``groupsvc watch`` prints for each event that a subscriber can be told."""

from __future__ import annotations

import json

import pytest

from groupsvc import (
    AttributesChanged,
    Cause,
    Dissolved,
    Event,
    Joined,
    Left,
    Lost,
    Overrun,
    Provider,
    Resumed,
    StateChanged,
    Suspended,
    View,
    Vote,
)
from groupsvc.cli import event_lines

ANNA = Provider("n1/17/1", "n1", "anna", b"", 3)
NAMELESS = Provider("n2/18/4", "n2", "", b"\xff", 5)
VIEW = View(7, 1 << 20, (ANNA, NAMELESS), b"green", 2, Vote.APPROVE)

CASES: list[tuple[Event, str]] = [
    (Joined((ANNA, NAMELESS), seq=7, view=VIEW, group="db"), "joined: anna at n1, n2/18/4 at n2"),
    (Left((ANNA,), Cause.FAILURE, seq=7, view=VIEW, group="db"), "left: anna at n1 (FAILURE)"),
    (Left((ANNA,), Cause.LEAVE, 4, "done", seq=7, view=VIEW, group="db"), "left: anna at n1 (LEAVE, code 4, done)"),
    (StateChanged(b"green", 2, seq=7, view=VIEW, group="db"), "state: 'green', version 2"),
    (AttributesChanged((("time_limit", 5.0),), seq=7, view=VIEW, group="db"), "attributes: time_limit = 5.0"),
    (Suspended("", group="db"), "suspended: no word from the daemon"),
    (Resumed(group="db"), "resumed: nothing was missed"),
    (Lost("the daemon was restarted", group="db"), "lost: the daemon was restarted"),
    (Dissolved("", group="db"), "dissolved: the last provider has left"),
    (Overrun(12, group="db"), "overrun: 12 events were not read in time and are left out"),
]


@pytest.mark.parametrize("event,expected", CASES, ids=lambda value: type(value).__name__)
def test_an_event_is_one_line_for_people(event: Event, expected: str) -> None:
    assert expected == event_lines.line_of(event)


@pytest.mark.parametrize("event,_", CASES, ids=lambda value: type(value).__name__)
def test_an_event_is_one_object_for_programs(event: Event, _: str) -> None:
    found = json.loads(json.dumps(event_lines.object_of(event)))
    assert type(event).__name__ == found["event"]
    assert "db" == found["group"]


def test_objects_have_the_fence_of_a_change_of_membership_and_the_value_of_a_state_change() -> None:
    left = event_lines.object_of(Left((ANNA,), Cause.FAILURE, seq=7, view=VIEW, group="db"))
    assert (7, 1 << 20, "FAILURE") == (left["seq"], left["fence"], left["cause"])
    state = event_lines.object_of(StateChanged(b"green", 2, seq=7, view=VIEW, group="db"))
    assert ("green", "Z3JlZW4=", 2) == (state["state"], state["state_base64"], state["state_version"])


def test_the_first_line_is_the_group_as_it_was() -> None:
    expected = "2 providers: anna at n1, n2/18/4 at n2; state 'green', version 2"
    assert expected == event_lines.first_line(VIEW)
    found = json.loads(json.dumps(event_lines.first_object("db", VIEW)))
    assert ("view", "db", 7) == (found["event"], found["group"], found["seq"])
    assert ["anna", ""] == [one["name"] for one in found["providers"]]
    assert "APPROVE" == found["default_vote"]
