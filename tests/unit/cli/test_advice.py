"""What a command says when it fails can be typed: options and commands, no parameters and methods of the library."""

from __future__ import annotations

import argparse
import re

import pytest

from groupsvc.cli import main
from groupsvc.cli.advice import explained
from groupsvc.cli.exit_codes import ExitCode
from groupsvc.errors import DaemonUnreachable, GroupServiceError
from groupsvc.sansio.problems import FAILED_BY_CODE
from groupsvc.testing.scripted_daemon import ScriptedDaemon, reply_frame
from groupsvc.wire import client_messages as wire
from tests.unit.cli.test_group_commands import refused, run

OF_PYTHON = re.compile(r"[a-z_]+=|[a-z_]+\(|math\.|session\.|limits\.|\bNone\b|connect again|join again")

REFUSED: dict[str, tuple[str, str, str, str]] = {
    # command: what is refused, why, what was tried, what can be typed
    "watch db": ("SubscribeAsk", "no such group", "subscribe to group 'db'", "with --wait S it is waited for"),
    "members db": (
        "SubscribeAsk", "no such group", "subscribe to group 'db'",
        "a program that joins it forms it; `groupsvc groups` lists those that there are",
    ),
    "state db red": ("ChangeStateAsk", "stale", "change the state in group 'db'", "`groupsvc state db` shows it"),
    "groups": ("GroupsAsk", "timed out", "list the groups", "try again, or wait longer with --timeout S"),
}  # fmt: skip


@pytest.mark.parametrize("command", REFUSED)
def test_the_advice_is_what_can_be_typed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    request, code, tried, advice = REFUSED[command]
    run(*command.split(), **{request: refused("failed", code)})
    assert f"groupsvc: could not {tried}: the daemon says why; {advice}\n" == capsys.readouterr().err


@pytest.mark.parametrize(
    "command,request_kind,look",
    [("state db red", "ChangeStateAsk", "why db"), ("send db hello", "SendAsk", "why db"),
     ("look-up db --form", "LookUpAsk", "look-up db"), ("hand-over n2", "HandOverAsk", "status")],
)  # fmt: skip
def test_what_is_not_known_can_be_looked_up(
    command: str, request_kind: str, look: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = run(*command.split(), **{request_kind: refused("unknown", "timed out")})
    assert ExitCode.UNKNOWN == code
    assert capsys.readouterr().err.endswith(f": the daemon says why; look at `groupsvc {look}` before you try again\n")


COMMANDS = {
    "groups": "GroupsAsk", "members db": "SubscribeAsk", "watch db": "SubscribeAsk", "why db": "WhyAsk",
    "state db": "SubscribeAsk", "state db red": "ChangeStateAsk", "send db x": "JoinAsk",
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("code", [*FAILED_BY_CODE, "anything else"])
def test_no_failure_speaks_python(command: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(*command.split(), **{COMMANDS[command]: refused("failed", code)})
    said = capsys.readouterr().err
    assert "the daemon says why" in said
    assert OF_PYTHON.search(said) is None, said


def test_a_session_that_is_lost_is_no_reason_to_connect(capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing here that one could connect; the command can be typed again."""
    lost = wire.SessionNews("lost", "this node was declared down")
    code, _ = run("groups", GroupsAsk=lambda request: lost)
    assert ExitCode.UNREACHABLE == code
    assert "groupsvc: could not list the groups: this node was declared down; try again\n" == capsys.readouterr().err


def test_a_daemon_that_does_not_answer_can_be_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    def silent(request: wire.AnyClientRequest) -> bytes | None:
        welcome = wire.SessionIs(request.id, 5, b"secret", 0, 3.0, ("n1", 7, 0))
        return reply_frame(welcome) if isinstance(request, wire.OpenSession) else None

    with ScriptedDaemon(silent) as daemon:
        assert ExitCode.FAILED == main(["groups", "--address", daemon.address, "--timeout", "0.1"])
    said = capsys.readouterr().err
    assert "the daemon did not answer in time; try again, or wait longer with --timeout S\n" in said


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "3601", "soon"])
def test_a_timeout_that_cannot_be_is_refused_with_the_name_of_the_option(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["groups", f"--timeout={given}"])
    assert ExitCode.USAGE == ended.value.code
    said = capsys.readouterr().err
    assert "argument --timeout" in said
    assert OF_PYTHON.search(said) is None, said


def test_an_error_without_advice_of_the_library_is_told_as_it_is() -> None:
    """How a daemon is started is said in words that can be typed already."""
    error = DaemonUnreachable("no daemon at ipc:///x: start one with `groupsvcd`")
    assert str(error) == explained(error, argparse.Namespace())


def test_the_text_of_an_error_ends_with_its_advice() -> None:
    error = GroupServiceError("it did not work", advice="call it again")
    assert ("it did not work; call it again", "it did not work") == (str(error), error.what)
    assert ("it did not work", "") == (GroupServiceError("it did not work").what, GroupServiceError("x").advice)
