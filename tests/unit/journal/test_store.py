"""What was synced is read again, exactly; and if it cannot be, nothing is read at all (S2)."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from zlib import crc32

import pytest

from groupsvcd.core.records import (
    AboutRecord,
    AppendRecord,
    CheckpointRecord,
    ForgetRecord,
    NodeRecord,
    OpenRecord,
    OptionsRecord,
    PayloadRecord,
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


def group_of_entries(path: Path) -> None:
    """A node with the domain stream, a durable group of forty entries and another one; all of it in one file."""
    with opened(path) as store:
        store.write([OpenRecord(0, 2, 0, (b"the directory",)), AboutRecord(9, b"other"), OpenRecord(9, 4, 0, (b"x",))])
        entries = tuple(b"entry %d of the group, which is long enough to fill a page" % n for n in range(1, 41))
        store.write([AboutRecord(7, b"group"), OpenRecord(7, 3, 0, entries), PayloadRecord(7, ("n1", 1, 1), b"large")])
    sqlite3.connect(path / "state.db").execute("PRAGMA wal_checkpoint(TRUNCATE)").connection.close()


@pytest.mark.parametrize(
    "statement, what",
    [
        ("UPDATE entry SET body = x'00' WHERE stream = 7 AND seq = 7", "entry 7 of stream 7"),
        ("DELETE FROM entry WHERE stream = 7 AND seq = 40", r"the entries of stream 7 (up to 40, 39 found)"),
        ("UPDATE payload SET body = x'00'", "payload 1 of n1/1 in stream 7"),
        ("DELETE FROM payload", "the set of payloads of stream 7"),
    ],
)
def test_damage_to_one_group_concerns_that_group_alone(tmp_path: Path, statement: str, what: str) -> None:
    """S2. The node starts; of the group it knows its promise and that it was a server, and gives nothing else."""
    group_of_entries(tmp_path)
    connection = sqlite3.connect(tmp_path / "state.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with opened(tmp_path) as store:
        damage = f"{tmp_path / 'state.db'}: {what} is not as it was written"
        assert StoredStream(promised=3, accepted=3, about=b"group", damage=damage) == store.stored.streams[7]
        assert (b"x",) == store.stored.streams[9].entries
        store.write([ForgetRecord(7), AboutRecord(7, b"group"), OpenRecord(7, 5, 0, (b"from the others",))])
    with opened(tmp_path) as store:
        assert StoredStream(5, 5, 0, (b"from the others",), about=b"group") == store.stored.streams[7]


@pytest.mark.parametrize("step", range(2))
def test_no_flipped_bit_is_ever_served(tmp_path: Path, step: int) -> None:
    """S2. Wherever it is: the file is refused, or the group is named and can be written anew, or nothing is missing.

    Forty places in a file, each with one bit of eight.
    """
    group_of_entries(tmp_path)
    with opened(tmp_path) as store:
        whole = store.stored.streams
    content = (tmp_path / "state.db").read_bytes()
    found = Counter[str]()
    for place in range(step * 17, len(content), len(content) // 40):
        torn = bytearray(content)
        torn[place] ^= 1 << place % 8
        copy = tmp_path / f"{place}"
        copy.mkdir()
        (copy / "state.db").write_bytes(torn)
        found[_after_damage(copy, whole)] += 1
    assert {"refused", "named", "whole"} == set(found)


def _after_damage(path: Path, whole: dict[int, StoredStream]) -> str:
    try:
        with opened(path) as store:
            streams = store.stored.streams
            bad = [stream for stream, log in streams.items() if log.damage]
            assert 0 not in bad
            assert whole.keys() == streams.keys()
            assert all(log == whole[stream] for stream, log in streams.items() if stream not in bad)
            for stream in bad:
                store.write([ForgetRecord(stream), AboutRecord(stream, b"anew"), OpenRecord(stream, 9, 0, (b"new",))])
        if bad:
            with opened(path) as store:
                assert {(b"new",)} == {store.stored.streams[stream].entries for stream in bad}
        return "named" if bad else "whole"
    except StateRefused:
        return "refused"


@pytest.mark.parametrize("bytes_left", [0, 50, 3_000, 8_192, 20_000])
def test_a_file_that_lost_its_end_is_refused(tmp_path: Path, bytes_left: int) -> None:
    """S2. Nothing of it is read as a shorter stream."""
    group_of_entries(tmp_path)
    os.truncate(tmp_path / "state.db", bytes_left)
    with pytest.raises(StateRefused, match=r"damaged|cannot be read"), opened(tmp_path):
        pass


def test_a_whole_promise_of_an_older_time_is_found(tmp_path: Path) -> None:
    """L2. An old block in place of a new one is valid by itself; the sum in the row of the node is not."""
    with opened(tmp_path) as store:
        store.write([PromiseRecord(7, 3)])
    connection = sqlite3.connect(tmp_path / "state.db")
    old = connection.execute("SELECT * FROM stream").fetchone()
    connection.close()
    with opened(tmp_path) as store:
        store.write([PromiseRecord(7, 8)])
    for statement, values in (
        ("REPLACE INTO stream VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", old),
        ("DELETE FROM stream", ()),
    ):
        connection = sqlite3.connect(tmp_path / "state.db")
        connection.execute(statement, values)
        connection.commit()
        connection.close()
        directory = StateDirectory(tmp_path)
        with pytest.raises(StateRefused, match="the table of streams"):
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


OPTIONS = (("daemon/limits.clients_max", "7", 40), ("daemon/log_level", "", 44))


def test_what_the_domain_says_of_options_is_read_again(tmp_path: Path) -> None:
    """MSG-13: the newest, at a start that comes before anybody can be asked."""
    assert OPTIONS == stored_after(tmp_path, [OptionsRecord(OPTIONS[:1])], [OptionsRecord(OPTIONS)]).options


def test_damaged_options_are_none_and_the_node_starts(tmp_path: Path) -> None:
    """They are no promise: the domain tells them again."""
    stored_after(tmp_path, [OptionsRecord(OPTIONS)])
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("UPDATE options SET body = ?", (b"[[1]]",))
    connection.close()
    assert () == stored_after(tmp_path).options


@pytest.mark.parametrize("body", [b"", b"[[1]]", b"[" * 5_000, b'[["\xff","",1]]'])
def test_options_that_are_none_are_left_out_though_their_checksum_is_right(tmp_path: Path, body: bytes) -> None:
    stored_after(tmp_path, [OptionsRecord(OPTIONS)])
    with closing(sqlite3.connect(tmp_path / "state.db")) as connection:
        connection.execute("UPDATE options SET body = ?, crc = ?", (body, crc32(body)))
        connection.commit()
    assert () == stored_after(tmp_path).options


def test_a_state_of_before_there_were_options_is_taken_up(tmp_path: Path) -> None:
    stored_after(tmp_path, [NodeRecord(7, DOMAIN)])
    with sqlite3.connect(tmp_path / "state.db") as connection:
        connection.execute("DROP TABLE options")
    connection.close()
    stored = stored_after(tmp_path, [OptionsRecord(OPTIONS)])
    assert (7, OPTIONS) == (stored.incarnation, stored.options)
