"""Bugs for the disks of real daemons: tempting short cuts, each of which one nemesis of storage must find.

Those of the simulator are planted in the core, which has no disk. These are where a daemon meets one, so only real
daemons can have them: ``python -m tests.faults run --nemesis power-loss-all --plant syncs-now-and-then``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from groupsvcd.io import journal as journals
from groupsvcd.io import store as stores
from groupsvcd.io.journal import Journal


@contextmanager
def replaced(where: Any, name: str, by: Callable[[Any], Any]) -> Iterator[None]:
    """``by`` gets what was there, and gives what is there inside the block."""
    before = getattr(where, name)
    setattr(where, name, by(before))
    try:
        yield
    finally:
        setattr(where, name, before)


@contextmanager
def syncs_now_and_then() -> Iterator[None]:
    """``synchronous = NORMAL`` is so much faster; the log is synced when it has grown long. Found by loss of power."""

    def opened(before: Callable[[Path], sqlite3.Connection]) -> Callable[[Path], sqlite3.Connection]:
        def open_store(database: Path) -> sqlite3.Connection:
            connection = before(database)
            connection.execute("PRAGMA synchronous = NORMAL")
            return connection

        return open_store

    with replaced(stores, "_open", opened):
        yield


@contextmanager
def syncs_again_after_an_error() -> Iterator[None]:
    """What failed is tried again until it succeeds, as if the disk were full. Found by a failed sync."""

    def patient(before: Callable[[Journal, Any], None]) -> Callable[[Journal, Any], None]:
        def write_until_safe(self: Journal, batch: Any) -> None:
            while not self._stopping.wait(0.05):
                try:
                    return before(self, batch)
                except sqlite3.OperationalError:
                    continue

        return write_until_safe

    with replaced(Journal, "_write_until_safe", patient):
        yield


@contextmanager
def a_full_disk_is_an_error() -> Iterator[None]:
    """Whatever a write answers but success ends the daemon. Found by a full disk."""
    with replaced(journals, "sqlite3", lambda before: _WithoutFull):
        yield


class _WithoutFull:
    """The module as it is, in which no error means that the disk is full."""

    OperationalError = sqlite3.OperationalError
    SQLITE_FULL = -1


@contextmanager
def damage_is_a_surprise() -> Iterator[None]:
    """What cannot be read is somebody else's problem: the error comes as it is. Found by damage.

    That what is damaged would be *served* no run has shown so far, with comparisons left out: SQLite has checksums of
    its own, and who has lost its end has lost little that others lack. ``tests/unit/journal/test_store.py`` shows it.
    """

    class Surprise(Exception):
        pass

    with replaced(stores, "StateRefused", lambda before: Surprise):
        yield


FOUND_BY = {
    "syncs-now-and-then": ("power-loss-all", r"(?!run: )"),
    "syncs-again-after-an-error": ("fsync-eio", r"run: S3: \w+ (still runs|asked for)"),
    "a-full-disk-is-an-error": ("disk-full", r"run: \w+ ended by itself with code 5;"),
    "damage-is-a-surprise": ("truncate", r"run: S2: \w+ with damaged state ended with code 1,"),
}
"""Which nemesis must turn a run with it red, and how what it finds begins: ``python -m tests.faults planted``. A busy
machine may turn a run red, too, so not whatever is found will do; of a sync that was left out any promise will."""

ON_DISKS = {
    "syncs-now-and-then": syncs_now_and_then,
    "syncs-again-after-an-error": syncs_again_after_an_error,
    "a-full-disk-is-an-error": a_full_disk_is_an_error,
    "damage-is-a-surprise": damage_is_a_surprise,
}
"""By name."""
