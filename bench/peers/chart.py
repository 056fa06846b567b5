"""The chart of the comparison: a panel for each row, a bar for each peer, on a logarithmic scale.

The bars of a panel begin a little below the least of them, so they are compared by where they end on the axis below,
not by their areas. The thin line is the spread of the rounds. It is drawn with what draws the pictures of the
documentation.
"""

from __future__ import annotations

import math
import runpy
from typing import Any

from .results import ROOT, Figure, Results, commits, figure
from .rows import ROWS, Row
from .those import PEERS

WIDTH, COLUMNS, MARGIN, GAP = 980, 2, 24, 10
BAR, TITLE, NAME_WIDTH, VALUE_WIDTH = 17, 26, 150, 92
COLOURS = {"ours": "#93350f", "durable": "#c9825f", "floor": "#b9bfc6"}
OTHER = "#5b87ab"
HEAD = 64
AXIS = 30
INK, FAINT, GRID = "#1b2733", "#4a5663", "#d9d6cc"
TICK_WIDTH = 46
STEPS = {0.3: (1, 2, 5), 0.47: (1, 3), 1.0: (1,)}
"""What is marked in each decade if labels may be so many decades apart: as many as there is room for."""


def chart(found: Results) -> str:
    """The picture as text."""
    drawing_of = runpy.run_path(str(ROOT / "docs" / "pictures" / "draw.py"))["Drawing"]
    panels = [(row, bars) for row in ROWS.values() if len(bars := _bars(found, row)) > 1]
    columns: list[list[tuple[Row, dict[str, Figure]]]] = [[] for _ in range(COLUMNS)]
    heights = [0] * COLUMNS
    for row, bars in panels:
        shortest = heights.index(min(heights))
        columns[shortest].append((row, bars))
        heights[shortest] += _height(bars)
    drawing = drawing_of(WIDTH, HEAD + max([0, *heights]) + MARGIN, "groupsvc beside others", _described(found, panels))
    drawing.text(
        MARGIN,
        30,
        f"groupsvc beside others, {found.run[:10]}, commit {', '.join(commits(found))}",
        size=17,
        anchor="start",
        bold=True,
    )
    drawing.text(
        MARGIN, 50, "Medians; thin lines are the lowest and the highest of the rounds. Every panel has a logarithmic "
        "scale of its own. What is promised differs: see the tables.", size=12, anchor="start",
    )  # fmt: skip
    width = (WIDTH - 2 * MARGIN - GAP) / COLUMNS
    for number, column in enumerate(columns):
        x, y = MARGIN + number * (width + GAP), float(HEAD)
        for row, bars in column:
            _panel(drawing, x, y, width, row, bars)
            y += _height(bars)
    text: str = drawing.svg()
    return text


def _bars(found: Results, row: Row) -> dict[str, Figure]:
    """The best first."""
    bars = {peer: here for peer in PEERS if (here := figure(found, row.name, peer)) is not None and here.low > 0}
    return dict(sorted(bars.items(), key=lambda bar: bar[1].median, reverse=row.is_better_higher))


def _panel(drawing: Any, x: float, y: float, width: float, row: Row, bars: dict[str, Figure]) -> None:
    better = "more is better" if row.is_better_higher else "less is better"
    drawing.text(x, y + 16, f"{row.title}, {row.unit} ({better})", size=13, anchor="start", bold=True)
    least = math.log10(min(bar.low for bar in bars.values())) - 0.1
    most = math.log10(max(bar.high for bar in bars.values())) + 0.02
    room = width - NAME_WIDTH - VALUE_WIDTH
    bottom = y + TITLE + BAR * len(bars) + 1

    def along(value: float) -> float:
        return x + NAME_WIDTH + room * (math.log10(value) - least) / (most - least)

    for tick in ticks(10**least, 10**most, TICK_WIDTH * (most - least) / room):
        drawing.box(along(tick), y + TITLE, 0.2, bottom - y - TITLE + 4, GRID, radius=0, edge=GRID)
        drawing.text(along(tick), bottom + 15, _shown(tick), size=10, colour=FAINT)
    drawing.box(x + NAME_WIDTH, bottom, room, 0.2, FAINT, radius=0, edge=FAINT)
    drawing.text(x + NAME_WIDTH + room + 26, bottom + 15, row.unit, size=10, colour=FAINT, anchor="start")
    for number, (peer, bar) in enumerate(bars.items()):
        top = y + TITLE + number * BAR
        drawing.text(x, top + 12, PEERS[peer].title, size=11, anchor="start", bold=peer == "ours")
        begin, end = x + NAME_WIDTH, along(bar.median)
        drawing.box(begin, top + 2, max(1.0, end - begin), BAR - 5, COLOURS.get(peer, OTHER), radius=1)
        drawing.box(along(bar.low), top + 7, max(0.5, along(bar.high) - along(bar.low)), 1, INK, radius=0, edge=INK)
        drawing.text(along(max(bar.high, bar.median)) + 5, top + 12, _shown(bar.median), size=11, anchor="start")


def _height(bars: dict[str, Figure]) -> int:
    return TITLE + BAR * len(bars) + AXIS + GAP


def ticks(low: float, high: float, apart: float) -> list[float]:
    """Round numbers between the two, at least so many decades apart: the finest steps that can be read."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = next((steps for room, steps in STEPS.items() if apart <= room), (1,))
    return [mark for decade in decades for step in steps if low <= (mark := step * 10.0**decade) <= high]


def _shown(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.0f}".replace(",", " ") if value >= 1000 else f"{value:.3g}"


def _described(found: Results, panels: list[tuple[Row, dict[str, Figure]]]) -> str:
    sentences = [
        f"{row.title}, {row.unit}: "
        + ", ".join(f"{PEERS[peer].title} {_shown(bar.median)}" for peer, bar in bars.items())
        for row, bars in panels
    ]
    return (
        f"Bars of medians, measured on {found.run[:10]}; the best of each row comes first. "
        + ". ".join(sentences)
        + "."
    )
