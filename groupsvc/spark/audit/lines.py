"""Every line of every journal as a row of one table with types, whatever form and version it had.

Lines of JSON are read with a schema that is given, so nobody reads them twice to find one out; ``args`` stays text, and
each rule takes from it what it needs. The columns of compacted journals have other names, and become the same ones.
What ``VERSIONS`` does not know is left out and told, before anything else of it is looked at: a later version may have
given a field another meaning, or another name. Fields and kinds that are new are no reason to refuse a line.

The table is written once as Parquet, by class: ``delivery`` (what was delivered), ``flow`` (ordered, stable, held),
``control`` (views, ballots, barriers, leases: everything else a daemon says) and ``program`` (what programs called and
were told, in histories). Most rules need one class, and read few of its columns.

``run`` stands for one process (domain, node, boot), ``stream`` for one group in one life of its domain: both are hashes
of 64 bits, as joins by numbers are cheaper than by names. ``at`` is seconds by the clock of the process, or by that of
the harness; ``clock_s`` is what people read: the wall clock, or in histories the harness' one.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

from ...errors import Failed
from .lives import Cuts, life_of
from .sources import Source, Sources

LINE_SCHEMA = (
    "v INT, i BIGINT, boot STRING, t DOUBLE, local DOUBLE, wall_ns BIGINT, node STRING, inc BIGINT, who STRING,"
    " type STRING, op STRING, `group` BIGINT, epoch BIGINT, seq BIGINT, origin STRING, n BIGINT, mid STRING,"
    " crc BIGINT, args STRING, result STRING, unreadable STRING"
)

VERSIONS = (1,)
"""Of lines that this audit understands."""

FROM_LINES = """
    v, i AS lsn, coalesce(boot, '') AS boot, t AS at, coalesce(wall_ns, 0L) AS wall_ns, coalesce(node, '') AS node,
    coalesce(inc, 0L) AS inc, coalesce(who, 'daemon') AS who, coalesce(type, 'event') AS type, op AS kind,
    coalesce(`group`, 0L) AS group, coalesce(epoch, 0L) AS epoch, coalesce(seq, 0L) AS seq,
    coalesce(origin, '') AS origin, coalesce(n, 0L) AS n, coalesce(crc, 0L) AS crc, coalesce(args, '{}') AS args,
    coalesce(result, '{}') AS result, unreadable IS NOT NULL OR i IS NULL OR op IS NULL OR t IS NULL AS is_unreadable
"""

PARQUET_SCHEMA = (
    "schema_version BIGINT, node STRING, boot STRING, lsn BIGINT, mono_ns BIGINT, wall_ns BIGINT, kind STRING,"
    " `group` BIGINT, view BIGINT, gseq BIGINT, origin STRING, oseq BIGINT, crc BIGINT, incarnation BIGINT,"
    " who STRING, type STRING, args STRING, result STRING"
)
"""Of the columns that are read. It is given, too: files of several versions together may not have the same ones, and
one that is not there is empty."""

FROM_PARQUET = """
    int(schema_version) AS v, lsn, coalesce(boot, '') AS boot, mono_ns / 1e9D AS at, coalesce(wall_ns, 0L) AS wall_ns,
    coalesce(node, '') AS node, coalesce(incarnation, 0L) AS inc, coalesce(who, 'daemon') AS who,
    coalesce(type, 'event') AS type, kind, coalesce(`group`, 0L) AS group, coalesce(view, 0L) AS epoch,
    coalesce(gseq, 0L) AS seq, coalesce(origin, '') AS origin, coalesce(oseq, 0L) AS n, coalesce(crc, 0L) AS crc,
    coalesce(args, '{}') AS args, coalesce(result, '{}') AS result,
    lsn IS NULL OR kind IS NULL OR mono_ns IS NULL AS is_unreadable
