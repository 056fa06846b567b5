"""Log lines for the journal of systemd: what it gets, as its own socket would."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupsvcd.observe.log import OneLine, event
from groupsvcd.observe.systemd_journal import JournalHandler, is_at_the_journal


class Journal:
    """The side of systemd, and what a daemon writes to it."""

    def __init__(self, directory: Path, form: str = "text") -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(directory / "journal"))
        self.socket.setblocking(False)
        self.stderr = io.StringIO()
        otherwise = logging.StreamHandler(self.stderr)
        otherwise.setFormatter(OneLine("n1"))
        self.handler = JournalHandler("n1", form, otherwise, directory / "journal")

    def after(self, record: logging.LogRecord) -> dict[str, str]:
        """The fields that came with this record."""
        self.handler.handle(record)
        raw, fields = self.socket.recv(1 << 20), {}
        while raw:
            head, raw = raw.split(b"\n", 1)
            key, equals, value = head.partition(b"=")
            if not equals:
                size = struct.unpack("<Q", raw[:8])[0]
                value, raw = raw[8 : 8 + size], raw[8 + size + 1 :]
            assert key.decode() not in fields
            fields[key.decode()] = value.decode()
        return fields

    def close(self) -> None:
        self.handler.close()
        self.socket.close()


@pytest.fixture
def journal(short_path: Path) -> Iterator[Journal]:
    made = Journal(short_path)
    yield made
    made.close()


def record(level: int, text: str, /, **fields: object) -> logging.LogRecord:
    """As a logger makes it."""
    return logging.getLogger("x").makeRecord("x", level, "f", 1, text, (), None, extra=event("node_down", **fields))


def test_an_entry_has_its_level_its_event_and_its_fields(journal: Journal) -> None:
    found = journal.after(record(logging.WARNING, "n3 is down", name="n3", inc=7, early=True, left=["a", "b"]))
    assert {
        "MESSAGE": "node_down: n3 is down", "PRIORITY": "4", "SYSLOG_IDENTIFIER": "groupsvcd", "GROUPSVC_NODE": "n1",
        "GROUPSVC_EVENT": "node_down", "GROUPSVC_NAME": "n3", "GROUPSVC_INC": "7", "GROUPSVC_EARLY": "true",
        "GROUPSVC_LEFT": '["a", "b"]',
    } == found  # fmt: skip


@pytest.mark.parametrize(
    "level, priority",
    [(logging.CRITICAL, "2"), (logging.ERROR, "3"), (logging.WARNING, "4"), (logging.INFO, "6"), (logging.DEBUG, "7")],
)
def test_levels_are_those_of_syslog(journal: Journal, level: int, priority: str) -> None:
    assert priority == journal.after(record(level, "x"))["PRIORITY"]


def test_text_from_outside_makes_no_field_of_its_own(journal: Journal) -> None:
    hostile = "x\nPRIORITY=0\n_UID=0\ud800"
    found = journal.after(record(logging.INFO, hostile, who=hostile, node="evil"))
    assert "node_down: x\\nPRIORITY=0\\n_UID=0\\ud800" == found["MESSAGE"]
    assert "x\nPRIORITY=0\n_UID=0\\ud800" == found["GROUPSVC_WHO"]
    assert ("6", "n1") == (found["PRIORITY"], found["GROUPSVC_NODE"])
    assert "_UID" not in found


def test_a_bug_has_its_traceback_in_the_entry(journal: Journal) -> None:
    try:
        raise ValueError("broken")
    except ValueError:
        said = record(logging.ERROR, "a bug")
        said.exc_info = sys.exc_info()
    lines = journal.after(said)["MESSAGE"].splitlines()
    assert ["node_down: a bug", "Traceback (most recent call last):"] == lines[:2]
    assert "ValueError: broken" == lines[-1]


def test_as_an_object_the_text_is_the_whole_object(short_path: Path) -> None:
    journal = Journal(short_path, form="json")
    found = json.loads(journal.after(record(logging.INFO, "n3 is down", inc=7))["MESSAGE"])
    journal.close()
    assert ("node_down", "n3 is down", 7) == (found["event"], found["text"], found["inc"])


def test_what_the_journal_does_not_take_goes_to_standard_error(journal: Journal) -> None:
    journal.handler.handle(record(logging.INFO, "long", text="x", all="y" * (16 << 20)))
    assert journal.stderr.getvalue().endswith(" INFO n1 node_down: long\n")
    journal.socket.close()
    journal.handler.handle(record(logging.INFO, "gone"))
    assert journal.stderr.getvalue().endswith(" INFO n1 node_down: gone\n")


def test_the_journal_is_where_systemd_says_it_is_and_nowhere_else(tmp_path: Path) -> None:
    """Who starts the daemon by hand, from a service, with standard error to a file gets its lines in the file."""
    with (tmp_path / "file").open("w") as file:
        status = os.fstat(file.fileno())
        assert is_at_the_journal({"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}, file.fileno())
        assert not is_at_the_journal({"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino + 1}"}, file.fileno())
        assert not is_at_the_journal({}, file.fileno())
        closed = file.fileno()
    assert not is_at_the_journal({"JOURNAL_STREAM": "1:1"}, closed)
