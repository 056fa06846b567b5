"""Charts as SVG, drawn here: a report must open without a network, and without a library that draws.

Each function gives the text of one ``<svg>``; colours come from the page, which has one set for light and one for dark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

import attrs

WIDTH, LEFT, RIGHT = 1080, 150, 20
COLOURS = 8
"""So many are in the page, as classes ``c0`` … ``c7``."""


@attrs.frozen
class Span:
    """Somebody led a group from then to then."""

    row: str
    who: str
    since: float
    until: float
    title: str


def timeline(spans: Sequence[Span]) -> str:
    """A row for each group, a bar for each view, in the colour of its leader."""
    if not spans:
        return ""
    rows = list(dict.fromkeys(span.row for span in spans))
    people = sorted({span.who for span in spans})
    begin, end = min(span.since for span in spans), max(span.until for span in spans)
    scale = (WIDTH - LEFT - RIGHT) / max(end - begin, 1e-9)
    height = 26 * len(rows) + 60
    parts = [_open(height, "who led which group, and when")]
    for number, row in enumerate(rows):
        y = 26 * number + 8
        parts.append(f'<text x="{LEFT - 8}" y="{y + 14}" class="label end">{escape(row)}</text>')
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y + 20}" y2="{y + 20}" class="grid"/>')
    for span in spans:
        x, y = LEFT + (span.since - begin) * scale, 26 * rows.index(span.row) + 10
        width = max(1.5, (span.until - span.since) * scale - 0.5)
        colour = people.index(span.who) % COLOURS
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="16" rx="2" class="c{colour}">'
            f"<title>{escape(span.title)}</title></rect>"
        )
    base = 26 * len(rows) + 24
    for step in range(6):
        at = begin + (end - begin) * step / 5
        x = LEFT + (at - begin) * scale
        anchor = "end" if step == 5 else "middle"  # the last one must not be cut off
        parts.append(f'<text x="{x:.1f}" y="{base}" class="label {anchor}">{_moment(at, end - begin)}</text>')
    for number, who in enumerate(people):
        x = LEFT + 100 * number
        parts.append(f'<rect x="{x}" y="{base + 12}" width="12" height="12" class="c{number % COLOURS}"/>')
        parts.append(f'<text x="{x + 18}" y="{base + 22}" class="label">{escape(who)}</text>')
    return "".join([*parts, "</svg>"])


def histogram(title: str, bins: Sequence[tuple[float, int]]) -> str:
    """How many took how long; the bars are by powers of ten, four to each."""
    if not bins:
        return ""
    first, last = (round(math.log10(value) * 4) for value in (bins[0][0], bins[-1][0]))
    counts = {round(math.log10(upto) * 4): count for upto, count in bins}
    steps = range(first, last + 1)
    top, height, width = max(counts.values()), 170, 520
    each = (width - 60) / max(len(steps), 4)
    parts = [_open(height, title, width)]
    for place, step in enumerate(steps):
        count = counts.get(step, 0)
        x, bar = 40 + place * each, 100 * count / top
        parts.append(
            f'<rect x="{x:.1f}" y="{130 - bar:.1f}" width="{each - 2:.1f}" height="{bar:.1f}" class="c0">'
            f"<title>{count} up to {_seconds(10 ** (step / 4))}</title></rect>"
        )
        if step % 4 == 0 or len(steps) <= 6:
            label = _seconds(10 ** (step / 4))
            parts.append(f'<text x="{x + each:.1f}" y="148" class="label middle">{label}</text>')
    parts.append(f'<line x1="40" x2="{width - 20}" y1="130" y2="130" class="axis"/>')
    parts.append(f'<text x="36" y="36" class="label end">{top}</text><text x="36" y="134" class="label end">0</text>')
    parts.append(f'<text x="40" y="16" class="title">{escape(title)}</text>')
    return "".join([*parts, "</svg>"])


def bars(title: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """For each hour a bar for each node."""
    if not rows:
        return ""
    people = sorted({who for those in rows.values() for who in those})
    top = max(value for those in rows.values() for value in those.values()) or 1.0
    height, each = 210, (WIDTH - LEFT - RIGHT) / len(rows)
    wide = max(1.0, min(60.0, (each - 6) / max(len(people), 1)))
    parts = [_open(height, title), f'<text x="{LEFT}" y="16" class="title">{escape(title)}</text>']
    for place, (hour, those) in enumerate(rows.items()):
        for number, who in enumerate(people):
            value = those.get(who, 0.0)
            x, bar = LEFT + place * each + number * wide, 120 * value / top
            parts.append(
                f'<rect x="{x:.1f}" y="{150 - bar:.1f}" width="{wide - 0.5:.1f}" height="{bar:.1f}"'
                f' class="c{number % COLOURS}"><title>{escape(who)}, {escape(hour)}: {value:,.1f}</title></rect>'
            )
        if len(rows) <= 12 or place % (len(rows) // 12 + 1) == 0:
            x = LEFT + place * each + each / 2
            parts.append(f'<text x="{x:.1f}" y="168" class="label middle">{escape(hour)}</text>')
    parts.append(f'<text x="{LEFT - 6}" y="36" class="label end">{top:,.0f}</text>')
    parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="150" y2="150" class="axis"/>')
    for number, who in enumerate(people):
        x = LEFT + 100 * number
        parts.append(f'<rect x="{x}" y="184" width="12" height="12" class="c{number % COLOURS}"/>')
        parts.append(f'<text x="{x + 18}" y="194" class="label">{escape(who)}</text>')
    return "".join([*parts, "</svg>"])


def _open(height: int, title: str, width: int = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"'
        f' aria-label="{escape(title, quote=True)}">'
    )


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1000:.3g} ms"


def _moment(at: float, span: float) -> str:
    """The time of the day, or seconds in a history that has no date."""
    if at < 1e8:
        return f"{at:.1f} s"
    form = "%H:%M:%S" if span < 86_400 else "%m-%d %H:%M"
    return datetime.fromtimestamp(at, UTC).strftime(form)
