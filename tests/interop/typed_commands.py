"""Commands as they are typed into a shell of a node, each a process of its own: run to its end, or talked to meanwhile.

with Typed(domain, "lock", "x", "--", "sh", "-c", "echo here; sleep 60") as lock:
    assert "here" == lock.says()
    lock.process.terminate()
    assert 143 == lock.ends()
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from groupsvc.testing import LocalDomain

PATIENCE_S = 30.0
"""On a busy machine a process takes seconds to start; nothing that is waited for here takes long on a quiet one."""


def environment(domain: LocalDomain, node: str) -> dict[str, str]:
    """Of a shell at this node."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "GROUPSVC_ADDRESS": domain.address(node),
    }


def command(*arguments: str) -> list[str]:
    """``groupsvc``, also where it is not installed."""
    return [sys.executable, "-m", "groupsvc.cli", *arguments]


def groupsvc(domain: LocalDomain, *arguments: str, node: str = "n2") -> subprocess.CompletedProcess[str]:
    """Run it to its end; whatever happens, no stack trace."""
    ended = subprocess.run(
        command(*arguments), capture_output=True, text=True, timeout=PATIENCE_S, env=environment(domain, node)
    )
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


class Typed:
    """A command that runs; at the end of the block it and its command are killed."""

    def __init__(self, domain: LocalDomain, *arguments: str, node: str = "n2") -> None:
        self._errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed at the end
        self.process = subprocess.Popen(
            command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env=environment(domain, node),
        )  # fmt: skip

    def says(self) -> str:
        """The next line of its standard output; the test as a whole has a deadline."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def complains(self) -> str:
        """What it has written to its standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def tell(self, line: str) -> None:
        """A line for its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def ends(self) -> int:
        """Its exit code, as a shell shows it."""
        found = self.process.wait(timeout=PATIENCE_S)
        assert "Traceback" not in self.complains(), self.complains()
        return found if found >= 0 else 128 - found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            print(f"{self.process.args}: {self.complains()}")
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self._errors):
            assert pipe is not None
            pipe.close()


class Terminal:
    """A bash at a terminal of its own, which runs ``script``; keys are pressed, and everything it shows is read."""

    def __init__(self, domain: LocalDomain, script: str, node: str = "n2") -> None:
        self._screen, keyboard = os.openpty()
        settings = termios.tcgetattr(keyboard)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(keyboard, termios.TCSANOW, settings)
        self.process = subprocess.Popen(
            ["setsid", "-c", "bash", "-c", script],
            stdin=keyboard, stdout=keyboard, stderr=keyboard, env=environment(domain, node),
        )  # fmt: skip
        os.close(keyboard)
        self.shown = ""

    def press(self, keys: str) -> None:
        """At its keyboard."""
        os.write(self._screen, keys.encode())

    def until(self, words: str) -> None:
        """Read until it shows this."""
        while words not in self.shown:
            try:
                part = os.read(self._screen, 4096)
            except OSError:  # nobody has the terminal any more
                part = b""
            assert part, f"it has ended, and shows {self.shown!r}"
            self.shown += part.decode(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._screen)  # which hangs up
        self.process.kill()
        self.process.wait()


def wait_until(what: str, is_so: Callable[[], bool]) -> None:
    """A short while at most."""
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, f"not {what}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether this process lives."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def end(pid: int) -> None:
    """Whoever a test has left."""
    if is_running(pid):
        os.kill(pid, signal.SIGKILL)
