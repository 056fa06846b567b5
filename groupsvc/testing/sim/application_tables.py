"""Tables that simulated applications keep: the library's own, and a line for whatever becomes of them.

A group whose providers bring machines has one table at each of them. After every message that a table has applied, and
after each checkpoint that it has become, a line ``table`` tells its digest. Every write says whose it is and which, as
every message does: a put and a compare-and-set in their value, a delete where a compare-and-set has what it expects.

A program that comes back to a group brings a new table, or the one that it has still, and asks for the messages since.
A checkpoint has a block for every two rows, so that some of it may be missing when its scribe dies.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from groupsvc.events import Message
from groupsvc.tables import Row, Rows, Write, _Waiting

from .application_ops import digest

KEYS = ("a", "b", "c", "d", "e", "f")
ROWS_PER_BLOCK = 2

_encoder = msgspec.msgpack.Encoder()
_writes = msgspec.msgpack.Decoder(Write)
_rows = msgspec.msgpack.Decoder(list[Row])

ARRAY_OF_FIVE = 0x95
"""The first byte of a write; no other message of an application begins with it."""

Line = Callable[[int, dict[str, Any]], None]
"""Writes down what became of a table with an entry."""


class SimulatedTable(Rows):
    """A table in the hands of a simulated application."""

    def __init__(self) -> None:
        super().__init__()
        self.group = 0  # the id of the group that it is of; 0: of none yet
        self.at = 0  # the entry that it stands after
        self.checkpoints: deque[int] = deque()  # after which entries those stand that it is about to become
        self.line: Line = lambda seq, args: None

    def begins(self, me: str, group: int, line: Line) -> None:
        """It belongs to this provider of this group from now on."""
        self._me, self.group, self.line = me, group, line
        self._waiting.clear()
        self.checkpoints.clear()

    # --- As a machine ---

    def apply(self, entry: Message) -> None:
        """A message; what is no write changes nothing, so the library is not asked to complain of it."""
        write = write_of(entry.payload)
        args: dict[str, Any] = {"did": "applied"}
        if write is not None:
            super().apply(entry)
            args["write"] = [write.kind, write.key, _text(write.value), _text(write.expected)]
            waiting = self._waiting.pop(write.number, None) if entry.origin == self._me else None
            if waiting is not None:
                args["result"] = waiting.result
        self.at = entry.seq
        self.line(entry.seq, {**args, "digest": self.digest})

    def snapshot(self) -> Iterable[bytes]:
        """The library's, in small blocks."""
        for block in super().snapshot():
            rows = _rows.decode(block)
            for first in range(0, len(rows), ROWS_PER_BLOCK):
                yield _encoder.encode(rows[first : first + ROWS_PER_BLOCK])

    def restore(self, blocks: Sequence[bytes]) -> None:
        """A checkpoint; after which entry it stands the driver has said."""
        super().restore(blocks)
        self.at = self.checkpoints.popleft()
        self.line(self.at, {"did": "restored", "blocks": len(blocks), "digest": self.digest})

    @property
    def digest(self) -> int:
        """Of all rows."""
        return table_digest({key: (_text(row.value) or "", row.version) for key, row in self._rows.items()})

    # --- Writes ---

    def next_write(self, name: str, rng: random.Random) -> bytes:
        """A message that changes it, or would if nobody else does; ``name`` is unlike any other."""
        key, unique = rng.choice(KEYS), name.encode()
        match rng.choices(("put", "cas", "delete"), (6, 3, 1))[0]:
            case "put":
                write, payload = self._write("put", key, unique)
            case "cas":
                expected = self.get(key) if rng.random() < 0.8 else None
                write, payload = self._write("cas", key, unique, expected)
            case _:
                write, payload = self._write("delete", key, None, unique)
        self._waiting[write.number] = _Waiting(0)
        return payload


def write_of(payload: bytes) -> Write | None:
    """What a message says if it is a write to a table."""
    return _writes.decode(payload) if payload and payload[0] == ARRAY_OF_FIVE else None


def name_of(payload: bytes) -> bytes:
    """By what a message is known: all of it, or what is unique in a write."""
    write = write_of(payload)
    return payload if write is None else (write.value or write.expected or b"")


def table_digest(rows: dict[str, tuple[str, int]]) -> int:
    """Of a table with these values and versions."""
    return digest([[key, *rows[key]] for key in sorted(rows)])


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("latin-1")
