"""A command that runs while something is held: told signals, and ended when it is held no longer.

It is ended as init systems do it: SIGTERM, and SIGKILL for who is still there after a grace. Both go to the command and
to all that it has started (``process_tree.py``); a signal from outside goes to the command alone, which is whom it was
meant for.

What is held is given back by the caller, when this has returned: so never before the command has ended.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import attrs

from .. import clock
from ..errors import GroupServiceError, Lost, Suspended
from .child_process import Child
from .exit_codes import ExitCode
from .guardian import NOBODY, Guardian
from .passed_signals import PASSED, Signals, is_news, stop
from .process_tree import Killing, family
from .tables import one_line
from .vouching import Standing, Vouching

KILLED_S = 5.0
"""What is not gone so long after SIGKILL hangs in the kernel, and is not waited for, unless it is the command."""


class Guard(Protocol):
    """What says whether it is held: a lock, or the guard of a lead."""

    @property
    def valid_for(self) -> float:
        """Seconds for which somebody vouches for it."""

    @property
    def lost(self) -> threading.Event:
        """Set when it is gone."""

    def check(self) -> None:
        """Raise why it is not held."""


@attrs.frozen
class Rules:
    """What was asked for on the command line."""

    on_lost: Literal["kill", "warn"]
    grace_s: float
    patience_s: float


@attrs.frozen
class Ended:
    """How the command ended, and whether we ended it, because what it needed was lost."""

    code: int
    was_lost: bool = False


def say(text: str) -> None:
    """To whoever reads standard error; nothing happens if nobody does."""
    with contextlib.suppress(OSError, ValueError):
        print(one_line(f"groupsvc: {text}"), file=sys.stderr, flush=True)


class Supervision:
    """Of one command, for one turn."""

    def __init__(self, guard: Guard, what: str, rules: Rules, signals: Signals, guardian: Guardian) -> None:
        self._guard = guard
        self._what = what
        self._rules = rules
        self._signals = signals
        self._guardian = guardian
        self._vouching = Vouching(clock.now(), patience_s=rules.patience_s)
        self._standing = Standing.HELD
        self._has_warned = False
        self._ending: Ending | None = None

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> Ended:
        """From its start to its end; ``NotStarted`` if it cannot be started."""
        if self._look() is Standing.LOST:
            say(f"{self._what} was lost again ({self._reason()}) before the command was started")
            return Ended(ExitCode.LOST, was_lost=True)
        child = Child(command, environment, self._signals.before)
        self._guardian.watches(child.pid)
        while not self._is_over(child):
            taken = self._signals.next(self._vouching.next_look(clock.now()))
            if taken is not None:
                self._pass_on(child, taken)
            if not child.has_ended and self._ending is None and self._look() is Standing.LOST:
                self._lost(child)
        self._guardian.watches(NOBODY)
        code = child.code()
        if child.has_left_something():
            say(f"the command has ended, and processes that it started go on; they do not have {self._what} any more")
        return Ended(code) if self._ending is None else Ended(ExitCode.LOST, was_lost=True)

    def _is_over(self, child: Child) -> bool:
        if self._ending is None:
            return child.has_ended
        return self._ending.go_on(clock.now()) and child.has_ended

    def _pass_on(self, child: Child, taken: signal.struct_siginfo) -> None:
        number = taken.si_signo
        if number in PASSED or number == signal.SIGTSTP:
            if is_news(number, taken.si_code, shares_group=child.shares_group):
                child.send(number)
            if number == signal.SIGTSTP:
                stop()
        elif number == signal.SIGCONT:
            child.send(number)

    # --- Whether it is held ---

    def _look(self) -> Standing:
        before = self._standing
        self._standing = self._vouching.look(
            clock.now(), valid_for=self._guard.valid_for, is_lost=self._guard.lost.is_set()
        )
        if self._standing is not before:
            if self._standing is Standing.DOUBTED:
                say(f"nobody vouches for {self._what} at the moment")
            elif self._standing is Standing.HELD:
                self._has_warned = False
                say(f"{self._what} is vouched for again")
        return self._standing

    def _lost(self, child: Child) -> None:
        text = f"{self._what} is held no longer ({self._reason()})"
        if self._rules.on_lost == "kill":
            say(f"{text}; the command is ended")
            self._ending = Ending(child.pid, self._rules.grace_s, clock.now())
        elif not self._has_warned:
            self._has_warned = True
            say(f"{text}; the command goes on without it, and somebody else may have it")

    def _reason(self) -> str:
        try:
            self._guard.check()
        except Suspended:
            return "nobody vouches for it any more"
        except Lost as error:
            return error.reason or "no word from the daemon"
        except GroupServiceError as error:
            return error.what
        return "it was for a moment"


class Ending:
    """The end of a command and of all that it has started."""

    def __init__(self, pid: int, grace_s: float, now: float) -> None:
        self._family = family(pid)
        self._grace_s = grace_s
        self._kill_at = now + grace_s
        self._give_up_at = now + grace_s + KILLED_S
        self._killing: Killing | None = None
        self._has_given_up = False
        for one in self._family if grace_s > 0 else ():
            if not one.send(signal.SIGTERM):
                say(f"process {one.pid} is another user's, and cannot be ended")
            one.send(signal.SIGCONT)  # who is stopped would not hear it

    def go_on(self, now: float) -> bool:
        """Whether it is done, or more cannot be done."""
        if self._killing is None:
            if not any(one.is_alive for one in self._family):
                return True
            if now < self._kill_at:
                return False
            if self._grace_s > 0:
                say(f"the command did not end within {self._grace_s:g} s; it is killed")
            self._killing = Killing(self._family)
        living = self._killing.go_on()
        if living and now >= self._give_up_at and not self._has_given_up:
            self._has_given_up = True
            say("these processes could not be ended: " + ", ".join(str(one.pid) for one in living))
        return not living or self._has_given_up
