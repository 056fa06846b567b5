"""The signals of a command that runs another one: taken in one place, and passed on.

Who runs ``groupsvc lock x -- make`` wants to treat it as if it were ``make``. So what is sent to it reaches the
command, and it ends when the command has ended, and not before. While nothing runs yet, because it stands in line, it
ends by the signal itself, as any program does.

A key at a terminal (Ctrl-C, Ctrl-Z), and a terminal that hangs up, is told by the kernel to the whole
foreground process group: the command has heard it already, and a second Ctrl-C means something else to many programs.
What ``kill`` sends has reached us alone. Only ``sigwaitinfo`` says who sent a signal; handlers of Python do not know.
So the signals are blocked, and taken one after the other. A process that does so has no other threads.

What is ignored when we start, as SIGHUP is under ``nohup``, stays ignored, here and in the command.
"""

from __future__ import annotations

import os
import signal
from types import TracebackType
from typing import NoReturn, Self

PASSED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
"""What a command is told if we are. The first four end us while there is none."""

OF_TERMINALS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP})
"""What a terminal sends to all who are in its foreground."""


class Signalled(Exception):
    """A signal came while there was no command that it could be passed on to."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.strsignal(number))
        self.number = number


def is_news(number: int, code: int, *, shares_group: bool) -> bool:
    """Whether the command has not heard it yet. ``code`` is that of ``siginfo``: above 0 if the kernel sent it."""
    return not (number in OF_TERMINALS and code > 0 and shares_group)


def stop() -> None:
    """As Ctrl-Z does it to any program, where there is a shell that can continue it; returns when that has."""
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})


def die_of(number: int) -> NoReturn:
    """End as the signal ends a program: a shell that runs a loop sees that it was Ctrl-C, and ends the loop."""
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # if it is one that ends nobody


class Signals:
    """All of them, from here on; a context manager. ``before`` is the mask that the command is to have."""

    def __init__(self) -> None:
        self._taken: frozenset[signal.Signals] = frozenset()
        self.before: set[signal.Signals] = set()

    def __enter__(self) -> Self:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a parent that ignores it would have nobody to wait for
        all_ = (*PASSED, signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD)
        self._taken = frozenset(number for number in all_ if signal.getsignal(number) is not signal.SIG_IGN)
        self.before = {signal.Signals(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, self._taken)}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while signal.sigtimedwait(self._taken, 0) is not None:
            continue  # too late to matter
        signal.pthread_sigmask(signal.SIG_SETMASK, self.before)

    def next(self, wait: float) -> signal.struct_siginfo | None:
        """The next one; None if none comes in so many seconds."""
        return signal.sigtimedwait(self._taken, wait)
