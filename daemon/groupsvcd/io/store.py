"""The state of a node as tables: what the journal thread writes and a start reads.

Records are applied as ``core.records`` describes, many in one transaction, and one sync makes them all safe.
What is read at the next start is checked by more than SQLite's own rules, because a promise that silently
went backwards is worse than a node that does not start (S2):

- Every row carries a CRC-32 of its content and its place.
- The row of a stream knows its first and last entry and the sum of the CRCs between them, so a missing entry or
  one from an older time is noticed even though it is whole by itself.
- The row of the node knows the sum of the CRCs of all streams' rows, so a promise from an older time is noticed, too.
- SQLite treats a damaged write-ahead log as one that ends before the damage, which would silently undo synced
  transactions. So transactions are numbered, and after each sync the number is written to the file ``mark``
  as well, without a sync of its own: a state whose number is below the mark has lost something.

Reading goes through a read-only connection, so a refusal leaves the write-ahead log as evidence.

Damage to the domain stream, or to what says where a stream stands, keeps the node from starting, and so does a file
whose structure is damaged: what is written to it next might end anywhere. Damage to the entries of one group in a sound
file concerns that group alone: the node starts, says so, and does not speak as the server that had them.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import attrs
import msgspec

from groupsvc.wire.codec import UNREADABLE

from ..core.peer_messages import DOMAIN_STREAM
from ..core.records import (
    NO_DOMAIN,
    AboutRecord,
    AppendRecord,
    CheckpointRecord,
    DropPayloadsRecord,
    ForgetRecord,
    NodeRecord,
    OpenRecord,
    OptionsRecord,
    PayloadRecord,
    PromiseRecord,
    Record,
    Stored,
    StoredStream,
    StreamRecord,
)
from .state_directory import ADVICE, APPLICATION_ID, FORMAT_VERSION, StateDirectory, StateRefused

WAL_PAGES_MAX = 1_000
"""Pages in the write-ahead log (of 4 KiB) after which they are moved into the database."""

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
CREATE TABLE node (
    one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL, state_id TEXT NOT NULL,
    incarnation INTEGER NOT NULL, domain BLOB NOT NULL, transactions INTEGER NOT NULL, streams INTEGER NOT NULL,
    crc INTEGER NOT NULL
);
CREATE TABLE stream (
    stream INTEGER PRIMARY KEY, promised INTEGER NOT NULL, accepted INTEGER NOT NULL, base INTEGER NOT NULL,
    last INTEGER NOT NULL, sum INTEGER NOT NULL, checkpoint_seq INTEGER NOT NULL, about BLOB NOT NULL,
    payload_sum INTEGER NOT NULL, crc INTEGER NOT NULL
);
CREATE TABLE checkpoint (stream INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE entry (
    stream INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (stream, seq)
) WITHOUT ROWID;
CREATE TABLE payload (
    stream INTEGER NOT NULL, origin TEXT NOT NULL, incarnation INTEGER NOT NULL, n INTEGER NOT NULL,
    body BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (stream, origin, incarnation, n)
);
"""

_OPTIONS_TABLE = """
CREATE TABLE IF NOT EXISTS options (one INTEGER PRIMARY KEY CHECK (one = 1), body BLOB NOT NULL, crc INTEGER NOT NULL)
"""
"""What the domain says about options. It came after the others; a program that does not know it leaves it alone."""

_REPLACE_NODE = "REPLACE INTO node VALUES (1, ?, ?, ?, ?, ?, ?, ?)"

PayloadId = tuple[str, int, int]

_options = msgspec.json.Decoder(tuple[tuple[str, str, int], ...])
_mark = struct.Struct("!QI")
_place = struct.Struct("!QQ")
_MASK = 0xFFFFFFFF


