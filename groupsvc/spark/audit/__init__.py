"""The audit of event journals on Spark: proof or refutation from any amount of them.

    from groupsvc.spark.audit import audit

    result = audit(spark, ["/srv/journals"], "/srv/audit")
    assert result.is_sound, result.violations

It shares no code with the engine, with the simulator's checkers, or with ``groupsvc journal check``: each checks the
others. Nothing here imports pyspark until it is used.
"""

from __future__ import annotations

from .auditing import Findings, Violation
from .job import AuditResult, audit

__all__ = ["AuditResult", "Findings", "Violation", "audit"]
