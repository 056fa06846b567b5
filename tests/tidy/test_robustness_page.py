"""docs/ROBUSTNESS.md names tests that exist, and its numbers are those of the ledger and of its own rows."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.faults import ledger
from tests.tidy.source_tree import ROOT
from tests.tidy.test_protocol_document import rows_under

TEXT = (ROOT / "docs" / "ROBUSTNESS.md").read_text(encoding="utf-8")
ROWS = rows_under(["what was wrong", "promise", "found by", "mended", "test"], TEXT)
NONE = "none"
NOT_KNOWN = "not written down"


def problem_with(named: str) -> str:
    """Why a test that is named is none, or ""."""
    place, _, name = named.partition("::")
    file = ROOT / "tests" / place
    if not file.is_file():
        return f"there is no file tests/{place}"
    return "" if re.search(rf"def {name}\(", file.read_text(encoding="utf-8")) else f"{place} has no {name}"


def test_every_regression_test_that_is_named_exists() -> None:
    assert ROWS
    assert all(len(row) == 5 and all(row) for row in ROWS)
    assert [] == [problem for row in ROWS if row[4] != NONE and (problem := problem_with(row[4]))]


def test_a_test_that_does_not_exist_is_found() -> None:
    assert "has no test_nothing" in problem_with("tidy/test_robustness_page.py::test_nothing")
    assert "no file" in problem_with("tidy/test_nowhere.py::test_nothing")
    assert "" == problem_with("tidy/test_robustness_page.py::test_a_test_that_does_not_exist_is_found")


def test_the_sums_over_the_rows_are_right() -> None:
    assert f"The list has {len(ROWS)} rows" in TEXT
    assert f"For {sum(row[2] == NOT_KNOWN for row in ROWS)} rows what found" in TEXT
    assert f"For {sum('seed' in row[2] for row in ROWS)} it was seeds" in TEXT
    assert 2 == sum(row[4] == NONE for row in ROWS)


def test_the_numbers_of_seeds_are_those_of_the_ledger() -> None:
    """Of its first lines: others are added behind them, and the page need not follow at once."""
    samples, seeds, failed, untold = (int(row[1]) for row in rows_under(["of the ledger", ""], TEXT))
    with (ROOT / "docs" / "ledger" / "sim.ndjson").open(encoding="utf-8") as ledger:
        lines = [json.loads(line) for line in ledger][:samples]
    assert samples == len(lines)
    assert seeds == sum(line["seeds"] for line in lines)
    red = [seed for line in lines for seed in line["failed"]]
    assert failed == len(red)
    assert f"over {len({line['protocol'] for line in lines})} states of the protocol" in TEXT
    files = (ROOT / "tests" / "sim").rglob("*.py")
    named = {int(number) for file in files for number in re.findall(r"\b\d+\b", file.read_text(encoding="utf-8"))}
    nowhere = [seed for seed in red if seed not in named]
    assert untold == len(nowhere)
    assert ", ".join(map(str, nowhere)) in TEXT


# --- Real daemons ---

LEDGERS = ROOT / "docs" / "ledger"


def figures(name: str) -> list[dict[str, Any]]:
    """The lines of a ledger."""
    return ledger.read(LEDGERS / f"{name}.ndjson")


def test_the_table_of_faults_is_what_the_ledger_adds_up_to() -> None:
    """Of its first lines, as above."""
    runs, red = (int(row[1]) for row in rows_under(["of the ledger of faults", ""], TEXT))
    lines = figures("faults")[:runs]
    assert runs == len(lines)
    assert red == sum(line["verdict"] == "red" for line in lines)
    assert ledger.table(lines) in TEXT
    assert f"of\n{len({line['commit'].rstrip('+') for line in lines})} commits" in TEXT


def test_every_red_run_is_explained() -> None:
    rows = rows_under(["red run", "rules", "what it was"], TEXT)
    runs = int(rows_under(["of the ledger of faults", ""], TEXT)[0][1])
    red = [
        [f"{line['nemesis']} x {line['workload']}, seed {line['seed']}", ", ".join(line["broken"])]
        for line in figures("faults")[:runs]
        if line["verdict"] == "red"
    ]
    assert red == [row[:2] for row in rows]
    assert all(row[2] for row in rows)


def test_the_figures_of_kills_and_soaks_are_those_of_the_ledger() -> None:
    """One row for each line, up to the last row; when, how long, how many messages, the worst time, the verdict."""
    for name, length, worst in (("kills", "minutes", "gap_s"), ("soak", "hours", "converged_s")):
        (header,) = [line for line in TEXT.splitlines() if line.startswith(f"| {name} | {length} |")]
        columns = [cell.strip() for cell in header.strip("|").split("|")]
        rows = [dict(zip(columns, row, strict=True)) for row in rows_under(columns, TEXT)]
        lines = figures(name)
        assert 0 < len(rows) <= len(lines)
        for row, line in zip(rows, lines, strict=False):
            took = f"{line['seconds'] / 60:.1f}" if name == "kills" else str(line["hours"])
            expected = (line["at"][:16].replace("T", " "), took, str(line["messages"]), line["verdict"])
            assert expected == (row[name], row[length], row["messages"], row["verdict"])
            assert str(line[worst]) == next(row[column] for column in columns if "longest" in column)
