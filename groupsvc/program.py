"""How a program is called that has given itself no name: what was run, and the number of its process.

Others meet it in lists and messages, as ``report.py[4711]``: who holds the lock, which client was given up.
"""

from __future__ import annotations

import os
import sys

CHARS_MAX = 60
"""Of what was run; a list has more than one column."""

_NO_FILE = frozenset({"", "-c", "-m", "-"})
"""What stands in place of a file when there is none: typed at a prompt, given with -c, or read from standard input."""


def program_name() -> str:
    """Of this process."""
    run = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    if run == "__main__.py":  # python -m package
        run = os.path.basename(os.path.dirname(sys.argv[0]))
    if run in _NO_FILE or not run.isprintable():
        run = "python"
    return f"{run[:CHARS_MAX]}[{os.getpid()}]"
