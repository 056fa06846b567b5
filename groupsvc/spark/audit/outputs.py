"""What an audit leaves in its directory: tables as Parquet, a report to look at, a summary for programs.

OUT/violations  checks  unchecked  leaderships  availability  fail_overs  ballot_times  …    Parquet
OUT/report.html                                                                              for people
OUT/summary.json                                                                             for programs
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import attrs

from .auditing import Findings
from .measures import MEASURES, distributions, latencies
from .place import Place
from .report import Numbers, html
from .worktable import WorkTables

VIOLATIONS = (
    "invariant STRING, promise STRING, domain STRING, `group` BIGINT, sequence BIGINT, nodes ARRAY<STRING>,"
    " text STRING, first STRING, second STRING, first_line STRING, second_line STRING"
)
CHECKS = "rule STRING, promise STRING, level STRING, lines BIGINT, violations BIGINT, verdict STRING"
UNCHECKED = "rules STRING, what STRING, count BIGINT"

ROWS_MAX = 10_000
"""Of a table of the report that come to the driver."""


def numbers(work: WorkTables) -> Numbers:
    """What the report shows of the measures."""

    def rows(table: str, order: str) -> list[dict[str, Any]]:
        found = work.sql(f"SELECT * FROM {{{table}}} ORDER BY {order} LIMIT {ROWS_MAX}").collect()
        return [row.asDict() for row in found]

    return Numbers(
        availability=rows("availability", "availability, views DESC, domain, group"),
        leaderships=rows("leaderships", "since"), fail_overs=rows("fail_overs", "fail_over_s DESC"),
        default_votes=rows("default_votes", "votes DESC, provider"), rates=rows("rates", "hour, node"),
        latencies=latencies(work), distributions=distributions(work),
    )  # fmt: skip


def summary(found: Findings, shown: Numbers) -> dict[str, Any]:
    """For programs."""
    return {
        "sound": found.is_sound,
        "lines": found.lines,
        "files": len(found.sources.files),
        "bytes": found.sources.bytes,
        "domains": list(found.sources.domains),
        "violations": dict(sorted(_counts(found).items())),
        "checks": [
            {"rule": one.check.rule, "promise": one.check.promise, "level": one.check.level, "lines": one.lines,
             "violations": one.violations, "verdict": one.verdict}
            for one in found.asked
        ],
        "unchecked": [attrs.asdict(one) for one in found.unchecked],
        "availability": {
            f"{row['domain']} {row['group']}".strip(): row["availability"] for row in shown.availability
        },
        "latencies": {what: dict(row) for what, row in shown.latencies.items()},
        "seconds": found.seconds,
    }  # fmt: skip


def _counts(found: Findings) -> Counter[str]:
    """By rule, also those that are too many to be shown; J1 is no check that was asked."""
    counts = Counter(one.invariant for one in found.violations if one.invariant == "J1")
    for asked in found.asked:
        counts[asked.check.rule] += asked.violations
    return +counts


def write(work: WorkTables, found: Findings, shown: Numbers, out: Place) -> dict[str, Any]:
    """Everything, to this directory; gives the summary."""
    tables = {
        "violations": ([attrs.astuple(one, recurse=False) for one in found.violations], VIOLATIONS),
        "checks": (
            [(one.check.rule, one.check.promise, one.check.level, one.lines, one.violations, one.verdict)
             for one in found.asked],
            CHECKS,
        ),
        "unchecked": ([attrs.astuple(one) for one in found.unchecked], UNCHECKED),
    }  # fmt: skip
    for name, (rows, schema) in tables.items():
        frame = work.spark.createDataFrame([_plain(row) for row in rows], schema)
        frame.coalesce(1).write.mode("overwrite").parquet(out.under(name))
    for name in MEASURES:
        work.sql(f"SELECT * FROM {{{name}}}").coalesce(1).write.mode("overwrite").parquet(out.under(name))
    told = summary(found, shown)
    out.put("summary.json", json.dumps(told, indent=1) + "\n")
    out.put("report.html", html(found, shown))
    return told


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(list(value) if isinstance(value, tuple) else value for value in row)
