"""On which line of a TOML file an option stands: what reads TOML does not tell."""

from __future__ import annotations

import re

_table_line = re.compile(r"\s*\[\s*([A-Za-z0-9_.\-\"' ]+?)\s*\]\s*(?:#.*)?")
_key_line = re.compile(r"\s*([A-Za-z0-9_.\-\"' ]+?)\s*=")


def lines_of_keys(text: str) -> dict[str, int]:
    """The line on which each key of a valid TOML file stands; tables are keys, too."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        head = _table_line.fullmatch(line)
        if head is not None:
            table = _plain(head.group(1))
            found.setdefault(table, number)
            continue
        pair = _key_line.match(line)
        if pair is not None:
            key = _plain(pair.group(1))
            found.setdefault(f"{table}.{key}" if table else key, number)
    return found


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))
