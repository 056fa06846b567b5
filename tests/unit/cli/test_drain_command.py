"""``groupsvc drain``: it shows how far it is, waits for the end, and says by its exit code how that was."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from groupsvc.cli import main
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.testing.scripted_daemon import ScriptedDaemon
from groupsvc.wire.client_messages import AnyClientReply, AnyClientRequest, DrainAsk, DrainIs, Problem


def run(stages: list[tuple[str, tuple[str, ...]]], *options: str) -> tuple[int, list[float]]:
    """The exit code with a daemon that is at these stages, one after the other, and then does not answer any more."""
    asked: list[float] = []

    def answer(request: AnyClientRequest) -> AnyClientReply | None:
        if not isinstance(request, DrainAsk) or len(asked) >= len(stages):
            return None
        asked.append(request.timeout)
        stage, left = stages[len(asked) - 1]
        return DrainIs(request.id, "n1", stage, 2, 1, 10.0, left)  # type: ignore[arg-type]

    return _run(answer, *options), asked


def _run(answer: Callable[[AnyClientRequest], AnyClientReply | None], *options: str) -> int:
    with ScriptedDaemon(answer) as daemon:
        return main(["drain", "--address", daemon.address, *options])


def test_it_asks_until_the_node_is_drained(capsys: pytest.CaptureFixture[str]) -> None:
    code, asked = run([("finishing", ("sessions: 2",)), ("leaving", ("groups: 'db'",)), ("drained", ())])
    assert (ExitCode.OK, [30.0] * 3) == (code, asked)
    out, err = capsys.readouterr()
    assert "n1 is drained and has ended\n" == out
    assert ["n1 finishing: sessions: 2", "n1 leaving: groups: 'db'", "n1 drained"] == err.splitlines()


def test_what_is_the_same_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    run([("finishing", ("sessions: 2",))] * 3 + [("drained", ())])
    assert 2 == len(capsys.readouterr().err.splitlines())


def test_a_node_whose_time_was_over_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    code, asked = run([("gave up", ("groups: 'db'", "no name server answers"))], "--timeout", "7")
    assert (ExitCode.LATE, [7.0]) == (code, asked)
    assert "left were: groups: 'db'; no name server answers" in capsys.readouterr().out


def test_it_speaks_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    run([("leaving", ("groups: 'db'",)), ("gave up", ("groups: 'db'",))], "--json")
    out, err = capsys.readouterr()
    assert {"node": "n1", "drained": False, "left": ["groups: 'db'"]} == json.loads(out)
    assert "" == err


def test_a_refusal_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    code = _run(lambda request: Problem(request.id, "failed", "permission denied", "you may not"))
    assert ExitCode.FAILED == code
    assert "groupsvc: could not drain this node: you may not\n" == capsys.readouterr().err
