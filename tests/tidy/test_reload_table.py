"""docs/OPERATIONS.md lists what a reload applies: every option that a part of the daemon takes while it runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from groupsvcd.config.options import ACQUIRABLE
from tests.tidy.source_tree import ROOT, package_files
from tests.tidy.test_protocol_document import rows_under

PAGE = ROOT / "docs" / "OPERATIONS.md"


def taken_in(source: str) -> Iterator[str]:
    """The options that ``changes.add`` is called with; they are written out, and so can be found."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.changes.add":
            for option in node.args:
                assert isinstance(option, ast.Constant), f"line {node.lineno}: write the option out"
                yield str(option.value)


def listed() -> list[str]:
    """The options in the table of the page; a table of the configuration is written as [NAME] there."""
    rows = rows_under(["option", "what happens"], PAGE.read_text(encoding="utf-8"))
    return [one for row in rows for one in re.findall(r"`\[*([a-z_.]+)\]*`", f"`{row[0]}`")]


def test_the_page_lists_what_a_reload_applies() -> None:
    taken = {option for file in package_files() for option in taken_in(file.text)}
    assert sorted(taken) == sorted(listed())


def test_what_the_domain_may_decide_is_among_it() -> None:
    assert set() == set(ACQUIRABLE) - set(listed())


def test_an_option_that_is_not_written_out_would_be_found() -> None:
    assert ["a", "b.c"] == list(taken_in("self.changes.add('a', 'b.c', apply=f)\nself.others.add('d')"))
