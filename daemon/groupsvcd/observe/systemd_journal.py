"""Log lines for the journal of systemd: with their level, their event and their fields, and not as text alone.

A daemon that is started by systemd has the journal at its standard error. What is written there becomes an entry of
level "info", whatever it says, so ``journalctl --priority=warning`` would find nothing. Given to the journal's own
socket an entry has fields, and the journal finds it by them::

    journalctl -u groupsvcd --priority=warning
    journalctl -u groupsvcd GROUPSVC_EVENT=node_down --output=verbose

The text is without time, level and node: the journal shows its own. With ``log_format = "json"`` it is the whole
object.

An entry is a datagram (systemd's "Journal Native Protocol"), a few lines of text, so it is written out here. What
cannot be left there, because the journal is gone, or its queue full, or the entry too large, goes to standard
error as it would without.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .log import RESERVED, OneObject, event_of, one_line

STREAM_VARIABLE = "JOURNAL_STREAM"
"""Set by systemd to the device and inode of the stream that it gives a service for its lines."""

SOCKET = Path("/run/systemd/journal/socket")
FIELD_PREFIX = "GROUPSVC_"
FIELD_CHARS_MAX = 64
"""Of a name; the journal drops what is longer."""

PRIORITIES = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
DEBUG_PRIORITY = 7


def is_at_the_journal(environment: Mapping[str, str], descriptor: int) -> bool:
    """Whether what is written to ``descriptor`` ends up there."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return environment.get(STREAM_VARIABLE) == f"{status.st_dev}:{status.st_ino}"


class JournalHandler(logging.Handler):
    """Gives records to the journal at ``path``, and those that it does not take to ``otherwise``."""

    def __init__(self, node: str, form: str, otherwise: logging.Handler, path: Path = SOCKET) -> None:
        super().__init__()
        self._node = node
        self._object = OneObject(node) if form == "json" else None
        self._otherwise = otherwise
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._socket.sendto(self._entry(record), self._path)
        except OSError:
            self._otherwise.handle(record)
        except Exception:  # as every handler does: what cannot be said must not stop who says it
            self.handleError(record)

    def close(self) -> None:
        self._socket.close()
        super().close()

    def _entry(self, record: logging.LogRecord) -> bytes:
        found = {
            "MESSAGE": one_line(record) if self._object is None else self._object.format(record),
            "PRIORITY": next((number for level, number in PRIORITIES if record.levelno >= level), DEBUG_PRIORITY),
            "SYSLOG_IDENTIFIER": "groupsvcd",
            f"{FIELD_PREFIX}NODE": self._node,
            f"{FIELD_PREFIX}EVENT": event_of(record),
        }
        fields: dict[str, Any] = getattr(record, "fields", {})
        for key, value in fields.items():
            if key not in RESERVED:
                found[f"{FIELD_PREFIX}{key.upper()}"[:FIELD_CHARS_MAX]] = value
        return b"".join(_line(key, value) for key, value in found.items())


def _line(key: str, value: object) -> bytes:
    """A field. One with line breaks is told by its length, so that no text from outside can fake another field."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    raw = text.encode(errors="backslashreplace")
    if b"\n" not in raw:
        return b"%s=%s\n" % (key.encode(), raw)
    return b"%s\n%s%s\n" % (key.encode(), struct.pack("<Q", len(raw)), raw)
