"""Reading journals: files and directories of several nodes, as they were left, whole or torn, compacted or not.

A daemon that was killed leaves a file whose last line is cut off. That is no damage: what stands before it is good, and
the reader says how many bytes it left out. A line in the middle that cannot be read is damage, and is told as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import attrs
import msgspec

from ..errors import UsageError
from ..wire.history import HistoryEvent, from_line
from .segments import SegmentName, name_of, segments_of


class Place(NamedTuple):
    """Where a line stands."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file.name}:{self.line}"


@attrs.define
class SegmentLines:
    """One file, and what was wrong with it; that is known when all of it was read."""

    file: Path
    torn_bytes: int = 0  # at the end
    unreadable: list[str] = attrs.field(factory=list)  # elsewhere

    def __iter__(self) -> Iterator[tuple[Place, HistoryEvent]]:
        self.torn_bytes, self.unreadable = 0, []
        if self.file.suffix == ".parquet":
            yield from self._compacted()
            return
        with self.file.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                if not raw.endswith(b"\n"):
                    self.torn_bytes = len(raw)  # cut off while it was written
                    return
                try:
                    yield Place(self.file, number), from_line(raw)
                except msgspec.DecodeError as problem:
                    self.unreadable.append(f"{Place(self.file, number)}: {problem}")

    def _compacted(self) -> Iterator[tuple[Place, HistoryEvent]]:
        from .parquet import UNREADABLE, lines_in

        number = 0
        try:
            for number, line in enumerate(lines_in(self.file), 1):
                yield Place(self.file, number), line
        except UNREADABLE as problem:
            self.unreadable.append(f"{Place(self.file, number + 1)}: {_one_line(problem)}")


def _one_line(problem: Exception) -> str:
    return (str(problem) or type(problem).__name__).partition("\n")[0]


@attrs.frozen
class Journal:
    """What one run of a daemon has left."""

    node: str
    boot: int
    segments: tuple[tuple[int, SegmentLines], ...]

    @property
    def key(self) -> tuple[str, int]:
        """Which run of which node."""
        return self.node, self.boot


def journals_in(paths: Iterable[Path]) -> list[Journal]:
    """The journals in these files and directories. What is there as Parquet and as lines is read once."""
    found: dict[SegmentName, Path] = {}
    for path in paths:
        if path.is_dir():
            there = [*segments_of(path, kind="parquet"), *segments_of(path)]
            if not there:
                raise UsageError(f"there are no journals in {path}: no NODE.BOOT.NUMBER.ndjson or .parquet")
        else:
            there = [(_name_of(path), path)]
        found.update(there)
    by_run: dict[tuple[str, int], list[tuple[int, SegmentLines]]] = {}
    for name, file in sorted(found.items()):
        by_run.setdefault((name.node, name.boot), []).append((name.number, SegmentLines(file)))
    return [Journal(node, boot, tuple(segments)) for (node, boot), segments in by_run.items()]


def _name_of(path: Path) -> SegmentName:
    if not path.exists():
        raise UsageError(f"there is no file or directory {path}")
    name = name_of(path)
    if name is None:
        raise UsageError(f"{path} is no journal: its name should be NODE.BOOT.NUMBER.ndjson, or .parquet")
    return name
