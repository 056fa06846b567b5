"""A survey: what each node says of itself reaches who asked, and who does not answer is named."""

from __future__ import annotations

import math

import pytest

from groupsvc.wire.client_messages import Problem
from groupsvc.wire.survey_messages import LinkState, NodeFindings, SurveyAsk, SurveyIs
from groupsvcd.core.domain.surveys import SURVEYS_MAX, Observed
from tests.unit.core.trio import Trio


def survey(trio: Trio, node: str, *, timeout: float = 5.0) -> int:
    return trio.call(node, lambda number: SurveyAsk(number, timeout))


def answered(trio: Trio, number: int) -> dict[str, NodeFindings]:
    reply = trio.replies[number]
    assert isinstance(reply, SurveyIs)
    return {one.node: one for one in reply.nodes}


def seen_by(trio: Trio, name: str, ahead_s: float = 0.0, links: dict[str, LinkState] | None = None) -> None:
    """What the driver of this node tells its engine."""
    engine = trio.engines[name]
    engine.surveys.look = lambda: Observed(f"1.{name}", int((trio.now + ahead_s) * 1e6), links or {})


def test_versions_clocks_and_links_of_all_are_told() -> None:
    trio = Trio.in_service(others="D")
    seen_by(trio, "A", links={"B": "connected"})
    seen_by(trio, "B", ahead_s=3.0, links={"A": "refused", "C": "connected"})
    seen_by(trio, "C", ahead_s=-1.0)
    seen_by(trio, "D")
    number = survey(trio, "A")
    trio.run(1.0)
    found = answered(trio, number)
    assert {name: f"1.{name}" for name in "ABCD"} == {name: one.version for name, one in found.items()}
    assert {"A": 0.0, "B": 3.0, "C": -1.0, "D": 0.0} == pytest.approx(
        {name: one.skew_s for name, one in found.items()}, abs=0.01
    )
    assert [("A", "refused"), ("C", "connected")] == [(one.node, one.state) for one in found["B"].links]
    assert found["B"].links[0].heard_s >= 0
    assert all(one.answered and not one.suspended for one in found.values())


def test_who_does_not_answer_is_named_and_waited_for_no_longer_than_two_seconds() -> None:
    trio = Trio.in_service(others="D")
    trio.kill("C")
    number = survey(trio, "A", timeout=60.0)
    trio.run(1.9)
    assert number not in trio.replies
    trio.run(0.3)
    assert {"A": True, "B": True, "C": False, "D": True} == {
        name: one.answered for name, one in answered(trio, number).items()
    }


def test_a_question_that_was_lost_is_asked_again() -> None:
    trio = Trio.in_service()
    trio.cut("A", "B")
    number = survey(trio, "A")
    trio.run(0.35)
    assert number not in trio.replies
    trio.heal()
    trio.run(0.3)
    assert answered(trio, number)["B"].answered


def test_a_node_that_is_no_voter_asks_other_nodes_of_whom_it_knows_only_by_the_list() -> None:
    trio = Trio.in_service(others="DE")
    number = survey(trio, "D")
    trio.run(1.0)
    assert set("ABCDE") == {name for name, one in answered(trio, number).items() if one.answered}


def test_too_many_at_a_time_are_refused() -> None:
    trio = Trio.in_service()
    trio.kill("C")
    numbers = [survey(trio, "A") for _ in range(SURVEYS_MAX + 1)]
    refused = trio.replies[numbers[-1]]
    assert isinstance(refused, Problem)
    assert ("failed", "busy") == (refused.family, refused.code)
    trio.run(2.5)
    assert all(isinstance(trio.replies[number], SurveyIs) for number in numbers[:-1])
    assert math.inf == trio.engines["A"].surveys.deadline
