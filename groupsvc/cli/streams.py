"""Standard output and error, whatever the one who started us has made of them.

Either may be closed: Python has None in its place then, and ``print`` to None prints to standard output, which is not
where errors go. So what is missing is replaced by one that takes everything and keeps nothing. It has no descriptor: a
command that we run finds closed what was closed.

A stream may be for fewer characters than names of groups and programs have (``LC_ALL=C``). Those that it cannot write
are written as Python would, by their numbers: no reason not to print the rest.
"""

from __future__ import annotations

import io
import sys


class Nowhere(io.TextIOBase):
    """Takes everything, keeps nothing."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return len(text)


def make_usable() -> None:
    """Whatever is printed from now on can be printed."""
    if sys.stdout is None:
        sys.stdout = Nowhere()
    if sys.stderr is None:
        sys.stderr = Nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
