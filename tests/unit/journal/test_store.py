"""What was synced is read again, exactly; and if it cannot be, nothing is read at all (S2)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from groupsvcd.core.records import (
    AppendRecord,
    CheckpointRecord,
    NodeRecord,
    OpenRecord,
    PromiseRecord,
    Record,
    Stored,
    StoredStream,
)
from groupsvcd.io.state_directory import StateDirectory, StateRefused
from groupsvcd.io.store import Store

DOMAIN = bytes(range(16))


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    directory = StateDirectory(path)
    try:
        store = Store(directory, "n1")
        try:
            yield store
        finally:
            store.close()
    finally:
        directory.close()


def stored_after(path: Path, *batches: list[Record]) -> Stored:
    with opened(path) as store:
        for batch in batches:
            store.write(batch)
    with opened(path) as store:
        return store.stored


def test_a_new_state_is_blank(tmp_path: Path) -> None:
    stored = stored_after(tmp_path)
    assert (0, bytes(16), {}) == (stored.incarnation, stored.domain, stored.streams)


def test_the_node_record_is_read_again(tmp_path: Path) -> None:
    stored = stored_after(tmp_path, [NodeRecord(5, bytes(16))], [NodeRecord(7, DOMAIN)])
    assert (7, DOMAIN) == (stored.incarnation, stored.domain)


def test_entries_promises_and_epochs_are_read_again(tmp_path: Path) -> None:
    stored = stored_after(
        tmp_path,
        [PromiseRecord(0, 3), OpenRecord(0, 3, 0, (b"a",))],
        [AppendRecord(0, 2, (b"b", b"c")), AppendRecord(9, 1, (b"z",))],
        [PromiseRecord(0, 8)],
    )
    assert StoredStream(promised=8, accepted=3, entries=(b"a", b"b", b"c")) == stored.streams[0]
    assert StoredStream(entries=(b"z",)) == stored.streams[9]


def test_opening_an_epoch_cuts_the_tail_and_appends_the_new_one_in_one_step(tmp_path: Path) -> None:
    stored = stored_after(tmp_path, [AppendRecord(0, 1, (b"a", b"b", b"c"))], [OpenRecord(0, 4, 1, (b"B", b"C", b"D"))])
    assert StoredStream(promised=4, accepted=4, entries=(b"a", b"B", b"C", b"D")) == stored.streams[0]


def test_a_checkpoint_drops_what_is_no_longer_needed(tmp_path: Path) -> None:
    entries = tuple(bytes([n]) for n in range(1, 11))
    stored = stored_after(tmp_path, [AppendRecord(0, 1, entries)], [CheckpointRecord(0, 8, b"state", 6)])
    assert StoredStream(base=6, entries=entries[6:], checkpoint_seq=8, checkpoint=b"state") == stored.streams[0]


def test_a_checkpoint_beyond_the_log_replaces_it(tmp_path: Path) -> None:
    stored = stored_after(
        tmp_path,
        [AppendRecord(0, 1, (b"a", b"b"))],
        [CheckpointRecord(0, 50, b"state", 40), AppendRecord(0, 51, (b"x",))],
    )
    assert StoredStream(base=50, entries=(b"x",), checkpoint_seq=50, checkpoint=b"state") == stored.streams[0]


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.write([AppendRecord(0, 1, (b"a",))])
        with pytest.raises(ValueError, match="stream 0 ends at 2, entry 4 does not follow"):
            store.write([AppendRecord(0, 2, (b"b",)), AppendRecord(0, 4, (b"d",))])
        store.write([AppendRecord(0, 2, (b"B",))])
    with opened(tmp_path) as store:
        assert (b"a", b"B") == store.stored.streams[0].entries


def test_what_was_synced_survives_a_process_that_dies_without_closing(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        store = Store(StateDirectory(tmp_path), "n1")
        for n in range(1, 101):
            store.write([AppendRecord(0, n, (b"%d" % n,))])
        os._exit(0)
    os.waitpid(child, 0)
    with opened(tmp_path) as store:
        assert tuple(b"%d" % n for n in range(1, 101)) == store.stored.streams[0].entries


def test_a_long_write_ahead_log_is_moved_into_the_database(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for n in range(1, 60):
            store.write([AppendRecord(0, n, (b"x" * 100_000,))])
            store.tidy()
        assert (tmp_path / "state.db-wal").stat().st_size < 5_000_000
    with opened(tmp_path) as store:
        assert 59 == len(store.stored.streams[0].entries)


# --- Damage -----------------------------------------------------------------------------------------


def damaged(path: Path, *statements: str) -> None:
    """A state with ten entries in which somebody has fingered."""
    with opened(path) as store:
        store.write([AppendRecord(0, 1, tuple(b"entry %d" % n for n in range(1, 11)))])
        store.write([CheckpointRecord(0, 5, b"the state", 3), PromiseRecord(0, 2)])
    connection = sqlite3.connect(path / "state.db")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement, what",
    [
        ("UPDATE entry SET body = x'00' WHERE seq = 7", "entry 7 of stream 0"),
        ("UPDATE entry SET seq = 11 WHERE seq = 10", "entry 10 of stream 0, which is missing"),
        ("DELETE FROM entry WHERE seq = 10", r"the entries of stream 0 \(up to 10, 9 found\)"),
        ("DELETE FROM entry WHERE seq = 6", "entry 6 of stream 0, which is missing"),
        ("UPDATE stream SET promised = 1", "the row of stream 0"),
        ("UPDATE checkpoint SET state = x'00'", "the checkpoint of stream 0"),
        ("DELETE FROM checkpoint", "the checkpoint of stream 0"),
        ("UPDATE node SET incarnation = 1", "the row of the node"),
        ("DELETE FROM node", "the row of the node"),
        ("DROP TABLE entry", "cannot be read"),
    ],
)
def test_damage_is_found_at_start_and_named(tmp_path: Path, statement: str, what: str) -> None:
    damaged(tmp_path, statement)
    directory = StateDirectory(tmp_path)
    with pytest.raises(StateRefused, match=what):
        Store(directory, "n1")
    directory.close()


def test_a_whole_entry_of_an_older_time_is_found(tmp_path: Path) -> None:
    """An old block in place of a new one is valid by itself; the sum over the stream is not."""
    with opened(tmp_path) as store:
        store.write([AppendRecord(0, 1, (b"old",))])
    connection = sqlite3.connect(tmp_path / "state.db")
    old = connection.execute("SELECT body, crc FROM entry").fetchone()
    connection.close()
    with opened(tmp_path) as store:
        store.write([OpenRecord(0, 2, 0, (b"new",))])
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute("UPDATE entry SET body = ?, crc = ?", old)
    connection.commit()
    connection.close()
    directory = StateDirectory(tmp_path)
    with pytest.raises(StateRefused, match="the entries of stream 0"):
        Store(directory, "n1")
    directory.close()


@pytest.mark.parametrize("place", [0.3, 0.7, 0.98])
def test_a_flipped_bit_in_the_write_ahead_log_never_undoes_what_was_synced(tmp_path: Path, place: float) -> None:
    """SQLite alone would read the log up to the damage and go on as if the rest had never been."""
    child = os.fork()
    if child == 0:
        store = Store(StateDirectory(tmp_path), "n1")
        for n in range(1, 21):
            store.write([AppendRecord(0, n, (b"%d" % n,))])
        os._exit(0)
    os.waitpid(child, 0)
    wal = tmp_path / "state.db-wal"
    content = bytearray(wal.read_bytes())
    content[int(len(content) * place)] ^= 0x10
    wal.write_bytes(content)
    (tmp_path / "state.db-shm").unlink()
    directory = StateDirectory(tmp_path)
    with pytest.raises(StateRefused, match=r"has lost its last \d+ synced transactions"):
        Store(directory, "n1")
    directory.close()
    assert bytes(content) == wal.read_bytes()


def test_a_mark_that_did_not_survive_a_power_loss_refuses_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.write([PromiseRecord(0, 1)])
    for content in (b"", b"\0" * 12, b"\xff" * 5):
        (tmp_path / "mark").write_bytes(content)
        with opened(tmp_path) as store:
            assert 1 == store.stored.streams[0].promised