@attrs.frozen
class NodeRow:
    """Who this is, how many transactions were written, and the sum of the checksums of the streams' rows."""

    name: str
    state_id: str
    incarnation: int = 0
    domain: bytes = NO_DOMAIN
    transactions: int = 0
    streams: int = 0

    def crc(self) -> int:
        """The checksum of the whole row."""
        numbers = f"{self.incarnation}\0{self.transactions}\0{self.streams}"
        text = f"{self.name}\0{self.state_id}\0{numbers}\0".encode()
        return crc32(self.domain, crc32(text))

    def values(self) -> tuple[Any, ...]:
        """What stands in the table."""
        return (*attrs.astuple(self), self.crc())


@attrs.frozen
class StreamRow:
    """Where one stream stands: entries ``base + 1`` to ``last``; the sums of checksums of entries and payloads."""

    stream: int
    promised: int = 0
    accepted: int = 0
    base: int = 0
    last: int = 0
    sum: int = 0
    checkpoint_seq: int = 0
    about: bytes = b""
    payload_sum: int = 0

    def crc(self) -> int:
        """The checksum of the whole row."""
        return crc32(repr(attrs.astuple(self)).encode())


def entry_crc(stream: int, seq: int, body: bytes) -> int:
    """The checksum of an entry and its place."""
    return crc32(body, crc32(_place.pack(stream, seq)))


def payload_crc(stream: int, payload_id: PayloadId, body: bytes) -> int:
    """The checksum of a payload and its place."""
    return crc32(body, crc32(repr((stream, *payload_id)).encode()))


