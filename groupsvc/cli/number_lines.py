"""Statistics for people: one line for each number, under the part that it belongs to.

    domain
      has_leader              yes
      lease_left              1.81
      nodes                   up 3, down 0, gone 0
    counted
      ordered_entries         120455
      protocols.join          12, on average 0.0042

Names are those of the daemon, so that a newer one may have more of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

NAME_CHARS = 34
"""Room for a name; the few that are longer have their value behind them all the same."""

ROWS_MAX = 20
"""Of a list or a table in it; more are counted."""


def lines_of(parts: dict[str, Any]) -> Iterator[str]:
    """All of it."""
    for part, content in parts.items():
        yield part
        yield from _lines(content, "")


def _lines(content: dict[str, Any], above: str) -> Iterator[str]:
    for name, value in content.items():
        path = above + name
        if isinstance(value, dict) and "count" in value and "sum" in value:
            yield _line(path, _measured(value))
        elif isinstance(value, dict) and any(isinstance(one, dict) for one in value.values()):
            yield from _lines(value, f"{path}.")
        elif isinstance(value, dict):
            shown = [f"{key} {_shown(one)}" for key, one in list(value.items())[:ROWS_MAX]]
            yield _line(path, ", ".join(shown + _more(len(value))) or "none")
        elif isinstance(value, list):
            yield _line(path, str(len(value)))
            for row in value[:ROWS_MAX]:
                shown = [f"{key} {_shown(one)}" for key, one in row.items()] if isinstance(row, dict) else [str(row)]
                yield f"    {', '.join(shown)}"
            yield from (f"    {text}" for text in _more(len(value)))
        else:
            yield _line(path, _shown(value))


def _line(name: str, value: str) -> str:
    return f"  {name.ljust(NAME_CHARS)} {value}"


def _more(count: int) -> list[str]:
    return [f"and {count - ROWS_MAX} more"] if count > ROWS_MAX else []


def _measured(value: dict[str, Any]) -> str:
    count, total = value["count"], value["sum"]
    return f"{count}, on average {_shown(total / count)}" if count else "0"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)
