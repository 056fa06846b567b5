"""The page about troubles quotes what the programs really say.

A quotation is an item of a list that is code and nothing else, where ``…`` stands for what differs. Each piece between
two of them must stand in one text of the sources, or be put together of such texts with a colon or a semicolon, as
messages are. So whoever rewords a message is told that the page has to follow.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.source_tree import ROOT, package_files

PAGE = (ROOT / "docs/TROUBLESHOOTING.md").read_text(encoding="utf-8")
ENTRIES_MIN = 25
VALUE = "\0"
"""Stands in a text where a value is put in."""

FROM_THE_SYSTEM = {"Address already in use"}
"""What the kernel says, and our programs pass on."""

_PLACES = re.compile(r"%(?:\.\d+)?[sdrfg]|\{[\w.]*(?:![rs])?(?::[^{}]*)?\}")


def texts_of(tree: ast.Module) -> Iterator[str]:
    """Every text of a module but its docstrings, and the names of its classes and events."""
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else VALUE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield _PLACES.sub(VALUE, node.value)


SAID = "\n".join(
    text for file in package_files() if ".testing" not in file.module for text in texts_of(ast.parse(file.text))
)


def entries() -> dict[str, str]:
    """Heading of an entry → its text."""
    found = re.split(r"^### (.+)$", PAGE, flags=re.M)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


QUOTED = [
    (heading, quoted) for heading, text in entries().items() for quoted in re.findall(r"^- `(.+)`$", text, flags=re.M)
]


def pieces(quoted: str) -> list[str]:
    """What must be found of a quotation."""
    for words in FROM_THE_SYSTEM:
        quoted = quoted.replace(words, "…")
    return [piece.strip(" :;,()") for piece in quoted.split("…") if re.search(r"\w\w", piece)]


def is_said(piece: str) -> bool:
    """Whether it stands in the sources, whole or in parts that a message is put together of."""
    if piece in SAID:
        return True
    joints = [joint.span() for joint in re.finditer(r"[:;] ", piece)]
    return any(is_said(piece[:start]) and is_said(piece[end:]) for start, end in joints)


@pytest.mark.parametrize("heading, quoted", QUOTED)
def test_what_is_quoted_is_what_the_programs_say(heading: str, quoted: str) -> None:
    assert pieces(quoted), "there are words in a quotation"
    assert [] == [piece for piece in pieces(quoted) if not is_said(piece)], heading


def test_a_message_that_was_reworded_is_found() -> None:
    assert is_said("suspended: no majority of voters; needs")
    assert not is_said("suspended: no majority of the voters; needs")
    assert not is_said("suspended: needs; the majority of a domain")


def test_every_entry_quotes_something_and_says_what_it_means_and_what_to_do_and_not_to_do() -> None:
    assert len(entries()) >= ENTRIES_MIN
    told = {heading for heading, _ in QUOTED}
    for heading, text in entries().items():
        assert heading in told
        assert ["**It means:**", "**Do:**", "**Do not:**"] == re.findall(r"^\*\*[A-Z][a-z ]+:\*\*", text, re.M), heading
