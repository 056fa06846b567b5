"""A process and all that it has started, as ``/proc`` knows them.

``sh -c 'pg_dump | gzip'`` is three processes, and who ends the shell leaves two of them at work. They share a process
group with us and with whoever called us, so there is no group that could be ended; but each knows its parent. Whoever
lost its parent meanwhile has process 1 for one, and is found no more: so it is looked before anything is ended, and
what was found is remembered.

A number is given to another process when its owner has ended; number and time of start together are not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

import attrs

PROC = Path("/proc")


@attrs.frozen
class Process:
    """One, for ever: ``start`` is in ticks since the machine was started."""

    pid: int
    start: int

    @property
    def is_alive(self) -> bool:
        """Whether it still runs; one that has ended and was not waited for does not."""
        found = line_of(self.pid)
        return found is not None and found.process == self and found.state not in "ZX"

    def send(self, number: int) -> bool:
        """Whether it could be told, or is no more: False if that is not allowed."""
        if self.is_alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return True
            except PermissionError:
                return False
        return True


@attrs.frozen
class Line:
    """What ``/proc/PID/stat`` says."""

    process: Process
    parent: int
    state: str


def parsed(stat: str) -> Line:
    """The name of a program stands in brackets and may have any characters, brackets too."""
    pid, _, rest = stat.partition(" ")
    fields = rest.rpartition(")")[2].split()
    return Line(Process(int(pid), int(fields[19])), int(fields[1]), fields[0])


def line_of(pid: int) -> Line | None:
    """None if there is no such process."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return parsed((PROC / str(pid) / "stat").read_text(errors="replace"))
    return None


def family_of(roots: Iterable[int], lines: Iterable[Line]) -> list[Process]:
    """These, and their descendants, who is nearest first."""
    lines = list(lines)
    children: dict[int, list[Process]] = {}
    for line in lines:
        children.setdefault(line.parent, []).append(line.process)
    wanted = set(roots)
    found = [line.process for line in lines if line.process.pid in wanted]
    known = set(found)
    for process in found:  # grows meanwhile
        for child in children.get(process.pid, ()):
            if child not in known:
                known.add(child)
                found.append(child)
    return found


def family(*roots: int) -> list[Process]:
    """The same, as they are now."""
    pids = [int(name) for name in os.listdir(PROC) if name.isdecimal()]
    return family_of(roots, [line for pid in pids if (line := line_of(pid)) is not None])


class Killing:
    """SIGKILL for a family, again until nobody is left who could start another one."""

    def __init__(self, known: Iterable[Process]) -> None:
        self._known = dict.fromkeys(known)

    def go_on(self) -> list[Process]:
        """Whoever was found now and lives: empty when it is done."""
        living = [one for one in self._known if one.is_alive]
        for one in family(*(one.pid for one in living)):
            self._known[one] = None
            one.send(signal.SIGKILL)
        return living


def kill(*roots: int) -> None:
    """Kill these and all that they have started, and see that they are gone."""
    for root in roots:  # while it is looked for the others it starts nobody, and does nothing
        with contextlib.suppress(OSError):
            os.kill(root, signal.SIGSTOP)
    killing = Killing(family(*roots))
    for _ in range(KILL_ROUNDS_MAX):
        if not killing.go_on():
            return
        time.sleep(KILL_PAUSE_S)


KILL_ROUNDS_MAX = 500
KILL_PAUSE_S = 0.01
"""Who cannot be killed in this time hangs in the kernel, or is another user's."""
