"""Log lines: one line each, to standard error; for people, or as objects for programs.

    2026-01-31T12:00:00.123Z INFO n1 stopping: stopping on SIGTERM
    {"time": "2026-01-31T12:00:00.123Z", "level": "info", "node": "n1", "event": "stopping", "text": …, "signal": …}

Every line has the name of an *event*, which stays the same when its words change: it is what alerts and searches are
made of. ``docs/reference/log-events.md`` lists them, and a test compares the list with the code. Whoever logs says
which event it is and what belongs to it::

    log.info("stopping on %s", name, extra=event("stopping", signal=name))

A line of a message that came from outside must not be able to fake a second one, so control characters are
written as escapes; only the traceback of a bug spans lines, and not even that in an object.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from typing import Any

RESERVED = frozenset({"time", "level", "node", "event", "text", "logger", "exception"})
"""What every object may have; no field of an event has such a name."""

STANDARD_ERROR = 2

OTHER = "other"
"""The event of what a library logs."""


def event(name: str, /, **fields: Any) -> dict[str, Any]:
    """What ``extra=`` is to be for a line about this event."""
    return {"event": name, "fields": fields}


def event_of(record: logging.LogRecord) -> str:
    """The event that a line is about."""
    return str(getattr(record, "event", OTHER))


def _when(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03d}Z"


def one_line(record: logging.LogRecord) -> str:
    """Event and text, for people. An event that the text begins with, in words, is not named twice."""
    name = event_of(record)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in record.getMessage())
    if not text.startswith(f"{name.replace('_', ' ')}: "):
        text = f"{name}: {text}"
    return text if record.exc_info is None else f"{text}\n{logging.Formatter().formatException(record.exc_info)}"


class OneLine(logging.Formatter):
    """For people: time, level, node, event and text."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        return f"{_when(record)} {record.levelname} {self._node} {one_line(record)}"


class OneObject(logging.Formatter):
    """For programs: an object of JSON in ASCII, in one line whatever is in it."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        name = event_of(record)
        found: dict[str, Any] = {
            "time": _when(record),
            "level": record.levelname.lower(),
            "node": self._node,
            "event": name,
            "text": record.getMessage(),
        }
        if name == OTHER:
            found["logger"] = record.name
        fields: dict[str, Any] = getattr(record, "fields", {})
        found |= {key: value for key, value in fields.items() if key not in RESERVED}
        if record.exc_info is not None:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps(found, default=str)


def set_up(node: str, level: str, form: str = "text") -> None:
    """Send everything from ``level`` on to standard error, as ``text`` or ``json``; with fields to a journal."""
    from . import systemd_journal  # which is made of what is here

    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneObject(node) if form == "json" else OneLine(node))
    if systemd_journal.is_at_the_journal(os.environ, STANDARD_ERROR):
        handler = systemd_journal.JournalHandler(node, form, otherwise=handler)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.raiseExceptions = False  # a closed standard error must not stop a daemon


def set_level(level: str) -> None:
    """From now on everything from ``level`` on."""
    logging.getLogger().setLevel(level.upper())
