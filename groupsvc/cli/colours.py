"""Colours, for people who look at a terminal and for nobody else.

What is piped or written to a file has none, so no script has to take them away again. ``--color always`` and ``never``
say otherwise; between them stands ``NO_COLOR`` (https://no-color.org), which any program of a user is told by.

A colour never says what the words do not say, too.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Literal, TextIO, TypeAlias

Style = Literal["good", "bad", "doubtful", "new", "faint", "strong"]

Paint: TypeAlias = Callable[[str, Style | None], str]
"""A text in a style, as it is written."""

_CODES: dict[Style, str] = {"good": "32", "bad": "31", "doubtful": "33", "new": "36", "faint": "2", "strong": "1"}


def plain(text: str, style: Style | None = None) -> str:
    """As it is."""
    return text


def coloured(text: str, style: Style | None = None) -> str:
    """With the codes that terminals understand."""
    return text if style is None or not text else f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def colour_argument(parser: argparse.ArgumentParser) -> None:
    """Whether what the command prints is coloured."""
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto",
        help="colours: at a terminal (auto, the default; not if NO_COLOR is set), always, or never",
    )  # fmt: skip


def paint_for(when: str, out: TextIO | None) -> Paint:
    """What to paint with, as ``--color`` says."""
    if when == "auto":
        has_terminal = out is not None and out.isatty() and os.environ.get("TERM") != "dumb"
        when = "always" if has_terminal and not os.environ.get("NO_COLOR") else "never"
    return coloured if when == "always" else plain
