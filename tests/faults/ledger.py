"""The ledgers of real runs: one line for each.

``docs/ledger/faults.ndjson`` has the runs of nemeses, ``kills.ndjson`` and ``soak.ndjson`` those of the same names.
Lines are added and never changed: a run that was red stays red when its cause has been mended.
"""

from __future__ import annotations

import datetime
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import attrs

from groupsvc.testing.sim.ledger import commit

from .runs import Result


def line_of(result: Result) -> dict[str, Any]:
    """What is kept of a run."""
    run = result.run
    return {
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "commit": commit(),
        "nemesis": run.nemesis, "workload": run.workload, "seed": run.seed, "nodes": run.nodes,
        "seconds": run.seconds, "strikes": result.strikes, "bites": result.bites, "ops": result.counts.ops,
        "outcomes": result.counts.outcomes, "gap_s": result.counts.gap_s, "converged_s": result.converged_s,
        "took_s": result.took_s, "load": round(os.getloadavg()[0], 1), "verdict": result.verdict,
        "broken": dict(Counter(finding.rule for finding in result.findings)),
    }  # fmt: skip


def in_words(line: dict[str, Any]) -> str:
    """For people."""
    outcomes = ", ".join(f"{count} {word}" for word, count in sorted(line["outcomes"].items()))
    rested = "never at rest" if line["converged_s"] is None else f"at rest after {line['converged_s']} s"
    return (
        f"{line['verdict']}: {line['nemesis']} x {line['workload']}, {line['nodes']} nodes, seed {line['seed']}:"
        f" {line['strikes']} strikes, {line['ops']} calls ({outcomes}), longest gap {line['gap_s']} s, {rested},"
        f" {line['took_s']} s in all"
    )


def append(path: Path, line: dict[str, Any]) -> None:
    """One line more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """All lines; none if there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@attrs.frozen
class Sum:
    """Of the runs of one nemesis, or of all."""

    nemesis: str
    runs: int
    red: int
    strikes: int
    calls: int
    gap_s: float  # the longest in which no call of anybody ended well
    converged_s: float  # the longest until all was at rest

    @classmethod
    def of(cls, nemesis: str, lines: list[dict[str, Any]]) -> Sum:
        """These lines added up."""
        return cls(
            nemesis, len(lines), sum(line["verdict"] == "red" for line in lines),
            sum(line["strikes"] for line in lines), sum(line["ops"] for line in lines),
            max((line["gap_s"] for line in lines), default=0.0),
            max((line["converged_s"] or 0.0 for line in lines), default=0.0),
        )  # fmt: skip


def sums(lines: list[dict[str, Any]]) -> list[Sum]:
    """By nemesis, and the last one of all."""
    by_nemesis: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        by_nemesis.setdefault(line["nemesis"], []).append(line)
    return [*(Sum.of(nemesis, those) for nemesis, those in sorted(by_nemesis.items())), Sum.of("all", lines)]


def table(lines: list[dict[str, Any]]) -> str:
    """For people, and for docs/ROBUSTNESS.md, where it stands as it is printed."""
    rows = ["| nemesis | runs | red | strikes | calls | longest gap, s | longest until at rest, s |"]
    rows.append("|---|---|---|---|---|---|---|")
    rows += [
        f"| {one.nemesis} | {one.runs} | {one.red} | {one.strikes} | {one.calls} | {one.gap_s:.1f} |"
        f" {one.converged_s:.1f} |"
        for one in sums(lines)
    ]
    return "\n".join(rows)
