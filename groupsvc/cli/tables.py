"""What people read: columns that line up, and bytes as text where they are text.

State values and messages are bytes to the service. Most are text to those who wrote them, so text is shown as text, in
quotes; everything else as Python writes bytes. Programs get both forms (``in_json``) and need not guess.

Names are what some program chose. A line break in one must not begin a row, nor an escape code draw over the terminal.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from .colours import Paint, Style, plain

SHOWN_CHARS_MAX = 120
"""Of a value in a line for people; programs get all of it."""


def one_line(text: str) -> str:
    """The same text with everything that is not printable written as Python would."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with the cells of each column below one another."""
    return painted([[(cell, None) for cell in row] for row in rows], plain)


def painted(rows: Sequence[Sequence[tuple[str, Style | None]]], paint: Paint) -> list[str]:
    """The same with a style for each cell, which takes no room."""
    cells = [[(one_line(cell), style) for cell, style in row] for row in rows]
    widths = [max(len(row[column][0]) for row in cells) for column in range(len(cells[0]))]
    found = []
    for row in cells:
        last = max((column for column, (cell, _) in enumerate(row) if cell), default=-1)
        line = "".join(
            paint(cell, style) + " " * (width - len(cell) + 2 if column < last else 0)
            for column, ((cell, style), width) in enumerate(zip(row, widths, strict=True))
        )
        found.append(line)
    return found


def shown(value: bytes) -> str:
    """A value in quotes, its beginning if it is long."""
    text = _text(value)
    found = repr(value if text is None else text)
    if len(found) <= SHOWN_CHARS_MAX:
        return found
    return f"{found[:SHOWN_CHARS_MAX]}… ({len(value)} bytes)"


def in_json(name: str, value: bytes) -> dict[str, str | None]:
    """A value under ``name`` as text, null if it is none, and as base64 always."""
    return {name: _text(value), f"{name}_base64": base64.b64encode(value).decode()}


def _text(value: bytes) -> str | None:
    """None if it is no text that could be shown."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return text if all(char.isprintable() or char in "\n\t" for char in text) else None
