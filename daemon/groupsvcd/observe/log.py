"""Log lines for people: one line each, to standard error.

    2026-01-31T12:00:00.123Z INFO n1 reactor: stopping on SIGTERM

A line of a message that came from outside must not be able to fake a second one, so control characters are
written as escapes; only the traceback of a bug spans lines.
"""

from __future__ import annotations

import logging
import sys
import time


class _OneLine(logging.Formatter):
    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        part = record.name.rpartition(".")[2]
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in record.getMessage())
        line = f"{when}.{int(record.msecs):03d}Z {record.levelname} {self._node} {part}: {text}"
        return line if record.exc_info is None else f"{line}\n{self.formatException(record.exc_info)}"


def set_up(node: str, level: str) -> None:
    """Send everything from ``level`` on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(node))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.raiseExceptions = False  # a closed standard error must not stop a daemon


def set_level(level: str) -> None:
    """From now on everything from ``level`` on."""
    logging.getLogger().setLevel(level.upper())
