"""Writes made journals as daemons do: numbered lines in files of a limited size, each with a head; or as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import attrs
import msgspec

from groupsvc.journals.segments import SegmentName
from groupsvc.wire.history import SCHEMA_VERSION, HistoryEvent, to_line

from .planting import PLANTS
from .story import FIRST_INCARNATION, Shape, Story

FILE_LINES = 500_000
CLOCK = "one clock for all"


@attrs.frozen(kw_only=True)
class Made:
    """What was written."""

    directory: Path
    lines: int
    files: int
    bytes: int


def make_journals(
    directory: Path, shape: Shape, *, plants: Iterable[str] = (), parquet: bool = False, file_lines: int = FILE_LINES,
    jobs: int = 1,
) -> Made:  # fmt: skip
    """The journals of all nodes of this story, with these contradictions planted."""
    directory.mkdir(parents=True, exist_ok=True)
    write = _write_parquet if parquet else _write
    tasks = [(directory, shape, name, tuple(plants), file_lines) for name in shape.names]
    if jobs == 1:
        counts = [write(*task) for task in tasks]
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            counts = list(pool.map(write, *zip(*tasks, strict=True)))
    files = [file for file in directory.iterdir() if file.suffix in (".ndjson", ".parquet")]
    return Made(
        directory=directory, lines=sum(counts), files=len(files), bytes=sum(one.stat().st_size for one in files)
    )


def lines_of(shape: Shape, node: str, plants: Iterable[str] = ()) -> Iterator[HistoryEvent]:
    """The lines of one node, with what was planted, not numbered."""
    lines: Iterator[HistoryEvent] = Story(shape, node).lines()
    for rule in plants:
        lines = PLANTS[rule].edit(shape)(node, lines)
    return lines


def _write(directory: Path, shape: Shape, node: str, plants: tuple[str, ...], file_lines: int) -> int:
    boot = FIRST_INCARNATION + shape.names.index(node)
    number, position, lines = 0, 0, lines_of(shape, node, plants)
    gathered: list[bytes] = []
    for line in lines:
        if position % file_lines == 0:
            number += 1
            _append(directory, node, boot, number, gathered)
            head = {"clock": CLOCK, "level": shape.level, "segment": number, "version": "made"}
            position += 1
            gathered.append(_numbered(_head(line, head), position, boot))
        position += 1
        gathered.append(_numbered(line, position, boot))
    _append(directory, node, boot, number + 1, gathered)
    return position


def _write_parquet(directory: Path, shape: Shape, node: str, plants: tuple[str, ...], file_lines: int) -> int:
    from groupsvc.journals.parquet import compact  # pyarrow is an extra

    lines_are = directory / f".lines-of-{node}"
    lines_are.mkdir()
    count = _write(lines_are, shape, node, plants, file_lines)
    for _ in compact(lines_are, directory):
        pass
    lines_are.rmdir()
    return count


def _append(directory: Path, node: str, boot: int, number: int, gathered: list[bytes]) -> None:
    """What was gathered belongs to the file before."""
    if gathered:
        (directory / str(SegmentName(node, boot, number - 1))).write_bytes(b"".join(gathered))
        gathered.clear()


def _head(line: HistoryEvent, args: dict[str, object]) -> HistoryEvent:
    return HistoryEvent(
        v=SCHEMA_VERSION, i=0, t=line.t, wall_ns=line.wall_ns, node=line.node, inc=line.inc, op="journal", args=args
    )


def _numbered(line: HistoryEvent, position: int, boot: int) -> bytes:
    return to_line(msgspec.structs.replace(line, i=position, boot=f"{boot:x}"))
