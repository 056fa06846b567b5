"""Signals of a command that runs another one: who has heard what, and what ends a wait."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from groupsvc.cli.passed_signals import Signals, is_news

BY_KILL, BY_KERNEL = 0, 128
PATIENCE_S = 20.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP])
def test_what_a_terminal_says_to_all_in_its_foreground_is_no_news(number: signal.Signals) -> None:
    assert not is_news(number, BY_KERNEL, shares_group=True)
    assert is_news(number, BY_KERNEL, shares_group=False)
    assert is_news(number, BY_KILL, shares_group=True)


def test_what_no_terminal_sends_is_always_news() -> None:
    assert is_news(signal.SIGTERM, BY_KERNEL, shares_group=True)


def test_signals_are_taken_one_after_the_other_and_then_left_alone_again() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with Signals() as signals:
        signal.raise_signal(signal.SIGTERM)
        taken = signals.next(PATIENCE_S)
        assert taken is not None
        assert signal.SIGTERM == taken.si_signo
        assert is_news(signal.SIGINT, taken.si_code, shares_group=True), "no terminal has sent it"
        assert signals.next(0) is None
        assert set(before) == signals.before
        signal.raise_signal(signal.SIGTERM)  # too late: it does not end the test
    assert before == signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_what_was_ignored_stays_ignored() -> None:
    """As SIGHUP is under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            signal.raise_signal(signal.SIGHUP)
            assert signals.next(0) is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_who_dies_of_a_signal_dies_of_it() -> None:
    code = "import signal; from groupsvc.cli.passed_signals import *\nwith Signals(): die_of(signal.SIGINT)"
    assert -signal.SIGINT == subprocess.run([sys.executable, "-c", code], timeout=PATIENCE_S, check=False).returncode
