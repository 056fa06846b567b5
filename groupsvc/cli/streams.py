"""Standard output and error, whatever the one who started us has made of them.

Either may be closed: Python has None in its place then, and ``print`` to None prints to standard output, which is not
where errors go. So what is missing is replaced by one that takes everything and keeps nothing. It has no descriptor: a
command that we run finds closed what was closed.

Who reads may stop: `groupsvc journal check … | head`. What is said after that is said to nobody, but the command goes
on to its end, and its exit code is the verdict that it would have been. Those that could go on for ever, or for long,
end there (``options.ends_unread``).

A stream may be for fewer characters than names of groups and programs have (``LC_ALL=C``). Those that it cannot write
are written as Python would, by their numbers: no reason not to print the rest.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class Nowhere(io.TextIOBase):
    """Takes everything, keeps nothing."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


class _OutlivesItsReader(io.FileIO):
    """Standard output; when nobody reads it any more it takes everything and keeps nothing."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            read_nowhere(self.fileno())
            return memoryview(data).nbytes


def read_nowhere(fd: int) -> None:
    """From now on what is written there is gone."""
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, fd)
    os.close(nowhere)


def outlive_readers() -> None:
    """No command ends before its end because nobody reads what it says."""
    out = sys.stdout
    if out is sys.__stdout__ and isinstance(out, io.TextIOWrapper):
        out.flush()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_OutlivesItsReader(out.fileno(), "w", closefd=False)),
            encoding=out.encoding, errors=out.errors, line_buffering=out.line_buffering,
        )  # fmt: skip


def make_usable() -> None:
    """Whatever is printed from now on can be printed."""
    if sys.stdout is None:
        sys.stdout = Nowhere()
    if sys.stderr is None:
        sys.stderr = Nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
