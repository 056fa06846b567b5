"""Which files an audit reads: segments of journals, as lines or as Parquet, and histories of whole runs.

A and B have written journals, ``n1.66088785bb180.000001.ndjson`` and so on; somebody has copied them twice, and turned
some into Parquet. What belongs to one *domain* is looked at together: everything that is given, or, if every path is a
domain of its own, what is under each. A segment that is there more than once is read with all its copies, and each of
its lines counts once. A file of lines that is not called like a segment is a *history*: the lines of all processes of
one run, in one order and by one clock, as the simulator and the fault tests write them. It is a domain of its own.

Paths are those of Hadoop, so journals may lie wherever Spark reads from; what is on this machine needs no prefix.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import attrs

from ...errors import Failed, UsageError

Form = Literal["lines", "parquet"]

_segment = re.compile(r"(?P<node>[^/]+)\.(?P<boot>[0-9a-f]+)\.(?P<number>[0-9]+)\.(?P<kind>ndjson|parquet)")
_history = re.compile(r"[^/.][^/]*\.(ndjson|jsonl)")


@attrs.frozen
class Source:
    """One file."""

    path: str
    name: str
    domain: str
    form: Form
    segment: tuple[str, str, int] | None  # node, boot, number; None: a history
    bytes: int
    is_torn: bool  # it does not end with a line


@attrs.frozen
class Sources:
    """All files of an audit."""

    files: tuple[Source, ...]

    @property
    def repeated(self) -> frozenset[Source]:
        """Those of which another copy is here, too."""
        count = Counter((one.domain, one.segment) for one in self.files if one.segment is not None)
        return frozenset(one for one in self.files if one.segment is not None and count[one.domain, one.segment] > 1)

    @property
    def torn(self) -> tuple[Source, ...]:
        """Those that end in the middle of a line."""
        return tuple(one for one in self.files if one.is_torn)

    @property
    def domains(self) -> tuple[str, ...]:
        """By name."""
        return tuple(dict.fromkeys(one.domain for one in self.files))

    @property
    def bytes(self) -> int:
        """In all."""
        return sum(one.bytes for one in self.files)


def sources(spark: Any, paths: Iterable[str], *, apart: bool = False) -> Sources:
    """What is there; ``apart``: every path is a domain of its own."""
    if not hasattr(spark, "_jvm"):
        raise UsageError("an audit lists files through Spark's JVM, which Spark Connect does not show: use a session")
    found: list[Source] = []
    for path in paths:
        files = [one for one in _files(spark, path) if not one.path.rpartition("/")[2].startswith((".", "_"))]
        taken = [source for one in files if (source := _source(spark, one, path.rstrip("/") if apart else ""))]
        if not taken:
            raise UsageError(f"there are no journals in {path}: no NODE.BOOT.NUMBER.ndjson or .parquet, and no history")
        found += taken
    unique = {one.path: one for one in found}
    return Sources(tuple(sorted(unique.values(), key=lambda one: (one.domain, one.name, one.path))))


@attrs.frozen
class _File:
    path: str
    bytes: int


def _files(spark: Any, path: str) -> Sequence[_File]:
    jvm, settings = spark._jvm, spark._jsc.hadoopConfiguration()
    try:
        place = jvm.org.apache.hadoop.fs.Path(path)
        system = place.getFileSystem(settings)
        matched = system.globStatus(place)
        if not matched:
            raise UsageError(f"there is no file or directory {path}")
        found: list[_File] = []
        for one in matched:
            there = system.listStatus(one.getPath()) if one.isDirectory() else [one]
            found += [_File(it.getPath().toString(), int(it.getLen())) for it in there if it.isFile()]
    except Exception as problem:
        if isinstance(problem, UsageError):
            raise
        raise Failed(f"{path} cannot be listed: {_first_line(problem)}") from None
    return found


def _source(spark: Any, file: _File, domain: str) -> Source | None:
    name = file.path.rpartition("/")[2]
    found = _segment.fullmatch(name)
    if found is not None:
        segment = (found["node"], found["boot"], int(found["number"]))
        if found["kind"] == "parquet":
            return Source(file.path, name, domain, "parquet", segment, file.bytes, is_torn=False)
        return Source(file.path, name, domain, "lines", segment, file.bytes, _is_torn(spark, file))
    if _history.fullmatch(name):
        apart = f"{domain}/{name}" if domain and not domain.endswith(name) else domain or name
        return Source(file.path, name, apart, "lines", None, file.bytes, _is_torn(spark, file))
    return None


def _is_torn(spark: Any, file: _File) -> bool:
    """Whether its last byte is no line feed."""
    if not file.bytes:
        return False
    place = spark._jvm.org.apache.hadoop.fs.Path(file.path)
    try:
        stream = place.getFileSystem(spark._jsc.hadoopConfiguration()).open(place)
        try:
            stream.seek(file.bytes - 1)
            return bool(stream.read() != ord("\n"))
        finally:
            stream.close()
    except Exception as problem:
        raise Failed(f"{file.path} cannot be read: {_first_line(problem)}") from None


def _first_line(problem: Exception) -> str:
    java = getattr(problem, "java_exception", None)
    return str(java.toString() if java is not None else problem).partition("\n")[0]
