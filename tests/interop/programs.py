"""Programs beside a test, processes of their own: they can be told something, killed, stopped, and waited for.

    with Program("print(groupsvc.connect(address).node, flush=True)", domain.address("n1"), "db") as program:
        assert "n1" == program.says()

What a program prints is read line by line, with a deadline; what it writes to its standard error is shown if it does
not say what it should.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from types import TracebackType
from typing import Self

PATIENCE_S = 30.0
"""On a busy machine a process takes seconds to start; nothing that is waited for here takes long on a quiet one."""

BEGINNING = """
import os, sys, threading
import groupsvc
from groupsvc import Vote
address, name = sys.argv[1:3]
"""


class Program:
    """A process that runs ``code`` with ``arguments``, an address and a name of a group; killed at the end."""

    def __init__(self, code: str, *arguments: str) -> None:
        self._errors = tempfile.TemporaryFile("a+b")  # noqa: SIM115  # closed with the program, which writes at the end
        self._process = subprocess.Popen(
            [sys.executable, "-c", BEGINNING + code, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def says(self, patience_s: float = PATIENCE_S) -> str:
        """The next line it prints."""
        try:
            line = self._lines.get(timeout=patience_s)
        except queue.Empty:
            raise AssertionError(f"the program says nothing for {patience_s} s; {self.complains()}") from None
        assert line is not None, f"the program has ended; {self.complains()}"
        return line

    def complains(self) -> str:
        """What it wrote to its standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def tell(self, line: str) -> None:
        """A line for it to read."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL; returns when it is no more."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """SIGSTOP; returns when it stands still."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOWAIT)

    def go_on(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def ends(self) -> int:
        """Its exit code, as soon as it has ended by itself."""
        return self._process.wait(timeout=PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self._reader.join(PATIENCE_S)
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            pipe.close()
