"""Lines of the log: readable for people, objects for programs, and never two out of one."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from groupsvcd.core.effects import Journal
from groupsvcd.observe import notable
from groupsvcd.observe.log import OneLine, OneObject, event

HOSTILE = 'n1\n2026 CRITICAL fake\x1b[2J "quoted" \u2028 ü'


def record(text: str, *args: object, extra: dict[str, Any] | None = None) -> logging.LogRecord:
    """A line as a logger would make it, at a moment that is known."""
    made = logging.getLogger("groupsvcd.io.reactor").makeRecord(
        "groupsvcd.io.reactor", logging.WARNING, "file", 1, text, args, None, extra=extra
    )
    made.created, made.msecs = 1_769_860_800.123, 123.0
    return made


def test_a_line_for_people_has_time_level_node_event_and_words() -> None:
    line = OneLine("n1").format(record("%s is down", "n3", extra=event("node_down", name="n3")))
    assert "2026-01-31T12:00:00.123Z WARNING n1 node_down: n3 is down" == line


def test_an_event_that_the_words_begin_with_is_not_named_twice() -> None:
    assert (
        OneLine("n1").format(record("bad frame: 3 bytes", extra=event("bad_frame"))).endswith("n1 bad frame: 3 bytes")
    )


def test_a_line_for_programs_has_the_same_and_its_fields() -> None:
    line = OneObject("n1").format(record("%s is down", "n3", extra=event("node_down", name="n3", inc=7)))
    assert {
        "time": "2026-01-31T12:00:00.123Z", "level": "warning", "node": "n1", "event": "node_down",
        "text": "n3 is down", "name": "n3", "inc": 7,
    } == json.loads(line)  # fmt: skip


def test_what_comes_from_outside_fakes_no_second_line() -> None:
    said = record("%s", HOSTILE, extra=event("trouble", who=HOSTILE, odd={1, 2}.__class__))
    for line in (OneLine("n1").format(said), OneObject("n1").format(said)):
        assert 1 == len(line.splitlines())
        assert "\x1b" not in line
    assert HOSTILE == json.loads(OneObject("n1").format(said))["text"]


def test_no_field_takes_the_place_of_what_every_line_has() -> None:
    found = json.loads(OneObject("n1").format(record("x", extra=event("halted", node="evil", time="never"))))
    assert ("n1", "2026-01-31T12:00:00.123Z") == (found["node"], found["time"])


def test_what_a_library_logs_is_told_as_such() -> None:
    assert OneLine("n1").format(record("plain")).endswith(" n1 other: plain")
    found = json.loads(OneObject("n1").format(record("plain")))
    assert ("other", "groupsvcd.io.reactor") == (found["event"], found["logger"])


def test_a_traceback_stays_in_the_object() -> None:
    broken = record("it broke", extra=event("broken"))
    try:
        raise ValueError("two\nlines")
    except ValueError:
        broken.exc_info = sys.exc_info()
    line = OneObject("n1").format(broken)
    assert 1 == len(line.splitlines())
    assert "ValueError: two\nlines" in json.loads(line)["exception"]
    assert OneLine("n1").format(broken).splitlines()[1].startswith("Traceback")


def test_the_fields_of_a_notable_event_are_its_arguments_and_its_place() -> None:
    down = Journal("node_down", epoch=4, seq=17, args={"name": "n3", "inc": 9})
    assert {"epoch": 4, "seq": 17, "name": "n3", "inc": 9} == notable.fields_of(down)
    assert {"sender": "n2"} == notable.fields_of(Journal("trouble", args={"text": "words", "sender": "n2"}))
