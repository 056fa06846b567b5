"""What the holder does while a command runs: it looks whether it is still held, and ends the command when it is not.

It is ended as init systems do it: SIGTERM, and SIGKILL for who is still there after a grace. Both go to the command and
to all that it has started (``process_tree.py``); a signal from outside goes to the command alone, which is whom it was
meant for.

What is held is given back by the caller, when this has returned: so never before the command has ended.
"""

from __future__ import annotations

import signal
import threading
from typing import Literal, Protocol

import attrs

from .. import clock
from ..errors import GroupServiceError, Lost, Suspended
from . import process_tree
from .exit_codes import ExitCode
from .front import GONE, Word, say
from .process_tree import Killing, family
from .vouching import Standing, Vouching

KILLED_S = 5.0
"""What is not gone so long after SIGKILL hangs in the kernel, and is not waited for, unless it is the command."""


class Guard(Protocol):
    """What says whether it is held: a lock, or the guard of a lead."""

    @property
    def fence(self) -> int:
        """Of this turn."""

    @property
    def valid_for(self) -> float:
        """Seconds for which somebody vouches for it."""

    @property
    def lost(self) -> threading.Event:
        """Set when it is gone."""

    def check(self) -> None:
        """Raise why it is not held."""


class Post(Protocol):
    """How the front is spoken with (``front.Post``)."""

    def say(self, line: str) -> None:
        """To the front."""

    def next(self, wait: float) -> Word | None:
        """What it says."""


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


class Supervision:
    """Of one command, for one turn."""

    def __init__(self, guard: Guard, what: str, rules: Rules, post: Post) -> None:
        self._guard = guard
        self._what = what
        self._rules = rules
        self._post = post
        self._vouching = Vouching(clock.now(), patience_s=rules.patience_s)
        self._standing = Standing.HELD
        self._has_warned = False
        self._pid = 0
        self._code: int | None = None
        self._ending: Ending | None = None

    def run(self) -> Ended:
        """From the word that it is held to the end of the command."""
        if self._look() is Standing.LOST:
            say(f"{self._what} was lost again ({self._reason()}) before the command was started")
            return Ended(ExitCode.LOST, was_lost=True)
        self._post.say(f"held {self._guard.fence}")
        while not self._is_over():
            word = self._post.next(self._vouching.next_look(clock.now()))
            if word == GONE:
                self._go_with_the_front()
                return Ended(ExitCode.LOST)
            if word is not None and word.what == "runs":
                self._pid = word.number
            elif word is not None:
                self._code = word.number
            if self._pid and self._code is None and self._ending is None and self._look() is Standing.LOST:
                self._lost()
        if self._ending is not None:
            return Ended(ExitCode.LOST, was_lost=True)
        assert self._code is not None
        return Ended(self._code)

    def _is_over(self) -> bool:
        is_done = self._ending is None or self._ending.go_on(clock.now())
        return is_done and self._code is not None

    def _go_with_the_front(self) -> None:
        """It was killed, and who is left is the command, if it is."""
        if not self._pid or self._code is not None:
            return
        if self._rules.on_lost == "kill":
            process_tree.kill(self._pid)
            say(f"was killed; so is its command, process {self._pid}")
        else:
            say(f"was killed; its command, process {self._pid}, goes on without {self._what}")

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

    def _lost(self) -> None:
        text = f"{self._what} is held no longer ({self._reason()})"
        if self._rules.on_lost == "kill":
            say(f"{text}; the command is ended")
            self._ending = Ending(self._pid, self._rules.grace_s, clock.now())
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
