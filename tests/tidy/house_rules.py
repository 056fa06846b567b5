"""House rules that a formatter does not know; each is a function of source text."""

from __future__ import annotations

import ast
import re

LINES_MAX = 600
"""When a file passes this, an idea in it wants a file of its own."""

DOCSTRING_CHARS_MIN = 20
"""Shorter than this says nothing that the file name does not."""

# Put together here, because this file is checked as well.
_unfinished = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b")


def too_long(text: str) -> str | None:
    """Why the file is too long, or None."""
    lines = text.count("\n")
    return f"has {lines} lines, more than {LINES_MAX}" if lines > LINES_MAX else None


def tells_no_story(text: str) -> str | None:
    """Why the module docstring is no docstring, or None."""
    docstring = ast.get_docstring(ast.parse(text))
    if docstring is None:
        return "has no module docstring"
    if len(docstring) < DOCSTRING_CHARS_MIN:
        return f"has a module docstring that says only {docstring!r}"
    return None


def unfinished(text: str) -> str | None:
    """Which word says that something was left undone, or None."""
    for number, line in enumerate(text.splitlines(), start=1):
        match = _unfinished.search(line)
        if match is not None:
            return f"line {number} says {match.group()}: do it, or write it down where it will be found"
    return None


def heartbeats(text: str) -> str | None:
    """Where ZeroMQ's heartbeats are set, or None."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("HEARTBEAT"):
            return f"line {node.lineno} has heartbeats, which abort the process: see groupsvc/drivers/dead_links.py"
    return None


def mocks(text: str) -> str | None:
    """Where a mock is used instead of the fakes we ship, or None."""
    for node in ast.walk(ast.parse(text)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
        if "unittest.mock" in modules or ("unittest" in modules and "mock" in names):
            return f"line {getattr(node, 'lineno', 0)} imports unittest.mock; use what groupsvc.testing offers"
    return None


def sleeps(text: str) -> str | None:
    """Where a test waits for time to pass, or None."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name == "sleep":
                return f"line {node.lineno} sleeps; drive the clock instead"
    return None
