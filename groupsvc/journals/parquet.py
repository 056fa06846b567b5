"""Journals as Parquet: one row per line, for audits with Spark or anything else that reads columns.

Each segment becomes a file of the same name. It is written beside its place, synced, put in its place and that synced,
too, and only then is the source removed: whatever is interrupted can be done again. ``pyarrow`` is needed here and
nowhere else (the extra ``journal``); the daemon never imports it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from ..errors import Failed, UsageError
from ..wire.history import SCHEMA_VERSION, HistoryEvent
from .reading import SegmentLines
from .segments import closed, segments_of

ROWS_AT_ONCE = 50_000
"""So many lines are in memory at a time, and in a row group."""

COLUMNS: dict[str, str] = {
    "schema_version": "int32",
    "node": "string",
    "boot": "string",
    "lsn": "int64",
    "mono_ns": "int64",
    "wall_ns": "int64",
    "kind": "string",
    "group": "int64",
    "view": "int64",
    "gseq": "int64",
    "origin": "string",
    "oseq": "int64",
    "msg_id": "string",
    "crc": "int64",
    "incarnation": "int64",
    "who": "string",
    "type": "string",
    "local_ns": "int64",
    "args": "string",
    "result": "string",
}
"""Every column and its type; ``args`` and ``result`` are JSON."""

NS = 1_000_000_000


@attrs.frozen
class Done:
    """What became of one segment."""

    file: Path
    what: str  # "compacted", "compacted before", "open", "would be compacted", "unreadable"
    rows: int = 0
    torn_bytes: int = 0
    problem: str = ""


def arrow() -> tuple[Any, Any]:
    """``pyarrow`` and its Parquet."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Failed("pyarrow is not installed, and Parquet needs it: pip install pyarrow") from None
    return pyarrow, pyarrow.parquet


def compact(directory: Path, out: Path | None = None, *, keep: bool = False, dry_run: bool = False) -> Iterator[Done]:
    """Compact all segments in ``directory`` that no daemon writes to, one after the other."""
    arrow()
    if not directory.is_dir():
        raise UsageError(f"{directory} is no directory")
    out = out or directory
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is no directory")
    if not dry_run:
        out.mkdir(parents=True, exist_ok=True)
    for name, file in segments_of(directory):
        try:
            with closed(file) as is_closed:
                if not is_closed:
                    yield Done(file, "open")
                elif dry_run:
                    yield _looked_at(file)
                else:
                    yield _compacted(file, out / name.compacted, keep=keep)
        except FileNotFoundError:
            if file.exists():
                raise  # something else is missing; this one its daemon has removed meanwhile, to make room


def _looked_at(file: Path) -> Done:
    lines = SegmentLines(file)
    rows = sum(1 for _ in lines)
    if lines.unreadable:
        return Done(file, "unreadable", rows, lines.torn_bytes, lines.unreadable[0])
    return Done(file, "would be compacted", rows, lines.torn_bytes)


def _compacted(file: Path, target: Path, *, keep: bool) -> Done:
    lines = SegmentLines(file)
    size = file.stat().st_size
    before = _made_of(target)
    if before is not None and before[0] == size:
        done = Done(file, "compacted before", *before[1:])
    else:
        hidden = target.with_name(f".{target.name}.new")
        rows = _write(lines, size, hidden)
        if lines.unreadable:
            hidden.unlink()
            return Done(file, "unreadable", rows, lines.torn_bytes, lines.unreadable[0])
        hidden.chmod(stat.S_IMODE(file.stat().st_mode))  # who may read the lines may read these, and nobody else
        _sync(hidden)
        hidden.rename(target)
        done = Done(file, "compacted", rows, lines.torn_bytes)
    _sync(target.parent)
    if not keep:
        file.unlink()
        _sync(file.parent)
    return done


def _made_of(target: Path) -> tuple[int, int, int] | None:
    """How large the source of a compacted segment was, with how many rows and torn bytes; None if it is not whole."""
    _, parquet = arrow()
    try:
        metadata = parquet.read_metadata(target)
        told = json.loads(metadata.metadata[b"groupsvc"])
        return int(told["source_bytes"]), metadata.num_rows, int(told["torn_bytes"])
    except (OSError, ValueError, KeyError, TypeError):  # pyarrow's errors are ValueErrors
        return None


def _write(lines: SegmentLines, size: int, target: Path) -> int:
    pyarrow, parquet = arrow()
    fields = [pyarrow.field(name, getattr(pyarrow, kind)(), nullable=False) for name, kind in COLUMNS.items()]
    schema = pyarrow.schema(fields)
    rows = 0
    with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        gathered: list[HistoryEvent] = []
        for _, line in lines:
            gathered.append(line)
            if len(gathered) >= ROWS_AT_ONCE:
                rows += _write_some(writer, schema, gathered)
        rows += _write_some(writer, schema, gathered)
        told = {"source_bytes": size, "torn_bytes": lines.torn_bytes, "schema_version": SCHEMA_VERSION}
        writer.add_key_value_metadata({"groupsvc": json.dumps(told)})
    return rows


def _write_some(writer: Any, schema: Any, lines: list[HistoryEvent]) -> int:
    pyarrow, _ = arrow()
    count = len(lines)
    if lines:
        columns: dict[str, list[Any]] = {
            "schema_version": [line.v for line in lines],
            "node": [line.node for line in lines],
            "boot": [line.boot for line in lines],
            "lsn": [line.i for line in lines],
            "mono_ns": [round(line.t * NS) for line in lines],
            "wall_ns": [line.wall_ns for line in lines],
            "kind": [line.op for line in lines],
            "group": [line.group for line in lines],
            "view": [line.epoch for line in lines],
            "gseq": [line.seq for line in lines],
            "origin": [line.origin for line in lines],
            "oseq": [line.n for line in lines],
            "msg_id": [line.mid for line in lines],
            "crc": [line.crc for line in lines],
            "incarnation": [line.inc for line in lines],
            "who": [line.who for line in lines],
            "type": [line.type for line in lines],
            "local_ns": [round(line.local * NS) for line in lines],
            "args": [_json(line.args) for line in lines],
            "result": [_json(line.result) for line in lines],
        }
        writer.write_table(pyarrow.table(columns, schema=schema))
        lines.clear()
    return count


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError)
"""What is raised over a file that is no compacted segment, or not whole; errors of pyarrow are of these classes."""


def lines_in(file: Path) -> Iterator[HistoryEvent]:
    """The lines that a compacted segment was made of; raises one of ``UNREADABLE``."""
    _, parquet = arrow()
    with parquet.ParquetFile(file) as opened:
        for batch in opened.iter_batches(batch_size=ROWS_AT_ONCE):
            for row in batch.to_pylist():
                yield HistoryEvent(
                    v=row["schema_version"], i=row["lsn"], boot=row["boot"], t=row["mono_ns"] / NS,
                    local=row["local_ns"] / NS, wall_ns=row["wall_ns"], node=row["node"], inc=row["incarnation"],
                    who=row["who"], type=row["type"], op=row["kind"], group=row["group"], epoch=row["view"],
                    seq=row["gseq"], origin=row["origin"], n=row["oseq"], mid=row["msg_id"], crc=row["crc"],
                    args=json.loads(row["args"]), result=json.loads(row["result"]),
                )  # fmt: skip


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
