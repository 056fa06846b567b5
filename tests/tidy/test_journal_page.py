"""docs/reference/journal.md says what daemons write: kinds with their fields and levels, rules, columns."""

from __future__ import annotations

import ast
import re

from groupsvc.journals.auditing import RULES
from groupsvc.journals.kinds import LEVELS
from groupsvc.journals.parquet import COLUMNS
from tests.tidy.source_tree import ROOT
from tests.tidy.test_protocol_document import rows_under

PAGE = (ROOT / "docs/reference/journal.md").read_text(encoding="utf-8")
KINDS = rows_under(["kind", "level", "when", "fields"], PAGE)
DEED = "Deed"
"""Of it comes a record when it is done."""

RECORDS = ("record", "record_stranger")
"""The methods of an ``Audit`` that write a kind and ``who`` it was; an ``Audit`` is told by its name."""

NOT_TOLD = {"delivery", "first", "left_out", "sender", "options"}
"""Arguments that only some lines have, or that no daemon writes into a file."""


def written_by_the_daemon() -> dict[str, set[str]]:
    """Every kind in the source of the daemon, with the fields that are named where it is written."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "daemon/groupsvcd").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            is_record = (name in RECORDS and _is_audit(node.func)) or name == DEED
            if name not in ("journal", "audit", "Journal") and not is_record:
                continue
            kinds = [node.args[0]] if node.args else [word.value for word in node.keywords if word.arg == "op"]
            for kind in ast.walk(kinds[0]) if kinds else ():
                if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
                    fields = found.setdefault(kind.value, set())
                    fields |= {"who"} if is_record else set()
                    fields |= {
                        word.arg for word in node.keywords if word.arg not in (None, "op", "args", "valid_until")
                    }
    return found


def _is_audit(called: ast.expr) -> bool:
    """Whether this is a method of something that is called ``audit`` or ``_audit``."""
    owner = called.value if isinstance(called, ast.Attribute) else None
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return str(name).removeprefix("_") == "audit"


def test_records_for_an_audit_are_seen() -> None:
    assert {"who", "client", "name"} == written_by_the_daemon()["client_admitted"]
    assert {"who", "name", "targets", "reason"} == written_by_the_daemon()["expel_asked"]


def test_the_page_lists_every_kind_with_its_level() -> None:
    assert dict(LEVELS) == {row[0]: row[1] for row in KINDS}
    assert len(KINDS) == len({row[0] for row in KINDS})


def test_every_kind_that_the_daemon_writes_has_a_level() -> None:
    assert set(LEVELS) == set(written_by_the_daemon())


def test_the_page_names_every_field_that_a_kind_is_written_with() -> None:
    said = {row[0]: set(re.findall(r"[a-z_]+", row[3])) for row in KINDS}
    missing = {
        kind: fields - said[kind] - NOT_TOLD for kind, fields in written_by_the_daemon().items()
        if fields - said[kind] - NOT_TOLD
    }  # fmt: skip
    assert {} == missing


def test_the_page_lists_every_rule_that_is_checked_and_the_level_it_needs() -> None:
    rows = rows_under(["rule", "level", "what is promised"], PAGE)
    assert [(rule, level, text) for rule, (level, text) in RULES.items()] == [tuple(row) for row in rows]


def test_the_page_lists_every_column() -> None:
    rows = rows_under(["column", "type", "of the line"], PAGE)
    assert list(COLUMNS.items()) == [(row[0], row[1]) for row in rows]
