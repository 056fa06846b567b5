"""Daemons under test must not outlive the program that started them, however it ends.

``atexit`` does not run after SIGKILL, and the kernel's "signal me when my parent dies" means the parent's
*thread*. So a small shell process holds the reading end of a pipe whose writing end only we have. It is told
every daemon's process id; when the pipe ends, because we closed it or because we are dead, it kills whoever
is still on its list and removes the directory it was given.
"""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

_SCRIPT = """
alive=" "
while read -r what pid; do
    case "$what" in
        born) alive="$alive$pid " ;;
        dead) alive="${alive%% $pid *} ${alive#* $pid }" ;;
    esac
done
for pid in $alive; do kill -KILL "$pid" 2>/dev/null; done
if [ -n "$1" ]; then rm -rf -- "$1"; fi
"""


class Undertaker:
    """Buries what is left of us."""

    def __init__(self, remove: Path | None) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "groupsvc-undertaker", "" if remove is None else str(remove)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def born(self, pid: int) -> None:
        """``pid`` must die with us."""
        self._tell(f"born {pid}")

    def dead(self, pid: int) -> None:
        """``pid`` is dead and was waited for; the number may belong to somebody else from now on."""
        self._tell(f"dead {pid}")

    def close(self) -> None:
        """Do it now, and wait until it is done."""
        if self._shell.stdin is not None:
            with contextlib.suppress(OSError):
                self._shell.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._shell.wait(timeout=5.0)

    def _tell(self, line: str) -> None:
        if self._shell.stdin is not None:
            with contextlib.suppress(OSError):
                self._shell.stdin.write(line.encode() + b"\n")
                self._shell.stdin.flush()
