"""Two processes for one command that runs another: the front, which is started by a shell, and its holder.

The front is the parent of the command: it starts it, passes signals on to it, and returns its exit code. The holder has
the session with the daemon, and so the lock. It knows which command runs, and gives the lock back when it is told that
this has ended, and never before.

So when the front is killed (SIGKILL cannot be passed on) the lock is still held: the holder sees that nobody speaks to
it any more, ends the command and all that it has started, and then gives the lock back. With both in one process the
next one had the lock some milliseconds before anybody could end the command. When the holder is killed the lock is free
at once, and the front ends the command; only if both are killed nobody does. Only the front hears the terminal: the
holder is in a session of its own, and goes on when the others are stopped.

The kernel's own "signal me when my parent dies" was rejected: it means the parent's thread, is forgotten by programs
that change their user, and reaches the command itself but nothing that it has started.

They speak by two pipes, a line each:

    holder: waits            in line for the next turn
    holder: held 17          it is our turn, with this fence
    front:  runs 4711        the command, as which process
    front:  ended 3          with which code

and the end of the holder is its exit code, which is that of the front.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence

import attrs

from . import process_tree
from .child_process import Child, NotStarted
from .exit_codes import ExitCode
from .passed_signals import PASSED, Signalled, Signals, is_news, stop
from .tables import one_line

LOOK_S = 1.0
"""Who has something to say wakes the front; this is only for the case that it did not."""


def say(text: str) -> None:
    """To whoever reads standard error; nothing happens if nobody does."""
    with contextlib.suppress(OSError, ValueError):
        print(one_line(f"groupsvc: {text}"), file=sys.stderr, flush=True)


# --- The holder -----------------------------------------------------------------------------------------------


@attrs.frozen
class Word:
    """Of the front: "runs" or "ended" with a number, or "gone" if there is no front any more."""

    what: str
    number: int = 0


GONE = Word("gone")


class Post:
    """What the holder hears and says."""

    def __init__(self, read: int, write: int, front: int) -> None:
        self.front = front
        self._read, self._write = read, write
        self._words: queue.SimpleQueue[Word] = queue.SimpleQueue()
        self._is_gone = threading.Event()
        self._close: Callable[[], None] | None = None
        threading.Thread(target=self._listen, name="groupsvc post", daemon=True).start()

    def _listen(self) -> None:
        with open(self._read, closefd=False) as lines:
            for line in lines:
                what, number = line.split()
                self._words.put(Word(what, int(number)))
        self._is_gone.set()
        self._words.put(GONE)
        self._close_if_gone()

    def _close_if_gone(self) -> None:
        close = self._close
        if self._is_gone.is_set() and close is not None:
            close()

    def closes(self, close: Callable[[], None] | None) -> None:
        """What ends our wait if the front does not want to wait any longer, or is no more."""
        self._close = close
        self._close_if_gone()

    @property
    def is_gone(self) -> bool:
        """Whether there is no front any more."""
        return self._is_gone.is_set()

    def next(self, wait: float) -> Word | None:
        """The next word; None if there is none in so many seconds."""
        try:
            return self._words.get(timeout=wait)
        except queue.Empty:
            return None

    def say(self, line: str) -> None:
        """To the front."""
        with contextlib.suppress(OSError):
            os.write(self._write, f"{line}\n".encode())
            os.kill(self.front, signal.SIGCHLD)  # which it takes for a reason to look


def _be_holder(read: int, write: int, front: int, hold: Callable[[Post], int]) -> int:
    """In the forked process: deaf, and with nothing open that the front has open, but for standard error."""
    os.setsid()
    for number in signal.valid_signals() - {signal.SIGCHLD}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd not in (read, write, 2):
            with contextlib.suppress(OSError):
                os.close(fd)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        if fd != null:
            os.dup2(null, fd)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    return hold(Post(read, write, front))


# --- The front ------------------------------------------------------------------------------------------------


class Front:
    """The process that was started by a shell; ``hold`` is what its holder does."""

    def __init__(self, signals: Signals, hold: Callable[[Post], int], *, kills: bool) -> None:
        self._signals = signals
        self._kills = kills
        self._is_waiting = True
        self._code = int(ExitCode.LOST)  # of the command that has ended last
        self._lines = b""
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        front = os.getpid()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # it may have been closed by who started us
                stream.flush()
        self._holder = os.fork()
        if not self._holder:
            code = int(ExitCode.FAILED)
            try:
                code = _be_holder(read, write, front, hold)
            except BaseException:  # a mistake of ours: it must not come out of the fork
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(read)
        os.close(write)
        os.set_blocking(self._read, False)

    def run(self, command: Sequence[str], environment: Callable[[int], Mapping[str, str]]) -> int:
        """From turn to turn, until the holder has ended: with its exit code. The environment depends on the fence."""
        while (fence := self._turn()) is not None:
            try:
                child = Child(command, environment(fence), self._signals.before)
            except NotStarted as error:
                say(str(error))
                self._tell(f"ended {error.code:d}")
                continue
            self._tell(f"runs {child.pid}")
            self._code = self._watch(child)
            self._tell(f"ended {self._code}")
            child.wait()
            if child.has_left_something():
                say("the command has ended, and processes that it started go on, without what it held")
        return self._end_of_holder()

    def _turn(self) -> int | None:
        """The fence of the next turn; None if there is none any more. ``Signalled`` if a signal ends the wait."""
        while True:
            while b"\n" in self._lines:
                line, _, self._lines = self._lines.partition(b"\n")
                what, _, number = line.decode().partition(" ")
                self._is_waiting = what == "waits"
                if what == "held":
                    return int(number)
            if not self._hear():
                return None
            if b"\n" in self._lines:
                continue  # what it said comes before a signal: a turn that begins is not thrown away for one
            taken = self._signals.next(LOOK_S)
            if taken is not None and taken.si_signo == signal.SIGTSTP:
                stop()
            elif taken is not None and taken.si_signo in PASSED and self._is_waiting:
                self._dismiss()
                raise Signalled(taken.si_signo)

    def _watch(self, child: Child) -> int:
        """Until it has ended: with its code."""
        is_held = True
        while (code := child.code()) is None:
            taken = self._signals.next(LOOK_S)
            if taken is not None:
                _pass_on(child, taken)
            if is_held and not self._hear():
                is_held = False
                what = "the command is killed" if self._kills else "the command goes on without it"
                say(f"the process that held it for the command was killed; {what}")
                if self._kills:
                    process_tree.kill(child.pid)
        return code

    # --- The holder, from here ---

    def _hear(self) -> bool:
        """Take in what it has said; False if it has ended."""
        try:
            part = os.read(self._read, 4096)
        except BlockingIOError:
            return True
        self._lines += part
        return part != b""

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError):
            os.write(self._write, f"{line}\n".encode())

    def _dismiss(self) -> None:
        """It leaves the line, and ends."""
        os.close(self._write)
        os.waitpid(self._holder, 0)

    def _end_of_holder(self) -> int:
        code = os.waitstatus_to_exitcode(os.waitpid(self._holder, 0)[1])
        os.close(self._write)
        os.close(self._read)
        if code >= 0:
            return code
        return ExitCode.LOST if self._kills else self._code  # it was killed


def _pass_on(child: Child, taken: signal.struct_siginfo) -> None:
    number = taken.si_signo
    if number in PASSED or number == signal.SIGTSTP:
        if is_news(number, taken.si_code, shares_group=child.shares_group):
            child.send(number)
        if number == signal.SIGTSTP:
            stop()
    elif number == signal.SIGCONT:
        child.send(number)
