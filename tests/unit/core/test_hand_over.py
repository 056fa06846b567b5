"""Handing the office over: only to one that can take it, and the asker learns what became of it."""

from __future__ import annotations

import pytest

from groupsvc.wire.client_messages import Done, Problem
from groupsvcd.core.peer_messages import Held, Tell
from tests.unit.core.trio import Trio


def test_the_office_goes_where_it_was_asked_to_go() -> None:
    """Done is said when the new name server calls."""
    trio = Trio.in_service(others="D")
    number = trio.hand_over("D", "C")
    trio.run(1.0)
    assert Done(number) == trio.replies[number]
    assert ["C"] == trio.leaders
    assert [] == trio.lines("isolated")


def test_a_lagging_successor_is_waited_for() -> None:
    """B has not said yet that it holds the newest entry. Elected at once, it had to fetch it first, or might fail."""
    trio = Trio.in_service(others="D")
    trio.loses = lambda sender, receiver, message: sender == "B" and isinstance(message, Held)
    trio.set("D", "color", "red")
    trio.run(0.1)
    number = trio.hand_over("D", "B", timeout=10.0)
    trio.run(2.0)
    assert number not in trio.replies
    assert ["A"] == trio.leaders
    trio.heal()
    trio.run(3.0)
    assert Done(number) == trio.replies[number]
    assert ["B"] == trio.leaders


def test_a_successor_that_stays_behind_leaves_the_outcome_unknown() -> None:
    """At its deadline the question may still be on its way."""
    trio = Trio.in_service(others="D")
    trio.loses = lambda sender, receiver, message: sender == "B" and isinstance(message, Held)
    trio.set("D", "color", "red")
    number = trio.hand_over("D", "B", timeout=1.0)
    trio.run(1.5)
    reply = trio.replies[number]
    assert isinstance(reply, Problem)
    assert ("unknown", "timed out") == (reply.family, reply.code)
    assert ["A"] == trio.leaders


@pytest.mark.parametrize(
    "to, reason",
    [
        ("D", "D is no voter; the voters are A, B, C"),
        ("B", "B is not up"),
        ("C", "C is configured never to be name server"),
    ],
)
def test_a_refused_hand_over_names_the_reason(to: str, reason: str) -> None:
    """No voter, a voter that is down, a witness."""
    trio = Trio.in_service(others="D", of={"C": {"candidate": False}, "A": {"preference": 1}})
    trio.kill("B")
    trio.run(4.0)
    number = trio.hand_over("D", to)
    trio.run(0.5)
    reply = trio.replies[number]
    assert isinstance(reply, Problem)
    assert ("failed", reason) == (reply.family, reply.text)
    assert ["A"] == trio.leaders


def test_a_hand_over_to_the_name_server_itself_is_done_at_once() -> None:
    """Nothing changes."""
    trio = Trio.in_service(others="D")
    number = trio.hand_over("D", "A")
    trio.run(0.1)
    assert Done(number) == trio.replies[number]
    assert [] == trio.lines("office")


def test_a_lost_answer_does_not_hide_that_it_was_done() -> None:
    """A yields to B and its answer is lost. D asks again, B this time, and B is what was asked for."""
    trio = Trio.in_service(others="D")
    trio.loses = lambda sender, receiver, message: sender == "A" and isinstance(message, Tell)
    number = trio.hand_over("D", "B")
    trio.run(3.0)
    assert ["B"] == trio.leaders
    assert Done(number) == trio.replies[number]


def test_a_repeated_ask_that_is_refused_is_unknown_not_failed() -> None:
    """A yields to B, its answer is lost, B takes over and dies before D hears it. A is name server again.

    D asks A once more and is told that B is not up. "Failed" would be a lie: it was done.
    """
    trio = Trio.in_service(others="D")
    trio.loses = lambda sender, receiver, message: (
        (sender == "A" and isinstance(message, Tell)) or {sender, receiver} == {"B", "D"}
    )
    number = trio.hand_over("D", "B", timeout=30.0)
    trio.run_until(lambda: trio.leaders == ["B"])
    trio.run(0.5)
    trio.kill("B")
    trio.refuse("B", "A", "C", "D")
    trio.heal()
    trio.run(8.0)
    reply = trio.replies[number]
    assert isinstance(reply, Problem)
    assert ("unknown", "refused", "B is not up") == (reply.family, reply.code, reply.text)
