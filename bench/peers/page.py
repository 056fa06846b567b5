"""The tables of docs/benchmarks.md, from the file of results. What stands outside of the marks is written by people.

Three tables of figures: the aims, and whether they are met; what was measured (median, and in brackets the lowest and
the highest of the rounds); how many times better ours is than each peer, of figures of the same round. Below 1 ours is
worse: those are in bold, and the last column names them. Two tables of words: what each row promises at each peer, and
with which versions, clients and settings it was measured.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from .aims import AIMS, Aim
from .chart import chart
from .peer import Peer
from .results import FILE, ROOT, Figure, Part, Results, figure, ratio, read
from .rows import ROWS, Row
from .those import PEERS

PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "benchmarks.svg"
BEGIN, END = "<!-- from the file of results: begin -->\n", "<!-- from the file of results: end -->\n"
OWN = ("floor", "ours", "durable")
WORSE_BELOW = 0.95
"""Nearer to 1 than this is called equal."""


def write_page(found: Results, page: Path = PAGE, picture: Path = PICTURE) -> None:
    """Put the tables where they belong, and draw the chart."""
    page.write_text(filled(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    picture.write_text(chart(found), encoding="utf-8")


def filled(text: str, found: Results) -> str:
    """The page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + tables(found) + END + after


def tables(found: Results) -> str:
    """Everything that follows from the results."""
    shown = [peer for peer in PEERS.values() if any(sample.peer == peer.name for sample in found.samples)]
    parts = [
        _made_with(found),
        f"![A panel for each row, a bar for each service, logarithmic; the tables have the same]({PICTURE.name})\n",
        _aimed(found),
        _measured(found, shown),
        _better(found, shown),
        _promised(shown),
        _set(found, shown),
    ]
    if found.failures:
        parts.append(
            "Visits that failed, and are missing above:\n\n" + "".join(f"- {each}\n" for each in found.failures)
        )
    return "\n".join(["", *parts, ""])


def _made_with(found: Results) -> str:
    machine = found.machine
    parts = "".join(
        f"{part.command}  # {part.run[11:16]}, commit {part.commit}, {_others(part)}\n" for part in found.parts
    )
    return (
        f"Measured on {found.run[:10]}, on {machine.cores} cores ({machine.processor}), Linux {machine.kernel},"
        f" {machine.system}, Python {machine.python}. The commands, each with the time at which it began (UTC),"
        " and which part of the processor time was not ours before each visit, on this machine and on the one below it"
        f" (median, and the most):\n\n```\n{parts}```\n"
    )


def _others(part: Part) -> str:
    used = [100 * each for each in part.others]
    return f"others {statistics.median(used):.0f} %, {max(used):.0f} %" if used else "nobody looked who else was there"


def _aimed(found: Results) -> str:
    lines = [
        "### What is aimed at\n",
        _line("", "aim", "measured", "rounds", "met", "if not, why"),
        _line(*["---"] * 6),
    ]
    for aim in AIMS:
        here = aim.found(found)
        if here is not None:
            lines.append(_verdict(aim, here))
    return "\n".join(lines) + "\n"


def _verdict(aim: Aim, here: Figure) -> str:
    words = aim.words(PEERS[aim.to].title if aim.to else "")
    measured = f"{number(here.median)} ({number(here.low)}–{number(here.high)})"
    is_met = aim.is_met(here)
    said = ("yes", "") if is_met else ("**no**", aim.why)
    by = "" if aim.by == "ours" else f", {PEERS[aim.by].title}"
    return _line(
        ROWS[aim.row].title + by, words + (", in the worst round" if aim.is_worst else ""), measured, f"{here.count}",
        *said,
    )  # fmt: skip


def _measured(found: Results, shown: list[Peer]) -> str:
    lines = ["### What was measured\n", _line("", *(peer.title for peer in shown)), _line(*["---"] * (len(shown) + 1))]
    for row in ROWS.values():
        cells = [_cell(peer, row, figure(found, row.name, peer.name)) for peer in shown]
        if any(figure(found, row.name, peer.name) for peer in shown):
            lines.append(_line(f"{row.title}, {row.unit}", *cells))
    return "\n".join(lines) + "\n"


def _cell(peer: Peer, row: Row, here: Figure | None) -> str:
    if here is not None:
        return f"{number(here.median)} ({number(here.low)}–{number(here.high)})"
    return "" if row.name in peer.rows else "–"


def _better(found: Results, shown: list[Peer]) -> str:
    others = [peer for peer in shown if peer.name != "ours"]
    lines = [
        "### How many times better groupsvc is\n",
        _line("", *(peer.title for peer in others), "groupsvc is worse than"),
        _line(*["---"] * (len(others) + 2)),
    ]
    for row in ROWS.values():
        factors = {peer.name: advantage(found, row, peer.name) for peer in others}
        if any(factors.values()):
            worse = [peer.title for peer in others if is_worse(factors[peer.name])]
            cells = [_factor(factors[peer.name]) for peer in others]
            lines.append(_line(row.title, *cells, ", ".join(worse) or "none of them"))
    return "\n".join(lines) + "\n"


def advantage(found: Results, row: Row, peer: str) -> Figure | None:
    """How many times better ours is than this peer, round by round."""
    if row.is_better_higher:
        return ratio(found, row.name, "ours", peer)
    return ratio(found, row.name, peer, "ours")


def is_worse(factor: Figure | None) -> bool:
    """Whether ours is behind by more than nothing."""
    return factor is not None and factor.median < WORSE_BELOW


def _factor(factor: Figure | None) -> str:
    if factor is None:
        return ""
    text = f"{number(factor.median)} ({number(factor.low)}–{number(factor.high)})"
    return f"**{text}**" if is_worse(factor) else text


def _promised(shown: list[Peer]) -> str:
    titles = {
        "barrier": "barriers",
        "multicast": "messages",
        "write": "next write, first write",
        "client": "client killed",
        "daemon": "server killed",
        "silent": "server paused",
    }
    lines = ["### What is promised in each row\n", _line("", *titles.values()), _line(*["---"] * (len(titles) + 1))]
    lines += [_line(peer.title, *(peer.promises.get(key, "–") for key in titles)) for peer in shown]
    return "\n".join(lines) + "\n"


def _set(found: Results, shown: list[Peer]) -> str:
    lines = ["### Versions, clients, settings\n", _line("", "version", "client", "settings", "not measured, because")]
    lines.append(_line(*["---"] * 5))
    for peer in shown:
        why = "; ".join(
            reason if row == "*" else f"{ROWS[row].title}: {reason}" for row, reason in peer.without.items()
        )
        lines.append(_line(peer.title, found.versions.get(peer.name, ""), peer.client, peer.setting, why))
    lines += [_line(PEERS[name].title, "not installed", "", "", why) for name, why in found.missing.items()]
    return "\n".join(lines) + "\n"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def number(value: float) -> str:
    """Three digits, with spaces between thousands."""
    if value >= 1000:
        rounded = float(f"{value:.3g}")
        return f"{rounded:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def newest() -> Results | None:
    """What is kept in the repository."""
    return read(FILE) if FILE.exists() else None
