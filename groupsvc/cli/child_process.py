"""The command that a command runs: found, started, told signals, waited for.

It gets our standard streams, our terminal and our process group, so that it can be used at a terminal as if we were not
there. It is started by ``posix_spawn``, which needs no code between fork and exec: this process has threads.

It inherits one descriptor more, the end of a pipe that nobody writes to. When the command has ended and the pipe has
not, it has left something behind that still runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
from collections.abc import Iterable, Mapping, Sequence

from .exit_codes import ExitCode

CHANGED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
"""Ignored in every Python program; a command gets them as they are elsewhere."""

LEFT_WAIT_MS = 50
"""What is about to end anyway need not be told of."""


class NotStarted(Exception):
    """The command cannot be run; with an exit code and a sentence."""

    def __init__(self, code: ExitCode, text: str) -> None:
        super().__init__(text)
        self.code = code


def check_program(command: Sequence[str], search: str | None = None) -> None:
    """Raise ``NotStarted`` before anybody waits for anything, with the codes that shells have."""
    name = command[0]
    if os.sep in name:
        places = [name]
    else:
        path = os.get_exec_path() if search is None else search.split(os.pathsep)
        places = [os.path.join(directory, name) for directory in path] if name else []
    there = [place for place in places if os.path.exists(place)]
    if any(os.path.isfile(place) and os.access(place, os.X_OK) for place in there):
        return
    if there:
        raise NotStarted(ExitCode.NOT_EXECUTABLE, f"{name!r} cannot be run: {there[0]} is no program, or not for you")
    raise NotStarted(ExitCode.NO_COMMAND, f"there is no command {name!r}")


def not_started(command: Sequence[str], error: OSError) -> NotStarted:
    """What the kernel says when it is tried after all."""
    code = ExitCode.NO_COMMAND if isinstance(error, FileNotFoundError) else ExitCode.NOT_EXECUTABLE
    why = (
        "it is no program, or a script that does not begin with #!" if error.errno == errno.ENOEXEC else error.strerror
    )
    return NotStarted(code, f"{command[0]!r} cannot be run: {why}")


def fill_standard_streams() -> None:
    """Who was started without one would get its number for a pipe of its own; the command still has it closed."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the smallest number that is free


def replace_us(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become the command; raises ``NotStarted`` or does not return."""
    for number in CHANGED_BY_PYTHON:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(command[0], list(command), environment)
    except OSError as error:
        raise not_started(command, error) from error


class Child:
    """A command that runs."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], mask: Iterable[int]) -> None:
        self._pipe, end = os.pipe()
        try:
            os.set_inheritable(end, True)
            self.pid = os.posix_spawnp(
                command[0], list(command), environment, setsigmask=mask, setsigdef=CHANGED_BY_PYTHON
            )
        except OSError as error:
            os.close(self._pipe)
            raise not_started(command, error) from error
        finally:
            os.close(end)

    @property
    def shares_group(self) -> bool:
        """Whether it is still in our process group, and so hears what a terminal says to it."""
        with contextlib.suppress(OSError):
            return os.getpgid(self.pid) == os.getpgrp()
        return True

    def code(self) -> int | None:
        """How it ended, as shells say it: 128 and the number of the signal, if it was one; None while it runs."""
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status

    def wait(self) -> None:
        """From here on its number may be another's."""
        os.waitpid(self.pid, 0)

    def send(self, number: int) -> None:
        """A signal; it may be another user's by now, as ``sudo`` is, and then it hears none of us."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, number)

    def has_left_something(self) -> bool:
        """Whether something that it started goes on; asked once, after its end."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        has_left = not poll.poll(LEFT_WAIT_MS)
        os.close(self._pipe)
        return has_left
