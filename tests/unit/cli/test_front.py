"""The front and its holder: two real processes, with a holder that does what the test wants."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping

import pytest

from groupsvc.cli.exit_codes import ExitCode
from groupsvc.cli.front import GONE, Front, Post
from groupsvc.cli.passed_signals import Signalled, Signals

PATIENCE_S = 20.0


def environment(fence: int) -> Mapping[str, str]:
    return {**os.environ, "FENCE": str(fence)}


def run(hold: Callable[[Post], int], *command: str, kills: bool = True) -> int:
    with Signals() as signals:
        return Front(signals, hold, kills=kills).run(["sh", "-c", *command], environment)


def ended(post: Post) -> int:
    """How the command ended that runs now."""
    runs = post.next(PATIENCE_S)
    assert runs is not None
    assert "runs" == runs.what
    word = post.next(PATIENCE_S)
    assert word is not None
    assert "ended" == word.what
    return word.number


def test_the_command_runs_when_it_is_held_and_the_holder_has_the_last_word() -> None:
    def hold(post: Post) -> int:
        post.say("held 17")
        return 100 + ended(post)

    assert 107 == run(hold, "[ $FENCE = 17 ] && exit 7")


def test_there_may_be_several_turns() -> None:
    def hold(post: Post) -> int:
        found = 0
        for fence in (3, 4, 5):
            post.say("waits")
            post.say(f"held {fence}")
            found += ended(post)
        return found

    assert 12 == run(hold, "exit $FENCE")


def test_a_holder_that_has_nothing_to_run_ends_it() -> None:
    assert ExitCode.LATE == run(lambda post: ExitCode.LATE, "exit 1")


def test_what_cannot_be_started_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    def hold(post: Post) -> int:
        post.say("held 17")
        word = post.next(PATIENCE_S)
        return 0 if word is None else word.number

    with Signals() as signals:
        front = Front(signals, hold, kills=True)
        assert ExitCode.NO_COMMAND == front.run(["/no/such/command"], environment)
    assert "'/no/such/command' cannot be run" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_the_holder_with_it(number: signal.Signals) -> None:
    def hold(post: Post) -> int:
        assert GONE == post.next(PATIENCE_S)
        return 0

    before = signal.signal(number, signal.SIG_DFL)  # nohup, which may run this, ignores one of them, and so do we then
    try:
        with Signals() as signals:
            front = Front(signals, hold, kills=True)
            signal.raise_signal(number)
            with pytest.raises(Signalled) as told:
                front.run(["true"], environment)
    finally:
        signal.signal(number, before)
    assert number == told.value.number


def test_who_waits_for_a_daemon_is_interrupted_when_its_front_does_not_want_to_wait() -> None:
    def hold(post: Post) -> int:
        closed: list[bool] = []
        post.closes(lambda: closed.append(True))
        assert GONE == post.next(PATIENCE_S)
        while not closed:
            continue
        assert post.is_gone
        return 0

    with Signals() as signals:
        front = Front(signals, hold, kills=True)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Signalled):
            front.run(["true"], environment)


def test_a_signal_reaches_the_command_and_no_other_code_than_its_own_comes_back() -> None:
    """In a process of its own: what runs the tests may have threads, and a signal to a process goes to any of them."""

    def hold(post: Post) -> int:
        post.say("held 17")
        return ended(post)

    front = os.fork()
    if front == 0:
        code = 1
        try:
            code = run(hold, "trap 'exit 5' TERM; kill -TERM $PPID; while :; do sleep 0.01; done")
        finally:
            os._exit(code)
    assert 5 == os.waitstatus_to_exitcode(os.waitpid(front, 0)[1])


@pytest.mark.parametrize("kills,code", [(True, ExitCode.LOST), (False, 3)])
def test_if_the_holder_is_killed_so_is_the_command_unless_it_may_go_on(
    kills: bool, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def hold(post: Post) -> int:
        post.say("held 17")
        post.next(PATIENCE_S)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert code == run(hold, "exec sleep 60" if kills else "sleep 0.5; exit 3", kills=kills)
    words = "the command is killed" if kills else "the command goes on without it"
    assert f"groupsvc: the process that held it for the command was killed; {words}\n" == capsys.readouterr().err