"""

DELIVERY = ("delivered", "digest")
FLOW = ("ordered", "stable", "held")

TYPED = f"""
    domain, xxhash64(domain, node, boot) AS run, node, boot, inc, lsn, at,
    CASE WHEN wall_ns > 0 THEN wall_ns / 1e9D ELSE at END AS clock_s, who, type, kind, group, epoch, seq, origin, n,
    crc, args, result, v,
    CASE WHEN v NOT IN ({", ".join(map(str, VERSIONS))}) THEN 'other version' WHEN is_unreadable THEN 'unreadable'
         WHEN who != 'daemon' OR type != 'event' THEN 'program' WHEN kind IN {DELIVERY} THEN 'delivery'
         WHEN kind IN {FLOW} THEN 'flow' ELSE 'control' END AS class,
    CASE WHEN kind IN ('delivered', 'digest', 'ordered') AND length(args) > 2 THEN
         from_json(args, 'first BIGINT, base BIGINT, digest STRING') END AS batch
"""

KEPT_SCHEMA = (
    "domain STRING, run BIGINT, node STRING, boot STRING, inc BIGINT, lsn BIGINT, at DOUBLE, clock_s DOUBLE,"
    " who STRING, type STRING, kind STRING, `group` BIGINT, epoch BIGINT, seq BIGINT, origin STRING, n BIGINT,"
    " crc BIGINT, args STRING, result STRING, v INT, first BIGINT, base BIGINT, digest STRING, class STRING"
)


_damaged = re.compile(r"\[FAILED_READ_FILE[^]]*\] Encountered error while reading file (?P<file>\S.*?)\.\s+SQLSTATE")
"""How Spark says that there is something wrong with a file."""


def read(spark: Any, sources: Sources) -> Any:
    """All lines, not yet typed: each counts once, unreadable ones are marked."""
    once = [one for one in sources.files if one not in sources.repeated]
    parts = _by_domain_and_form(spark, once)
    if sources.repeated:
        several = _united(_by_domain_and_form(spark, sorted(sources.repeated, key=lambda one: one.path)))
        readable = several.where("NOT is_unreadable")
        parts += [readable.dropDuplicates(["domain", "node", "boot", "lsn"]), several.where("is_unreadable")]
    return _united(parts)


def copies(spark: Any, sources: Sources) -> Any | None:
    """The lines of segments that are there more than once, all of them; None if there are none."""
    if not sources.repeated:
        return None
    parts = _by_domain_and_form(spark, sorted(sources.repeated, key=lambda one: one.path))
    return _united(parts).where("NOT is_unreadable")


def _by_domain_and_form(spark: Any, files: list[Source]) -> list[Any]:
    from pyspark.sql import functions

    found: dict[tuple[str, str], list[str]] = {}
    for one in files:
        found.setdefault((one.domain, one.form), []).append(one.path)
    parts = []
    for (domain, form), paths in found.items():
        if form == "parquet":
            frame = spark.read.schema(PARQUET_SCHEMA).parquet(*paths).selectExpr(*_columns(FROM_PARQUET))
        else:
            lines = spark.read.schema(LINE_SCHEMA).option("columnNameOfCorruptRecord", "unreadable")
            frame = lines.option("mode", "PERMISSIVE").json(paths).selectExpr(*_columns(FROM_LINES))
        parts.append(frame.withColumn("domain", functions.lit(domain)))
    return parts


def _united(parts: list[Any]) -> Any:
    return reduce(lambda one, other: one.unionByName(other), parts)


def _columns(text: str) -> list[str]:
    """The columns of a list in SQL; commas inside of brackets belong to one."""
    found, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            found.append(text[start:place].strip())
            start = place + 1
    return [*found, text[start:].strip()]


def keep(lines: Any, place: str) -> None:
    """Write them, typed, to this place."""
    typed = lines.selectExpr(*_columns(TYPED))
    columns = [name for name in typed.columns if name != "batch"]
    typed = typed.selectExpr(*columns, "batch.first AS first", "batch.base AS base", "batch.digest AS digest")
    written = typed.write.mode("overwrite").partitionBy("class").option("compression", "snappy")
    try:
        written.parquet(place)
    except Exception as problem:  # py4j's, with a traceback of Java
        damaged = _damaged.search(str(problem))
        if damaged is None:
            raise
        raise Failed(f"{damaged['file']} is damaged, and cannot be read: copy it again, or leave it out") from None


def kept(spark: Any, place: str, cuts: Cuts) -> Any:
    """What was written there, each line with the stream that it belongs to."""
    found = spark.read.schema(KEPT_SCHEMA).parquet(place)
    return found.withColumn("life", life_of(cuts)).selectExpr("*", "xxhash64(domain, life, group) AS stream")
