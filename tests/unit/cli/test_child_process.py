"""The command that a command runs: found or not, and how it ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest

from groupsvc.cli.child_process import Child, NotStarted, check_program
from groupsvc.cli.exit_codes import ExitCode


def run(*command: str, mask: Iterable[int] = ()) -> Child:
    """One that has ended."""
    child = Child(command, dict(os.environ), mask)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child


def ended(child: Child) -> int | None:
    """Its code; it has left nothing."""
    code = child.code()
    child.wait()
    assert not child.has_left_something()
    return code


def why_not(*command: str, search: str | None = None) -> tuple[ExitCode, str]:
    with pytest.raises(NotStarted) as error:
        check_program(command, search)
    return error.value.code, str(error.value)


def test_a_program_is_found_as_shells_find_it(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    path = f"/nowhere:{tmp_path}"
    assert (ExitCode.NOT_EXECUTABLE, f"'program' cannot be run: {program} is no program, or not for you") == why_not(
        "program", search=path
    )
    program.chmod(0o755)
    check_program(["program"], path)
    check_program([str(program), "argument"])
    assert (ExitCode.NO_COMMAND, "there is no command 'other'") == why_not("other", search=path)
    assert ExitCode.NO_COMMAND == why_not(str(tmp_path / "other"))[0]
    assert ExitCode.NO_COMMAND == why_not("")[0]
    assert ExitCode.NOT_EXECUTABLE == why_not(str(tmp_path))[0]


def test_what_only_the_kernel_knows_has_the_same_codes(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    with pytest.raises(NotStarted, match="does not begin with #!") as error:
        run(str(script))
    assert ExitCode.NOT_EXECUTABLE == error.value.code
    with pytest.raises(NotStarted) as error:
        run(str(tmp_path / "none"))
    assert ExitCode.NO_COMMAND == error.value.code


@pytest.mark.parametrize(
    "script,code", [("exit 0", 0), ("exit 200", 200), ("kill -TERM $$", 128 + signal.SIGTERM), ("kill -9 $$", 137)]
)
def test_the_code_is_what_a_shell_would_show(script: str, code: int) -> None:
    assert code == ended(run("sh", "-c", script))


def test_the_command_has_neither_our_mask_nor_what_python_ignores() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        assert 128 + signal.SIGPIPE == ended(run("sh", "-c", "kill -PIPE $$; exit 1", mask=before))
        assert 128 + signal.SIGTERM == ended(run("sh", "-c", "kill -TERM $$; exit 1", mask=before))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize("before,shares", [([], True), (["setsid"], False)])
def test_it_is_in_our_process_group_unless_it_left_it(before: list[str], shares: bool, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    child = Child([*before, "sh", "-c", f"echo > {ready}; exec sleep 60"], dict(os.environ), ())
    ready.read_text()
    assert (shares, None) == (child.shares_group, child.code())
    child.send(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert 137 == ended(child)


def test_who_is_left_behind_is_noticed(tmp_path: Path) -> None:
    number = tmp_path / "pid"
    child = run("sh", "-c", f"sleep 60 > /dev/null & echo $! > {number}")
    assert 0 == child.code()
    child.wait()
    try:
        assert child.has_left_something()
    finally:
        os.kill(int(number.read_text()), signal.SIGKILL)
