"""One line of the table: what is promised, what was measured, whether it holds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import attrs


@attrs.frozen(kw_only=True)
class Row:
    """A measured promise. ``note`` says what the numbers alone do not."""

    name: str
    unit: str
    bound: str
    median: float
    worst: float
    samples: int
    ok: bool
    note: str = ""


@attrs.frozen
class Effort:
    """How much to measure: ``runs`` of each, and everything shorter when ``quick``."""

    runs: int
    quick: bool

    def choose(self, whole: int, short: int) -> int:
        """``whole``, or ``short`` when in a hurry."""
        return short if self.quick else whole


Measure = Callable[[Effort], list[Row]]


def at_most(
    name: str,
    unit: str,
    runs: Sequence[Sequence[float]],
    *,
    median_max: float | None = None,
    worst_max: float | None = None,
    note: str = "",
    also: bool = True,
) -> Row:
    """The row of a promise that has upper bounds; the median shown is that of the runs' medians."""
    median = statistics.median(statistics.median(run) for run in runs)
    worst = max(max(run) for run in runs)
    bounds = []
    if median_max is not None:
        bounds.append(f"median <= {median_max:g}")
    if worst_max is not None:
        bounds.append(f"max <= {worst_max:g}")
    holds = (median_max is None or median <= median_max) and (worst_max is None or worst <= worst_max)
    return Row(
        name=name,
        unit=unit,
        bound=", ".join(bounds) or "-",
        median=median,
        worst=worst,
        samples=sum(len(run) for run in runs),
        ok=holds and also,
        note=note,
    )


def at_least(
    name: str,
    unit: str,
    runs: Sequence[Sequence[float]],
    *,
    median_min: float | None = None,
    note: str = "",
    also: bool = True,
) -> Row:
    """The row of a promise that has a lower bound; the median shown is that of the runs' medians."""
    median = statistics.median(statistics.median(run) for run in runs)
    return Row(
        name=name,
        unit=unit,
        bound="-" if median_min is None else f"median >= {median_min:g}",
        median=median,
        worst=min(min(run) for run in runs),
        samples=sum(len(run) for run in runs),
        ok=(median_min is None or median >= median_min) and also,
        note=note,
    )


def table(rows: Sequence[Row]) -> str:
    """All rows for people."""
    cells = [("MEASURE", "BOUND", "MEDIAN", "WORST", "UNIT", "SAMPLES", "")]
    cells += [
        (
            row.name,
            row.bound,
            _shown(row, row.median),
            _shown(row, row.worst),
            row.unit,
            str(row.samples),
            _verdict(row),
        )
        for row in rows
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = []
    for line, row in zip(cells, [None, *rows], strict=True):
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if row is not None and row.note:
            lines.append(f"    {row.note}")
    return "\n".join(lines)


def not_measured(name: str, why: str) -> Row:
    """What cannot be measured here, which is no promise broken; the note says how it could."""
    return Row(name=name, unit="-", bound="-", median=0.0, worst=0.0, samples=0, ok=True, note=why)


def _verdict(row: Row) -> str:
    if not row.samples:
        return "not measured"
    return "ok" if row.ok else "NOT OK"


def _shown(row: Row, value: float) -> str:
    return _number(value) if row.samples else "-"


def _number(value: float) -> str:
    return f"{value:.3f}" if value < 100 else f"{value:,.0f}"
