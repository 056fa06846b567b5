"""The files of event journals: ``<node>.<boot>.<number>.ndjson``, in the order in which they were written.

A journal is what one run of a daemon has written; it consists of *segments*. ``boot`` is in hexadecimal and grows from
run to run, ``number`` grows by one within a run. The segment that a daemon writes to is locked: nobody else touches it.
A compacted segment has the same name and ends in ``.parquet``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_name = re.compile(r"(?P<node>[^/]+)\.(?P<boot>[0-9a-f]+)\.(?P<number>[0-9]+)\.(?P<kind>ndjson|parquet)")


class SegmentName(NamedTuple):
    """Of one file."""

    node: str
    boot: int
    number: int

    def __str__(self) -> str:
        return f"{self.node}.{self.boot:x}.{self.number:06}.ndjson"

    @property
    def compacted(self) -> str:
        """The name of the same as Parquet."""
        return f"{self.node}.{self.boot:x}.{self.number:06}.parquet"


def name_of(file: Path) -> SegmentName | None:
    """What a file is called by, if it is a segment."""
    found = _name.fullmatch(file.name)
    if found is None or file.name.startswith("."):
        return None
    return SegmentName(found["node"], int(found["boot"], 16), int(found["number"]))


def segments_of(directory: Path, node: str | None = None, kind: str = "ndjson") -> list[tuple[SegmentName, Path]]:
    """The segments in a directory, of one node or of all: of each node the oldest first."""
    found = [(name, file) for file in directory.glob(f"*.{kind}") if (name := name_of(file)) is not None]
    return sorted(one for one in found if node in (None, one[0].node))


@contextlib.contextmanager
def closed(file: Path) -> Iterator[bool]:
    """Whether no daemon writes to this file any more; as long as this is entered, nobody else compacts it either."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
