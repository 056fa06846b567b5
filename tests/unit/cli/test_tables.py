"""Bytes as people and programs see them."""

from __future__ import annotations

import base64

import pytest

from groupsvc.cli.tables import SHOWN_CHARS_MAX, aligned, in_json, one_line, shown


@pytest.mark.parametrize(
    "value,expected",
    [
        (b"primary = n1", "'primary = n1'"),
        ("grün".encode(), "'grün'"),
        (b"two\nlines", r"'two\nlines'"),
        (b"", "''"),
        (b"\xff\x00", r"b'\xff\x00'"),
        (b"\x1b[31m", r"b'\x1b[31m'"),
    ],
)
def test_text_is_shown_as_text_and_everything_else_as_bytes(value: bytes, expected: str) -> None:
    assert expected == shown(value)


def test_a_name_forges_no_row_and_draws_nothing() -> None:
    assert r"eve\nanna  n1\x1b[2J grün" == one_line("eve\nanna  n1\x1b[2J grün")
    assert ["NAME        NODE", r"e\n\u2028v  n1"] == aligned([("NAME", "NODE"), ("e\n\u2028v", "n1")])


def test_a_long_value_is_cut_and_its_length_told() -> None:
    found = shown(b"x" * 5000)
    assert found.endswith("… (5000 bytes)")
    assert len(found) < SHOWN_CHARS_MAX + 20


@pytest.mark.parametrize("value,text", [(b"hello", "hello"), (b"\xff", None), (b"\x1b[31m", None)])
def test_programs_get_the_bytes_whatever_they_are(value: bytes, text: str | None) -> None:
    assert {"state": text, "state_base64": base64.b64encode(value).decode()} == in_json("state", value)


def test_columns_line_up_and_no_line_ends_with_blanks() -> None:
    assert ["A       B", "a       b", "longer"] == aligned([("A", "B"), ("a", "b"), ("longer", "")])
