"""The report: one HTML file that opens anywhere, with what was found, what was not checked, and how it ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import attrs

from .auditing import Findings
from .charts import Span, bars, histogram, timeline

SHOWN_GROUPS = 16
SHOWN_VIOLATIONS = 200

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --quiet: #59636e; --line: #d1d9e0; --page: #fff; --bad: #b3261e;
        --good: #1a7f37; --open: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --quiet: #9198a1; --line: #3d444d; --page: #0d1117;
        --bad: #ff7b72; --good: #3fb950; --open: #d29922; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page); margin: 2rem auto;
       max-width: 1100px; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p.verdict { font-size: 1.2rem; font-weight: 600; } .bad { color: var(--bad); } .good { color: var(--good); }
.open { color: var(--open); } .quiet { color: var(--quiet); }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .25rem .6rem .25rem 0;
       border-bottom: 1px solid var(--line); vertical-align: top; } td.number, th.number { text-align: right; }
code { font: 12px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; } svg { max-width: 100%; height: auto; }
.pair { display: flex; flex-wrap: wrap; gap: 1rem; } .pair svg { flex: 1 1 480px; max-width: 540px; }
svg .label { font-size: 11px; fill: var(--quiet); } svg .title { font-size: 12px; fill: var(--text); }
svg .end { text-anchor: end; } svg .middle { text-anchor: middle; } svg .grid { stroke: var(--line); }
svg .axis { stroke: var(--quiet); }
.c0 { fill: #4477aa; } .c1 { fill: #ee6677; } .c2 { fill: #228833; } .c3 { fill: #ccbb44; } .c4 { fill: #66ccee; }
.c5 { fill: #aa3377; } .c6 { fill: #bbbbbb; } .c7 { fill: #994f00; }
"""


@attrs.frozen(kw_only=True)
class Numbers:
    """What is shown beside the findings: small tables, gathered at the driver."""

    availability: Sequence[Mapping[str, Any]]
    leaderships: Sequence[Mapping[str, Any]]
    fail_overs: Sequence[Mapping[str, Any]]
    default_votes: Sequence[Mapping[str, Any]]
    rates: Sequence[Mapping[str, Any]]
    latencies: Mapping[str, Mapping[str, float]]
    distributions: Mapping[str, Sequence[tuple[float, int]]]


def html(found: Findings, numbers: Numbers, title: str = "Audit of event journals") -> str:
    """The whole page."""
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>", *_head(found), *_violations(found), *_checks(found), *_unchecked(found),
        *_availability(numbers), *_leaders(numbers), *_times(numbers), *_votes(numbers), *_rates(numbers),
        "</body></html>",
    ]  # fmt: skip
    return "\n".join(parts)


def _head(found: Findings) -> Iterable[str]:
    domains = len(found.sources.domains)
    about = f"{found.lines:,} lines in {len(found.sources.files)} files" + (f", {domains} domains" * (domains > 1))
    yield f'<p class="quiet">{about}</p>'
    asked = sum(1 for one in found.asked if not one.why_not)
    not_asked = len(found.asked) - asked
    if found.is_sound:
        in_part = sum(1 for one in found.asked if one.but)
        words = f"No contradiction. {asked} checks were made"
        words += f", {in_part} of them not of everything" if in_part else ""
        words += f"; {not_asked} could not be" if not_asked else ""
        yield f'<p class="verdict good">{words}.</p>'
    else:
        rules = sorted({one.invariant for one in found.violations})
        yield f'<p class="verdict bad">{len(found.violations)} contradictions: {", ".join(rules)}</p>'


def _violations(found: Findings) -> Iterable[str]:
    if found.is_sound:
        return
    yield "<h2>Contradictions</h2><table><tr><th>rule</th><th>group</th><th>entry</th><th>nodes</th><th>what</th></tr>"
    for one in found.violations[:SHOWN_VIOLATIONS]:
        lines = "".join(
            f"<br><code>{escape(where)} {escape(line)}</code>"
            for where, line in ((one.first, one.first_line), (one.second, one.second_line))
            if where
        )
        domain = f"{escape(one.domain)}: " if one.domain else ""
        yield (
            f'<tr><td class="bad">{one.invariant}</td><td>{one.group}</td><td>{one.sequence}</td>'
            f"<td>{escape(', '.join(one.nodes))}</td><td>{domain}{escape(one.text)}{lines}</td></tr>"
        )
    yield "</table>"
    if len(found.violations) > SHOWN_VIOLATIONS:
        yield f"<p>{len(found.violations) - SHOWN_VIOLATIONS} more are in the table <code>violations</code>.</p>"


