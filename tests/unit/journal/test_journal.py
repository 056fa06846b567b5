"""The journal thread: in order, one sync for all that waits, and the right thing when the disk is not."""

from __future__ import annotations

import select
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from groupsvcd.core.effects import Persist
from groupsvcd.core.records import AppendRecord
from groupsvcd.io import clocks
from groupsvcd.io.journal import Journal
from groupsvcd.io.state_directory import StateDirectory
from groupsvcd.io.store import Store

PATIENCE_S = 20.0


class Bench:
    """A journal over a store in a directory, and how to wait for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = StateDirectory(path)
        self.store = Store(self.directory, "n1")
        self.journal = Journal(self.store, clocks.now)

    def finished(self, count: int) -> list[int]:
        numbers: list[int] = []
        while len(numbers) < count and self.wake():
            numbers += [effect.number for effect in self.journal.finished()]
        return numbers

    def is_full(self) -> bool:
        return self.journal.is_full

    def wake(self) -> bool:
        return bool(select.select([self.journal.fileno()], [], [], PATIENCE_S)[0])

    def reopened(self) -> tuple[bytes, ...]:
        self.journal.close()
        store = Store(self.directory, "n1")
        store.close()
        return store.stored.streams[0].entries


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.directory.close()


def append(n: int, size: int = 1) -> Persist:
    return Persist(n, (AppendRecord(0, n, (b"x" * size,)),))


def test_effects_come_back_in_their_order_and_are_on_disk(bench: Bench) -> None:
    for n in range(1, 501):
        bench.journal.write(append(n))
    assert list(range(1, 501)) == bench.finished(500)
    assert 0.0 == bench.journal.oldest_age()
    assert 500 == len(bench.reopened())


def test_what_waits_shares_one_transaction(bench: Bench) -> None:
    count = bench.store._node.transactions
    for n in range(1, 1001):
        bench.journal.write(append(n))
    bench.finished(1000)
    assert bench.store._node.transactions - count < 500


def test_close_writes_what_is_waiting(bench: Bench) -> None:
    for n in range(1, 51):
        bench.journal.write(append(n))
    assert 50 == len(bench.reopened())


def test_a_full_disk_keeps_the_batch_until_there_is_room(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    """S4: refused is not lost; the daemon stays up and goes on by itself."""
    bench.journal.write(append(1))
    bench.finished(1)
    pages = bench.store.connection.execute("PRAGMA page_count").fetchone()[0]
    bench.store.connection.execute(f"PRAGMA max_page_count = {pages}")
    bench.journal.write(append(2, size=100_000))
    until = clocks.now() + PATIENCE_S
    while not bench.is_full() and clocks.now() < until:
        select.select([bench.journal.fileno()], [], [], 0.01)
    assert bench.is_full()
    assert bench.journal.oldest_age() > 0
    assert bench.journal.error is None
    bench.store.connection.execute("PRAGMA max_page_count = 1000000")
    assert [2] == bench.finished(1)
    assert not bench.is_full()
    assert "full" in caplog.text
    assert 2 == len(bench.reopened())


def test_any_other_error_ends_the_journal_and_nothing_is_tried_again(bench: Bench) -> None:
    """S3: after an error nobody knows what the disk has."""
    bench.journal.write(append(1))
    bench.finished(1)
    other = sqlite3.connect(bench.path / "state.db", isolation_level=None)
    other.execute("DROP TABLE entry")
    other.close()
    bench.journal.write(append(2))
    assert bench.wake()
    assert [] == bench.journal.finished()
    assert bench.journal.error is not None
    assert "no such table" in bench.journal.error
    bench.journal.close()


def test_a_gap_in_the_log_is_an_error_and_not_written(bench: Bench) -> None:
    bench.journal.write(append(5))
    assert bench.wake()
    assert [] == bench.journal.finished()
    assert "does not follow" in str(bench.journal.error)
    bench.journal.close()