class Store:
    """The open state of one node. Used by one thread at a time."""

    def __init__(self, directory: StateDirectory, node: str) -> None:
        self._directory = directory
        if directory.is_new:
            _make(directory, node)
        self.stored, self._node, self._streams = _read(directory, node)
        self._mark_fd = os.open(directory.path / "mark", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self.connection = _open(directory.database)
        except sqlite3.Error as error:
            raise StateRefused(f"{directory.database} cannot be opened for writing: {error}") from None

    def write(self, records: Iterable[Record]) -> None:
        """Apply ``records`` in one transaction and sync; all or nothing, also after an error."""
        node, streams = self._node, dict(self._streams)
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            changed: set[int] = set()
            forgotten: set[int] = set()
            for record in records:
                if isinstance(record, NodeRecord):
                    node = attrs.evolve(node, incarnation=record.incarnation, domain=record.domain)
                elif isinstance(record, OptionsRecord):
                    self._keep_options(record)
                elif isinstance(record, ForgetRecord):
                    self._forget(record.stream)
                    streams.pop(record.stream, None)
                    changed.discard(record.stream)
                    forgotten.add(record.stream)
                else:
                    row = streams.get(record.stream) or StreamRow(record.stream)
                    streams[record.stream] = self._apply(row, record)
                    changed.add(record.stream)
            gone = sum(self._streams[stream].crc() for stream in changed | forgotten if stream in self._streams)
            rows = [(*attrs.astuple(streams[stream]), streams[stream].crc()) for stream in sorted(changed)]
            total = (node.streams - gone + sum(crc for *_, crc in rows)) & _MASK
            node = attrs.evolve(node, transactions=node.transactions + 1, streams=total)
            connection.execute(_REPLACE_NODE, node.values())
            connection.executemany("REPLACE INTO stream VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._node, self._streams = node, streams
        os.pwrite(self._mark_fd, _packed_mark(node.transactions), 0)

    def tidy(self) -> None:
        """Move the write-ahead log into the database if it has grown long.

        SQLite would do so by itself inside a commit, but there it swallows errors of the disk; here they are
        raised like any other.
        """
        wal = self._directory.path / "state.db-wal"
        if wal.exists() and wal.stat().st_size > WAL_PAGES_MAX * 4096:
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Close the files; the directory stays under lock."""
        self.connection.close()
        os.close(self._mark_fd)

    # --- Applying one record --------------------------------------------------------------------------

    def _apply(self, row: StreamRow, record: StreamRecord) -> StreamRow:
        if isinstance(record, AppendRecord):
            return self._append(row, record.first_seq, record.entries)
        if isinstance(record, PromiseRecord):
            return attrs.evolve(row, promised=record.epoch)
        if isinstance(record, OpenRecord):
            row = self._cut_above(row, record.keep_upto)
            row = self._append(row, record.keep_upto + 1, record.entries)
            return attrs.evolve(row, promised=record.epoch, accepted=record.epoch)
        if isinstance(record, CheckpointRecord):
            return self._checkpoint(row, record)
        if isinstance(record, PayloadRecord):
            return self._keep_payload(self._drop_payload(row, record.payload_id), record)
        if isinstance(record, DropPayloadsRecord):
            for payload_id in record.payload_ids:
                row = self._drop_payload(row, payload_id)
            return row
        if isinstance(record, AboutRecord):
            return attrs.evolve(row, about=record.about)
        raise TypeError(f"no such record: {record!r}")

    def _keep_options(self, record: OptionsRecord) -> None:
        body = msgspec.json.encode(record.options)
        self.connection.execute("REPLACE INTO options VALUES (1, ?, ?)", (body, crc32(body)))

    def _forget(self, stream: int) -> None:
        for table in ("stream", "checkpoint", "entry", "payload"):
            self.connection.execute(f"DELETE FROM {table} WHERE stream = ?", (stream,))

    def _keep_payload(self, row: StreamRow, record: PayloadRecord) -> StreamRow:
        crc = payload_crc(row.stream, record.payload_id, record.payload)
        values = (row.stream, *record.payload_id, record.payload, crc)
        self.connection.execute("INSERT INTO payload VALUES (?, ?, ?, ?, ?, ?)", values)
        return attrs.evolve(row, payload_sum=(row.payload_sum + crc) & _MASK)

    def _drop_payload(self, row: StreamRow, payload_id: PayloadId) -> StreamRow:
        where = "FROM payload WHERE stream = ? AND origin = ? AND incarnation = ? AND n = ?"
        place = (row.stream, *payload_id)
        found = self.connection.execute(f"SELECT crc {where}", place).fetchone()
        if found is None:
            return row
        self.connection.execute(f"DELETE {where}", place)
        return attrs.evolve(row, payload_sum=(row.payload_sum - found[0]) & _MASK)

    def _append(self, row: StreamRow, first_seq: int, entries: tuple[bytes, ...]) -> StreamRow:
        if not entries:
            return row
        if first_seq != row.last + 1:
            raise ValueError(f"stream {row.stream} ends at {row.last}, entry {first_seq} does not follow it")
        numbered = enumerate(entries, start=first_seq)
        rows = [(row.stream, seq, body, entry_crc(row.stream, seq, body)) for seq, body in numbered]
        self.connection.executemany("INSERT INTO entry VALUES (?, ?, ?, ?)", rows)
        added = sum(crc for *_, crc in rows)
        return attrs.evolve(row, last=row.last + len(rows), sum=(row.sum + added) & _MASK)

    def _cut_above(self, row: StreamRow, keep_upto: int) -> StreamRow:
        if keep_upto >= row.last:
            if keep_upto > row.last:
                raise ValueError(f"stream {row.stream} ends at {row.last}, it cannot keep entries up to {keep_upto}")
            return row
        if keep_upto < row.base:
            raise ValueError(f"stream {row.stream} begins after {row.base}, it cannot be cut back to {keep_upto}")
        gone = self._delete(row.stream, keep_upto + 1, row.last)
        return attrs.evolve(row, last=keep_upto, sum=(row.sum - gone) & _MASK)

    def _checkpoint(self, row: StreamRow, record: CheckpointRecord) -> StreamRow:
        crc = entry_crc(record.stream, record.seq, record.state)
        values = (record.stream, record.seq, record.state, crc)
        self.connection.execute("REPLACE INTO checkpoint VALUES (?, ?, ?, ?)", values)
        if row.last < record.seq:
            self._delete(row.stream, row.base + 1, row.last)
            return attrs.evolve(row, base=record.seq, last=record.seq, sum=0, checkpoint_seq=record.seq)
        base = max(row.base, record.drop_upto)
        gone = self._delete(row.stream, row.base + 1, base)
        return attrs.evolve(row, base=base, sum=(row.sum - gone) & _MASK, checkpoint_seq=record.seq)

    def _delete(self, stream: int, first: int, upto: int) -> int:
        """Delete entries ``first`` to ``upto``; the sum of their checksums."""
        place = (stream, first, upto)
        where = "FROM entry WHERE stream = ? AND seq BETWEEN ? AND ?"
        gone = self.connection.execute(f"SELECT coalesce(sum(crc), 0) {where}", place).fetchone()[0]
        self.connection.execute(f"DELETE {where}", place)
        return int(gone)


# --- Making, opening, reading -----------------------------------------------------------------------


def _make(directory: StateDirectory, node: str) -> None:
    """A new state with an id of its own; complete on the disk before it has its name."""
    row = NodeRow(node, os.urandom(16).hex())
    try:
        connection = sqlite3.connect(directory.database_new, isolation_level=None)
        connection.executescript(f"PRAGMA synchronous = FULL; BEGIN; {_SCHEMA} COMMIT;")
        connection.execute(_REPLACE_NODE, row.values())
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        (directory.path / "mark").unlink(missing_ok=True)
        directory.publish_new()
    except (sqlite3.Error, OSError) as error:
        raise StateRefused(f"no state could be made in {directory.path}: {error}") from None


def _open(database: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 0", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}").fetchone()
    connection.execute("PRAGMA cache_size = -1024")
    connection.execute(_OPTIONS_TABLE)
    return connection


def _read(directory: StateDirectory, node: str) -> tuple[Stored, NodeRow, dict[int, StreamRow]]:
    database = directory.database
    try:
        connection = sqlite3.connect(f"file:{_quoted(database)}?mode=ro", uri=True, isolation_level=None)
        try:
            who = _read_node(connection, database, node)
            transactions = _marked(directory.path / "mark")
            if who.transactions < transactions:
                lost = transactions - who.transactions
                raise StateRefused(f"{database} has lost its last {lost} synced transactions. {ADVICE}")
            rows = [StreamRow(*row[:-1]) for row in _checked_streams(connection, database, who)]
            streams = {row.stream: _read_stream_or_damage(connection, database, row) for row in rows}
            options = _read_options(connection)
        finally:
            connection.close()
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise StateRefused(f"{database} cannot be read: {error}. {ADVICE}") from None
    stored = Stored(
        state_id=who.state_id, incarnation=who.incarnation, domain=who.domain, streams=streams, options=options
    )
    return stored, who, {row.stream: row for row in rows}


def _read_node(connection: sqlite3.Connection, database: Path, node: str) -> NodeRow:
    row = connection.execute(
        "SELECT name, state_id, incarnation, domain, transactions, streams, crc FROM node"
    ).fetchone()
    if row is None or NodeRow(*row[:-1]).crc() != row[-1]:
        raise _damaged(database, "the row of the node")
    who = NodeRow(*row[:-1])
    if who.name != node:
        raise StateRefused(f"{database} is the state of node {who.name}, and this is {node}; give each node its own")
    return who


def _read_options(connection: sqlite3.Connection) -> tuple[tuple[str, str, int], ...]:
    """What the domain said about options, if that can be read."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'options'").fetchone() is None:
        return ()
    row = connection.execute("SELECT body, crc FROM options").fetchone()
    if row is None or not isinstance(row[0], bytes) or crc32(row[0]) != row[1]:
        return ()
    return options_in(row[0])


def options_in(body: bytes) -> tuple[tuple[str, str, int], ...]:
    """The options in ``body``; if it is damaged, none: they are no promise, and will be told again."""
    try:
        return _options.decode(body)
    except UNREADABLE:
        return ()


def _checked_streams(connection: sqlite3.Connection, database: Path, who: NodeRow) -> list[tuple[Any, ...]]:
    columns = "stream, promised, accepted, base, last, sum, checkpoint_seq, about, payload_sum, crc"
    rows = connection.execute(f"SELECT {columns} FROM stream ORDER BY stream").fetchall()
    for row in rows:
        if StreamRow(*row[:-1]).crc() != row[-1]:
            raise _damaged(database, f"the row of stream {row[0]}")
    if sum(crc for *_, crc in rows) & _MASK != who.streams:
        raise _damaged(database, "the table of streams")
    return rows


def _read_stream_or_damage(connection: sqlite3.Connection, database: Path, row: StreamRow) -> StoredStream:
    """A damaged stream of a group is none of the others' business, if the file is sound otherwise."""
    try:
        return _read_stream(connection, row)
    except _Damage as damage:
        is_sound = connection.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",)
        if row.stream == DOMAIN_STREAM or not is_sound:
            raise _damaged(database, str(damage)) from None
        text = f"{database}: {damage} is not as it was written"
        return StoredStream(promised=row.promised, accepted=row.accepted, about=row.about, damage=text)


class _Damage(Exception):
    """What is not as it was written."""


def _read_stream(connection: sqlite3.Connection, row: StreamRow) -> StoredStream:
    entries: list[bytes] = []
    total = 0
    expected = row.base
    query = "SELECT seq, body, crc FROM entry WHERE stream = ? ORDER BY seq"
    for seq, body, crc in connection.execute(query, (row.stream,)).fetchall():
        expected += 1
        if seq != expected:
            raise _Damage(f"entry {expected} of stream {row.stream}, which is missing,")
        if not isinstance(body, bytes) or entry_crc(row.stream, seq, body) != crc:
            raise _Damage(f"entry {seq} of stream {row.stream}")
        entries.append(body)
        total += crc
    if expected != row.last or total & _MASK != row.sum:
        raise _Damage(f"the entries of stream {row.stream} (up to {row.last}, {expected} found)")
    checkpoint = b""
    if row.checkpoint_seq:
        found = connection.execute("SELECT seq, state, crc FROM checkpoint WHERE stream = ?", (row.stream,)).fetchone()
        if found is None or found[0] != row.checkpoint_seq or entry_crc(row.stream, found[0], found[1]) != found[2]:
            raise _Damage(f"the checkpoint of stream {row.stream}")
        checkpoint = found[1]
    return StoredStream(
        promised=row.promised,
        accepted=row.accepted,
        base=row.base,
        entries=tuple(entries),
        checkpoint_seq=row.checkpoint_seq,
        checkpoint=checkpoint,
        about=row.about,
        payloads=_read_payloads(connection, row),
    )


def _read_payloads(connection: sqlite3.Connection, row: StreamRow) -> dict[PayloadId, bytes]:
    payloads: dict[PayloadId, bytes] = {}
    total = 0
    query = "SELECT origin, incarnation, n, body, crc FROM payload WHERE stream = ? ORDER BY rowid"
    for origin, incarnation, n, body, crc in connection.execute(query, (row.stream,)).fetchall():
        payload_id = (origin, incarnation, n)
        if not isinstance(body, bytes) or payload_crc(row.stream, payload_id, body) != crc:
            raise _Damage(f"payload {n} of {origin}/{incarnation} in stream {row.stream}")
        payloads[payload_id] = body
        total += crc
    if total & _MASK != row.payload_sum:
        raise _Damage(f"the set of payloads of stream {row.stream}")
    return payloads


def _damaged(database: Path, what: str) -> StateRefused:
    return StateRefused(f"{database} is damaged: {what} is not as it was written. {ADVICE}")


def _packed_mark(transactions: int) -> bytes:
    return _mark.pack(transactions, crc32(transactions.to_bytes(8, "big")))


def _marked(path: Path) -> int:
    """The number in the mark; 0 if there is none or it did not survive a power loss whole."""
    try:
        content = path.read_bytes()[: _mark.size]
    except OSError:
        return 0
    if len(content) < _mark.size:
        return 0
    transactions, crc = _mark.unpack(content)
    return int(transactions) if crc == crc32(content[:8]) else 0


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
