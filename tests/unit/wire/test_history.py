"""One line per thing that happened; lines of other writers are read or refused, never guessed."""

from __future__ import annotations

import msgspec
import pytest

from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, from_line, to_line


def test_a_line_leaves_out_what_has_its_default() -> None:
    event = HistoryEvent(v=SCHEMA_VERSION, i=17, t=1203.5, op="promise")
    assert b'{"v":1,"i":17,"t":1203.5,"op":"promise"}\n' == to_line(event)


def test_the_order_of_a_table_does_not_show_in_its_line() -> None:
    """X3: the same event is the same line, however its tables were filled."""
    one = HistoryEvent(v=1, i=1, t=0.0, op="fault", args={"a": 1, "b": {"x": 1, "y": 2}})
    other = HistoryEvent(v=1, i=1, t=0.0, op="fault", args={"b": {"y": 2, "x": 1}, "a": 1})
    assert to_line(one) == to_line(other)


def test_two_events_share_no_table() -> None:
    one, other = (HistoryEvent(v=1, i=i, t=0.0, op="x") for i in (1, 2))
    one.args["seen"] = True
    assert {} == other.args


def test_a_line_of_a_later_version_with_more_fields_is_read() -> None:
    event = from_line(b'{"v":2,"i":1,"t":0.5,"op":"stable","seq":4,"colour":"red"}\n')
    assert HistoryEvent(v=2, i=1, t=0.5, op="stable", seq=4) == event


def test_newlines_in_text_do_not_break_the_line() -> None:
    event = HistoryEvent(v=1, i=1, t=0.0, op="x", args={"text": "two\nlines\u2028"})
    assert 1 == to_line(event).count(b"\n")
    assert event == from_line(to_line(event))


WRONG = {
    "empty": b"",
    "torn": b'{"v":1,"i":1,"t":0.5,"op":"st',
    "no version": b'{"i":1,"t":0.5,"op":"stable"}',
    "no operation": b'{"v":1,"i":1,"t":0.5}',
    "unknown type": b'{"v":1,"i":1,"t":0.5,"op":"x","type":"maybe"}',
    "text for a number": b'{"v":1,"i":"1","t":0.5,"op":"x"}',
    "list": b"[1]",
    "two lines": b'{"v":1,"i":1,"t":0.5,"op":"x"}\n{"v":1,"i":2,"t":0.5,"op":"x"}\n',
    "not UTF-8": b'{"v":1,"i":1,"t":0.5,"op":"\xff"}',
    "nested too deep": b'{"v":1,"i":1,"t":0.5,"op":"x","args":{"a":' + b"[" * 100_000,
}


@pytest.mark.parametrize("line", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_line_is_refused_with_a_reason(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError, match=r"."):
        from_line(line)
