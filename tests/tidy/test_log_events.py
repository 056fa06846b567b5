"""Every line of the daemon's log names an event, and docs/reference/log-events.md lists exactly those there are."""

from __future__ import annotations

import ast
import logging
import re

import attrs
import pytest

from groupsvcd.observe.log import RESERVED
from groupsvcd.observe.notable import NOTABLE
from tests.tidy.source_tree import ROOT, package_files
from tests.tidy.test_protocol_document import rows_under

DOCUMENT = ROOT / "docs" / "reference" / "log-events.md"
HEADER = ["event", "level", "when", "fields"]
LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "critical": "critical"}
LEVELS |= {"exception": "error"}


@attrs.frozen
class Logged:
    """One place that logs."""

    place: str
    event: str  # "" if it names none
    level: str
    fields: tuple[str, ...]


def logged_in(text: str, name: str) -> list[Logged]:
    """Every place in a source that logs or complains."""
    found = []
    tree = ast.parse(text)
    kept = [
        (node.lineno, target.id, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        place, receiver = f"{name}:{node.lineno}", ast.unparse(node.func.value)
        if receiver == "log" and node.func.attr in LEVELS:
            extra = next((keyword.value for keyword in node.keywords if keyword.arg == "extra"), None)
            if isinstance(extra, ast.Name):  # what it was before
                befores = [one for one in kept if one[1] == extra.id and one[0] < node.lineno]
                extra = max(befores, key=lambda one: one[0])[2]
            event, fields = _event_in(extra)
            found.append(Logged(place, event, LEVELS[node.func.attr], fields))
        elif receiver.endswith("complaints") and node.func.attr == "note":
            assert isinstance(node.args[0], ast.Constant), place
            found.append(Logged(place, str(node.args[0].value).replace(" ", "_"), "warning", ("not_logged",)))
    return found


def _event_in(extra: ast.expr | None) -> tuple[str, tuple[str, ...]]:
    if not isinstance(extra, ast.Call) or ast.unparse(extra.func) != "event" or not extra.args:
        return "", ()
    name = extra.args[0]
    fields = tuple(keyword.arg or "" for keyword in extra.keywords)
    return (str(name.value) if isinstance(name, ast.Constant) else "*"), fields


def all_logged() -> list[Logged]:
    """Every place in the daemon; the name of a complaint is where it is made."""
    files = [file for file in package_files() if file.module.startswith("groupsvcd")]
    found = [logged for file in files for logged in logged_in(file.text, file.name)]
    return [one for one in found if one.event != "*"]


def documented() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Event → level and fields, as the page has them."""
    rows = rows_under(HEADER, DOCUMENT.read_text(encoding="utf-8"))
    assert all(len(row) == 4 and row[2] for row in rows)
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: (row[1], tuple(re.findall(r"\w+", row[3]))) for row in rows}


def test_every_place_that_logs_names_its_event() -> None:
    """OPS-05."""
    assert [] == [one.place for one in all_logged() if not re.fullmatch(r"[a-z][a-z_]*", one.event)]


def test_the_page_has_the_events_that_there_are_with_their_levels_and_fields() -> None:
    """OPS-05."""
    real = {one.event: (one.level, one.fields) for one in all_logged()}
    said = documented()
    assert real == {event: said[event] for event in said if event not in NOTABLE}
    assert {op: logging.getLevelName(level).lower() for op, (level, _) in NOTABLE.items()} == {
        event: said[event][0] for event in said if event in NOTABLE
    }


def test_an_event_has_one_level_and_no_field_that_every_line_has() -> None:
    found = all_logged()
    assert len({one.event for one in found}) == len({(one.event, one.level) for one in found})
    assert [] == [one for one in found if RESERVED & set(one.fields)]
    assert [] == [event for event, (_, fields) in documented().items() if RESERVED & set(fields)]


PLANTED = {
    "no extra": 'log.info("hello")',
    "another extra": 'log.info("hello", extra={"a": 1})',
    "no name": 'log.warning("hello", extra=event())',
}


@pytest.mark.parametrize("text", PLANTED.values(), ids=PLANTED.keys())
def test_planted_line_without_an_event_is_found(text: str) -> None:
    assert [""] == [one.event for one in logged_in(text, "planted")]


def test_planted_events_are_read_as_they_are_meant() -> None:
    text = 'about = event("a_b", x=1)\nlog.error("%s", 1, extra=about)\nself._complaints.note("c d", "text")'
    assert [("a_b", "error", ("x",)), ("c_d", "warning", ("not_logged",))] == [
        (one.event, one.level, one.fields) for one in logged_in(text, "planted")
    ]
