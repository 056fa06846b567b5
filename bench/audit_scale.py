"""How long an audit on Spark takes over many lines, and that it finds what was planted in them.

``make audit-scale EVENTS=10000000`` makes the journals of five nodes with one contradiction of each kind, audits them
from JSON lines and from Parquet, each in a process and session of its own with 4 GiB, and appends a line to the ledger:
seconds without the start of the session, the most memory the process had, what was found. What is made is kept and
used again while it is of the same size: remove the directory to have it made anew.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupsvc.testing.made_journals import PLANTS, Shape, make_journals

LIMITS_S = {"parquet": 360.0, "lines": 600.0}
"""Promised for ten million lines on two cores; for fewer in proportion."""

EACH_MAX = 10
"""A plant breaks its rule at five nodes at most, and some break another one, too; more of one rule is invented."""

FULL = 10_000_000
MEMORY = "4g"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit code says whether everything was found, nothing invented, and all in time."""
    parser = argparse.ArgumentParser(prog="python -m bench.audit_scale", description=__doc__)
    parser.add_argument("--events", type=int, default=FULL, help="about how many lines (default: %(default)s)")
    parser.add_argument("--directory", type=Path, default=Path("build/audit-scale"), help="default: %(default)s")
    parser.add_argument("--form", choices=("parquet", "lines", "both"), default="both")
    parser.add_argument("--ledger", type=Path, help="append a line for each audit to this file")
    parser.add_argument("--one", metavar="DIR", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one is not None:
        return _one(options.one, options.directory)
    code = 0
    for form in ("parquet", "lines") if options.form == "both" else (options.form,):
        place = options.directory / f"{form}-{options.events}"
        if not place.exists():
            print(f"making {options.events} lines in {place}", flush=True)
            shape = Shape.of_events(options.events)
            make_journals(place, shape, plants=PLANTS, parquet=form == "parquet", jobs=os.cpu_count() or 1)
        command = [
            sys.executable,
            "-m",
            "bench.audit_scale",
            "--one",
            str(place),
            "--directory",
            str(options.directory),
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        limit = LIMITS_S[form] * max(told["lines"], 1) / FULL
        told |= {"form": form, "limit_s": round(limit, 1), "in_time": told["seconds"] <= limit}
        print(json.dumps(told), flush=True)
        if options.ledger:
            options.ledger.parent.mkdir(parents=True, exist_ok=True)
            with options.ledger.open("a", encoding="utf-8") as file:
                file.write(json.dumps(told, sort_keys=True) + "\n")
        if not (told["in_time"] and told["all_found"] and not told["invented"]):
            code = 1
    return code


def _one(place: Path, directory: Path) -> int:
    from pyspark.sql import SparkSession

    from groupsvc.spark.audit import audit

    began = time.monotonic()
    builder = SparkSession.builder.master("local[2]").appName("audit").config("spark.driver.memory", MEMORY)
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.log.level", "ERROR")
    spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
    started = time.monotonic()
    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())

    def tell(text: str) -> None:
        print(f"{time.monotonic() - started:7.1f} s  {text}", file=sys.stderr, flush=True)

    result = audit(spark, [place], directory / "out", settled=True, work=str(directory / "work"), progress=tell)
    seconds = time.monotonic() - started
    count = Counter(one.invariant for one in result.violations)
    found = set(count)
    status = Path(f"/proc/{jvm}/status").read_text().split("VmHWM:")[1].split()[0]
    told = {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "lines": result.findings.lines,
        "bytes": result.findings.sources.bytes, "seconds": round(seconds, 1), "session_s": round(started - began, 1),
        "parts": result.findings.seconds, "jvm_peak_mib": int(status) // 1024,
        "python_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "heap": MEMORY,
        "all_found": found >= set(PLANTS), "missed": sorted(set(PLANTS) - found),
        "invented": sorted(rule for rule in count if rule not in PLANTS or count[rule] > EACH_MAX),
        "violations": len(result.violations),
    }  # fmt: skip
    spark.stop()
    print(json.dumps(told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
