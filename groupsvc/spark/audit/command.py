"""``groupsvc audit``: its options, the session it makes, what it prints and what it returns."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from ...cli.audit_command import options
from ...errors import Failed, GroupServiceError
from .job import AuditResult, audit

SOUND, FAILED, CONTRADICTION = 0, 4, 11
"""Exit codes; the same as those of ``groupsvc journal check``."""

SHOWN_MAX = 20


def run(chosen: argparse.Namespace) -> int:
    """Make the session, audit, print; gives the exit code."""
    began = time.monotonic()
    is_quiet = chosen.quiet or (chosen.json and _would_mix())

    def tell(text: str) -> None:
        if not is_quiet:
            print(f"groupsvc: {time.monotonic() - began:6.1f} s  {text}", file=sys.stderr, flush=True)

    tell("starting Spark")
    spark, is_ours = _session(chosen)
    try:
        result = audit(
            spark, chosen.journals, chosen.out, apart=chosen.apart, settled=chosen.settled, work=chosen.work,
            progress=tell,
        )  # fmt: skip
    finally:
        if is_ours:
            spark.stop()
    if chosen.json:
        print(json.dumps(result.summary, indent=1))
    else:
        _show(result)
    return SOUND if result.is_sound else CONTRADICTION


def _would_mix() -> bool:
    """Whether what is told would stand among the lines of the object: ``spark-submit`` makes one stream of the two."""
    return not os.isatty(1) and os.path.sameopenfile(1, 2)


def _session(chosen: argparse.Namespace) -> tuple[Any, bool]:
    """A session, and whether it was made here: one that runs in this process already is used, and left."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Failed("pyspark is not installed, and an audit needs it: pip install 'groupsvc[spark]'") from None
    running = SparkSession.getActiveSession()
    if running is not None:
        return running, False
    builder = SparkSession.builder.appName("groupsvc audit").config("spark.ui.showConsoleProgress", "false")
    if chosen.master:
        builder = builder.master(chosen.master)
    if chosen.master and chosen.master.startswith("local"):  # nobody else has to reach this driver
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.memory", chosen.memory).config("spark.log.level", "ERROR")
    try:
        return builder.getOrCreate(), True
    except Exception as problem:
        reason = str(problem).partition("\n")[0]
        raise Failed(f"Spark does not start: {reason}; it needs Java 17, and a --master that it can reach") from None


def _show(result: AuditResult) -> None:
    found = result.findings
    for one in found.violations[:SHOWN_MAX]:
        where = ", ".join(filter(None, (one.first, one.second)))
        print(f"{one.invariant}: {one.text} ({where})")
    if len(found.violations) > SHOWN_MAX:
        print(f"and {len(found.violations) - SHOWN_MAX} more")
    asked = [one for one in found.asked if not one.why_not]
    print(
        f"{found.lines} lines, {len(found.violations)} contradictions, {len(asked)} of {len(found.asked)} checks made"
    )
    for what in found.unchecked:
        print(f"not checked: {what.rules}: {what.what}" + (f" ({what.count})" if what.count else ""))
    print(f"report: {result.out}/report.html")


def main(arguments: Sequence[str] | None = None) -> int:
    """As a program of its own."""
    parser = argparse.ArgumentParser(
        prog="groupsvc audit", description="Check the event journals of all nodes of a domain on Spark.",
        epilog="exit codes: 0 nothing contradicts anything, 2 the command is wrong, 4 it could not be done,"
        " 11 there are contradictions",
    )  # fmt: skip
    options(parser)
    try:
        return run(parser.parse_args(arguments))
    except GroupServiceError as error:
        print(f"groupsvc: {error}", file=sys.stderr)
        return FAILED
