"""``audit``: the whole job as one call, for programs that have a Spark session."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

from ...errors import UsageError
from .auditing import Audit, Findings, Violation
from .measures import measure
from .outputs import numbers, write
from .place import Place


@attrs.frozen(kw_only=True)
class AuditResult:
    """What was found, and where it is written."""

    findings: Findings
    summary: dict[str, Any]
    out: str

    @property
    def is_sound(self) -> bool:
        """Whether nothing contradicts anything."""
        return self.findings.is_sound

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Everything that cannot be."""
        return self.findings.violations


def audit(
    spark: Any, paths: Iterable[str | Path], out: str | Path, *, apart: bool = False, settled: bool = False,
    work: str | None = None, progress: Callable[[str], None] = lambda text: None,
) -> AuditResult:  # fmt: skip
    """Audit the event journals in these files and directories, and write what was found to ``out``.

    ``apart``: every path has the journals of a domain of its own. ``settled``: the domain was at rest when the journals
    ended, so that what one node has delivered all must have. ``work``: where tables are kept meanwhile, else a
    directory of this machine, which is removed. ``progress`` is told what is being done.

    On a cluster ``out`` and ``work`` are addresses that all workers reach, as ``hdfs://HOST/DIR``.
    """
    given = [str(path) for path in paths]
    if not given:
        raise UsageError("an audit needs journals: name files or directories")
    written, place = Place(spark, str(out), "out"), work or tempfile.mkdtemp(prefix="groupsvc-audit-")
    try:
        with Audit(spark, given, Place(spark, place, "work"), apart=apart, settled=settled, progress=progress) as run:
            findings = run.findings()
            progress("who led when, and how long things took")
            began = time.monotonic()
            measure(run.work)
            shown = numbers(run.work)
            findings.seconds["measuring"] = round(time.monotonic() - began, 3)
            progress(f"writing {out}")
            began = time.monotonic()
            told = write(run.work, findings, shown, written)
            findings.seconds["writing"] = round(time.monotonic() - began, 3)
    finally:
        if work is None:
            shutil.rmtree(place, ignore_errors=True)
    return AuditResult(findings=findings, summary=told, out=written.name)
