"""Which files an audit reads: segments of journals, as lines or as Parquet, and histories of whole runs.

A and B have written journals, ``n1.66088785bb180.000001.ndjson`` and so on; somebody has copied them twice, and turned
some into Parquet. What belongs to one *domain* is looked at together: everything that is given, or, if every path is a
domain of its own, what is under each. A segment that is there more than once is read with all its copies, and each of
its lines counts once. A file of lines that is not called like a segment is a *history*: the lines of all processes of
one run, in one order and by one clock, as the simulator and the fault tests write them. It is a domain of its own, and
if two are called alike, ``run1/history.ndjson`` and ``run2/history.ndjson``, that is what they are called here, too.

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
    unique = _told_apart({one.path: one for one in found}.values())
    return Sources(tuple(sorted(unique, key=lambda one: (one.domain, one.name, one.path))))


def _told_apart(found: Iterable[Source]) -> Iterable[Source]:
    """Histories that are called alike, each with as much of its path as tells which one it is."""
    alike: dict[str, list[Source]] = {}
    for one in found:
        if one.segment is None:
            alike.setdefault(one.domain, []).append(one)
        else:
            yield one
    for those in alike.values():
        length = 1
        while len({_end(one.path, length) for one in those}) < len(those):
            length += 1
        for one in those:
            yield attrs.evolve(one, domain=_end(one.path, length)) if len(those) > 1 else one


def _end(path: str, length: int) -> str:
    return "/".join(path.split("/")[-length:])


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
            _need_whole(spark, file)
            return Source(file.path, name, domain, "parquet", segment, file.bytes, is_torn=False)
        return Source(file.path, name, domain, "lines", segment, file.bytes, _is_torn(spark, file))
    if _history.fullmatch(name):
        apart = f"{domain}/{name}" if domain and not domain.endswith(name) else domain or name
        return Source(file.path, name, apart, "lines", None, file.bytes, _is_torn(spark, file))
    return None


PARQUET_END = b"PAR1"
"""With this a file of Parquet ends, behind the footer that tells what is in it."""


def _is_torn(spark: Any, file: _File) -> bool:
    """Whether its last byte is no line feed."""
    return bool(file.bytes) and _last_bytes(spark, file, 1) != b"\n"


def _need_whole(spark: Any, file: _File) -> None:
    """Raise if it has no footer: it was cut off, or is no Parquet."""
    if file.bytes < len(PARQUET_END) or _last_bytes(spark, file, len(PARQUET_END)) != PARQUET_END:
        raise Failed(f"{file.path} is no whole file of Parquet: copy it again, or leave it out")


def _last_bytes(spark: Any, file: _File, count: int) -> bytes:
    place = spark._jvm.org.apache.hadoop.fs.Path(file.path)
    try:
        stream = place.getFileSystem(spark._jsc.hadoopConfiguration()).open(place)
        try:
            stream.seek(file.bytes - count)
            return bytes(stream.read() for _ in range(count))
        finally:
            stream.close()
    except Exception as problem:
        raise Failed(f"{file.path} cannot be read: {_first_line(problem)}") from None


def _first_line(problem: Exception) -> str:
    java = getattr(problem, "java_exception", None)
    return str(java.toString() if java is not None else problem).partition("\n")[0]