def _checks(found: Findings) -> Iterable[str]:
    yield "<h2>What was checked</h2><table><tr><th>rule</th><th>promise</th><th>needs</th>"
    yield '<th class="number">lines</th><th>verdict</th></tr>'
    for one in found.asked:
        kind = "bad" if one.violations else ("open" if one.why_not or one.but else "good")
        words = one.verdict.replace("violated", f"{one.violations} contradictions", 1)
        lines = f"{one.lines:,}" if one.lines else ""
        yield (
            f"<tr><td>{one.check.rule}</td><td>{escape(one.check.promise)}</td><td>{one.check.level}</td>"
            f'<td class="number">{lines}</td><td class="{kind}">{escape(words)}</td></tr>'
        )
    yield "</table>"


def _unchecked(found: Findings) -> Iterable[str]:
    yield "<h2>What could not be checked</h2><table>"
    for one in found.unchecked:
        count = f" ({one.count:,})" if one.count else ""
        yield f"<tr><td>{escape(one.rules)}</td><td>{escape(one.what)}{count}</td></tr>"
    yield "</table>"


def _availability(numbers: Numbers) -> Iterable[str]:
    yield "<h2>Availability</h2><table><tr><th>group</th>"
    yield '<th class="number">views</th><th class="number">share of time</th>'
    yield '<th class="number">without a leader</th></tr>'
    for row in numbers.availability[:SHOWN_GROUPS]:
        share = row["availability"]
        without = (row["until"] - row["since"]) * (1 - share) if share is not None else 0.0
        shown = f"{share:.4%}" if share is not None else "–"
        yield (
            f'<tr><td>{_group(row)}</td><td class="number">{row["views"]}</td><td class="number">{shown}</td>'
            f'<td class="number">{without:.2f} s</td></tr>'
        )
    yield "</table>"


def _leaders(numbers: Numbers) -> Iterable[str]:
    rows = list(dict.fromkeys(_group(row) for row in numbers.availability))[:SHOWN_GROUPS]
    spans = [
        Span(_group(row), row["leader"], row["since"], max(row["until"], row["since"]),
             f"{row['leader']} leads {_group(row)} in epoch {row['epoch']} for {row['until'] - row['since']:.3f} s")
        for row in numbers.leaderships if _group(row) in rows
    ]  # fmt: skip
    yield f"<h2>Leaders and views</h2>{timeline(spans)}"
    if numbers.fail_overs:
        yield "<table><tr><th>group</th><th>from</th><th>to</th>"
        yield '<th class="number">detected after</th><th class="number">next view after</th></tr>'
        for row in numbers.fail_overs[:SHOWN_GROUPS]:
            detected = f"{row['detection_s']:.3f} s" if row["detection_s"] is not None else "not by a death"
            yield (
                f"<tr><td>{_group(row)}</td><td>{escape(row['leader_before'])}</td><td>{escape(row['leader'])}</td>"
                f'<td class="number">{detected}</td><td class="number">{row["fail_over_s"]:.3f} s</td></tr>'
            )
        yield "</table>"


def _times(numbers: Numbers) -> Iterable[str]:
    yield '<h2>How long things took</h2><table><tr><th></th><th class="number">count</th>'
    yield "".join(f'<th class="number">{name}</th>' for name in ("p50", "p90", "p99", "max")) + "</tr>"
    for what, row in numbers.latencies.items():
        cells = "".join(f'<td class="number">{row[name] * 1000:,.1f} ms</td>' for name in ("p50", "p90", "p99", "max"))
        yield f'<tr><td>{what}</td><td class="number">{int(row["count"]):,}</td>{cells}</tr>'
    yield '</table><div class="pair">'
    for what, bins in numbers.distributions.items():
        yield histogram(what, bins)
    yield "</div>"


def _votes(numbers: Numbers) -> Iterable[str]:
    yield "<h2>Votes that were cast by default</h2>"
    if not numbers.default_votes:
        yield '<p class="quiet">None.</p>'
        return
    yield '<table><tr><th>provider</th><th>group</th><th>why</th><th class="number">votes</th></tr>'
    for row in numbers.default_votes[: 2 * SHOWN_GROUPS]:
        yield (
            f"<tr><td>{escape(row['provider'])}</td><td>{_group(row)}</td><td>{escape(row['why'])}</td>"
            f'<td class="number">{row["votes"]}</td></tr>'
        )
    yield "</table>"


def _rates(numbers: Numbers) -> Iterable[str]:
    hours: dict[str, dict[str, float]] = {}
    for row in numbers.rates:
        those = hours.setdefault(row["hour"], {})
        those[row["node"]] = those.get(row["node"], 0.0) + float(row["delivered"])
    yield f"<h2>Messages</h2>{bars('entries delivered, by hour and node', dict(sorted(hours.items())))}"


def _group(row: Mapping[str, Any]) -> str:
    name = "the domain" if not row["group"] else f"group {row['group']}"
    return escape(f"{row['domain']} {name}" if row["domain"] else name)
