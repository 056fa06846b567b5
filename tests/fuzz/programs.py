"""What programs tell each other through a group: writes to a table, its checkpoints, who a task of Spark is."""

from __future__ import annotations

import logging

from groupsvc.errors import PeerProtocolError
from groupsvc.events import Message
from groupsvc.spark.members import Member, encoded, member_of, parts_of, with_header
from groupsvc.tables import Table
from groupsvc.views import Provider
from groupsvcd.core.groups.archive import Archive
from tests.fuzz.family import Family

logging.getLogger("groupsvc.client").setLevel(logging.ERROR)  # a table says of each message that it is no write


def _table() -> Table:
    table = Table()
    for seq, payload in enumerate(WRITES, 1):
        table.apply(_message(seq, payload))
    return table


def _message(seq: int, payload: bytes) -> Message:
    return Message(None, payload, seq, "g", "n/1/1", None)  # type: ignore[arg-type]


WRITES = tuple(
    Table()._write(kind, key, value, expected)[1]  # type: ignore[arg-type]
    for kind, key, value, expected in (
        ("put", "a", b"1", None), ("put", "b", b"2", None), ("cas", "a", b"3", b"1"), ("delete", "b", None, None),
    )
)  # fmt: skip
BLOCKS = tuple(_table().snapshot())


def write_to_a_table(data: bytes) -> None:
    """A write, or nothing; in any case there is a table that can be read and handed on."""
    table = _table()
    before = table.copy()
    table.apply(_message(9, data))
    after = table.copy()
    assert len(before.keys() ^ after.keys()) <= 1
    again = Table()
    again.restore(tuple(table.snapshot()))
    assert again.copy() == after


def restore_a_table(data: bytes) -> None:
    """Refused, and it stays what it was; or the table of that block. ``on_change`` hears of nothing that is not so."""
    told: list[str] = []
    table = Table(on_change=lambda key, value: told.append(key))
    table.restore(BLOCKS)
    before, _ = table.copy(), told.clear()
    try:
        table.restore((data,))
    except PeerProtocolError:
        assert before == table.copy()
        assert not told
        return
    again = Table()
    again.restore(tuple(table.snapshot()))
    assert again.copy() == table.copy()


def store_a_block(data: bytes) -> None:
    """Daemons keep blocks of any machine, and do not look into them."""
    archive = Archive()
    archive.take_block(5, ("n", 1, 1), 3, 0, data)
    assert archive.seal(6, ("n", 1, 1), 3, 1)
    assert (data,) == Archive.of(archive.stored()).blocks


def read_a_task(data: bytes) -> None:
    """Somebody's data, or what he brings to a barrier."""
    member = member_of(Provider("n/1/1", "n", "", data, 1))
    assert member is None or isinstance(member.rank, int)
    try:
        rank, ended, payload = parts_of(data)
    except PeerProtocolError:
        return
    assert with_header(rank, ended, payload) == data


PROGRAMS = Family(
    name="programs",
    about="writes to tables, their blocks in checkpoints, what tasks of Spark show of themselves",
    decoders=(
        "groupsvc.tables:_write_reader",
        "groupsvc.tables:_rows_reader",
        "groupsvc.spark.members:member_of",
        "groupsvc.spark.members:parts_of",
    ),
    readers=(
        (write_to_a_table, WRITES),
        (restore_a_table, BLOCKS),
        (store_a_block, BLOCKS),
        (read_a_task, (encoded(Member(1, 0, "host", 2)), with_header(1, 2, b"payload"))),
    ),
)
