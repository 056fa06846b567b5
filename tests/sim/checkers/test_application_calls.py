"""Checkers of what applications are told, on the history of a run that was changed in one line."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from groupsvc.testing.sim.checkers import check
from groupsvc.testing.sim.checkers.application_calls import k2
from groupsvc.testing.sim.checkers.application_stories import Stories
from groupsvc.testing.sim.planted.applications import CALM
from groupsvc.testing.sim.trial import run_plan
from groupsvc.wire.history import HistoryEvent

VOTERS = ("n1", "n2", "n3")

PAPER = {"m": 1, "provider": "n1/1/1", "ballot": 10, "phase": 2, "vote": "reject"}


@pytest.fixture(scope="module")
def calm() -> Sequence[HistoryEvent]:
    """A history without faults."""
    world, trial = run_plan(CALM.plan(1, ()))
    assert () == trial.failures
    return world.history.events()


def test_g9_sees_a_value_that_is_gone_while_somebody_is_there(calm: Sequence[HistoryEvent]) -> None:
    """GS-31: it is kept as long as one provider remains. The empty value may have many versions, but only then."""

    def is_state(line: HistoryEvent) -> bool:
        return line.op == "told" and line.args["kind"] == "state" and "full" in line.args

    place = next(number for number, line in enumerate(calm) if is_state(line))
    line = calm[place]
    args = {**line.args, "full": {**line.args["full"], "value": ""}}
    lines = [*calm[:place], msgspec.structs.replace(line, args=args), *calm[place + 1 :]]
    found = [one.text for one in check(lines, voters=VOTERS, converged=False) if one.invariant == "G9"]
    assert any("though somebody is there" in text for text in found), found


@pytest.mark.parametrize(
    "done, expected",
    [
        (["connected", "vote_sent", "suspended", "vote arrived"], []),
        (["connected", "suspended", "vote_sent", "vote arrived"], ["vote_sent"]),
        (["connected", "suspended", "vote"], ["vote"]),
        (["connected", "vote"], []),
    ],
)
def test_k2_judges_a_vote_by_the_moment_in_which_it_was_said(done: list[str], expected: list[str]) -> None:
    """It may arrive much later, by a connection that lingers, when the session has found out that it is cut off."""
    lines = []
    for number, word in enumerate(done):
        op = "session" if word in ("connected", "suspended") else word.split()[0]
        args = {"session": 1, "state": word} if op == "session" else dict(PAPER)
        if word == "vote arrived":
            args |= {"stray": True, "arrived": True}
        lines.append(HistoryEvent(v=1, i=number, t=float(number), who="app", node="n1", op=op, group=7, args=args))
    assert expected == [one.text.split()[2] for one in k2(Stories(lines), [])]
