"""The language of man pages, as far as ours need it: text that is taken as it is, sections, lists, examples.

What is written here goes through ``groff -man`` without a warning. Characters beyond ASCII are written by their names,
so that a page is the same whatever a terminal can show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAMES = {"\\": r"\e", "…": "...", "–": r"\(en", "—": r"\(em", "×": r"\(mu", "’": r"\(cq", "·": r"\(pc", "'": r"\(aq"}


def escaped(text: str) -> str:
    """As it is, wherever it stands in a line."""
    found = "".join(
        _NAMES.get(char) or (char if char.isascii() else f"\\[u{ord(char):04X}]") for char in text.replace("\t", "    ")
    )
    found = found.replace("-", r"\-")  # what is meant to be typed must not become a dash
    return rf"\&{found}" if found.startswith(".") else found


def bold(text: str) -> str:
    """What is typed as it stands."""
    return rf"\fB{escaped(text)}\fR"


def italic(text: str) -> str:
    """What stands for something else."""
    return rf"\fI{escaped(text)}\fR"


def title(name: str, section: int, source: str) -> list[str]:
    """The first line of a page."""
    return [f'.TH "{escaped(name.upper())}" "{section}" "" "{escaped(source)}" "groupsvc"']


def section(name: str) -> list[str]:
    """A heading."""
    return [f'.SH "{escaped(name.upper())}"']


def subsection(name: str) -> list[str]:
    """One below it."""
    return [f'.SS "{escaped(name)}"']


def item(head: str, text: Iterable[str]) -> list[str]:
    """One of a list; ``head`` is roff already, ``text`` are paragraphs of it."""
    lines = [".TP", head]
    for place, paragraph in enumerate(text):
        lines += ([".IP"] if place else []) + [paragraph]
    return lines


def prose(text: str) -> list[str]:
    """Paragraphs, with empty lines between them; lines that begin with spaces stay as they are."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        if block.startswith("  "):
            lines += preformatted(block)
        else:
            lines += [".PP", marked(" ".join(block.split()))]
    return lines


def preformatted(text: str) -> list[str]:
    """Each line for itself."""
    return [".PP", ".RS 4", ".nf", *(escaped(line.strip()) for line in text.splitlines() if line.strip()), ".fi", ".RE"]


_marks = re.compile(r"`([^`]+)`")


def marked(text: str) -> str:
    """A sentence in which what is typed stands in `marks`."""
    parts = _marks.split(text)
    found = "".join(bold(part) if place % 2 else escaped(part) for place, part in enumerate(parts) if part)
    return rf"\&{found}" if found.startswith(".") else found
