"""Who has said what already: numbers and answers per origin, so that a repeated command is done once.

Node B submits its command number 5 and the answer is lost on the way, or the name server dies. B submits
number 5 again. Whoever is name server then finds in this table that B's last number is 5 and gives the
answer that was given before. The table is a function of the entries: every voter has the same one, and it
is part of the checkpoint.

A row is forgotten when its incarnation can ask no more (gone, or a newer one is up), or when there are too
many rows, the longest silent first. Silence alone is no reason: a node that is up and asks once a week must
still find its number. Answers go with
their row; of the others the oldest go first when they are too many for one origin or too large in all.
Answers are kept as bytes: nobody can change one by accident, and they cost no garbage collection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from groupsvc.wire.codec import Reader

from ..views import NodeId
from .limits import ANSWERS_BYTES_MAX, ORIGINS_MAX

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_reader: Reader[dict[str, Any]] = Reader(dict[str, Any], "answer of the directory")


class OriginRow(NamedTuple):
    """The last number that came from an origin, and the entry it came in."""

    last_n: int
    seq: int


class StoredOrigin(msgspec.Struct, frozen=True, array_like=True):
    """A row and its kept answers (n, seq, bytes), as the checkpoint has them."""

    name: str
    incarnation: int
    last_n: int
    seq: int
    answers: tuple[tuple[int, int, bytes], ...]


def problem_with(stored: tuple[StoredOrigin, ...]) -> str:
    """Why these cannot be the rows of a checkpoint, or ""; raises ``PeerProtocolError`` if an answer cannot be read."""
    numbers: dict[tuple[str, int, int], None] = {}
    entries: dict[int, None] = {}
    count = 0
    for row in stored:
        for n, seq, answer in row.answers:
            _reader.read(answer)  # now, and not when somebody asks for it again
            numbers[row.name, row.incarnation, n] = None
            entries[seq] = None
            count += 1
    return "" if len(numbers) == count == len(entries) else "two answers have the same number, or are of the same entry"


class Origins:
    """The rows, longest silent first, and the answers, oldest first."""

    def __init__(self, answers_kept: int, stored: tuple[StoredOrigin, ...] = ()) -> None:
        self._answers_kept = answers_kept
        self.rows: dict[NodeId, OriginRow] = {}
        self._answers: dict[NodeId, dict[int, bytes]] = {}
        self._oldest: dict[int, tuple[NodeId, int]] = {}  # entry -> whose answer it gave, oldest first
        self._seq_of: dict[tuple[NodeId, int], int] = {}
        self._answers_bytes = 0
        for row in sorted(stored, key=lambda row: row.seq):
            self.rows[(row.name, row.incarnation)] = OriginRow(row.last_n, row.seq)
        kept = [((row.name, row.incarnation), *answer) for row in stored for answer in row.answers]
        for origin, n, seq, answer_bytes in sorted(kept, key=lambda line: line[2]):
            self._keep(origin, n, seq, answer_bytes)

    def answer_for(self, origin: NodeId, n: int) -> dict[str, Any] | None:
        """What was answered to number ``n``, if it is still kept."""
        kept = self._answers.get(origin, {}).get(n)
        return None if kept is None else _reader.read(kept)

    def record(self, origin: NodeId, n: int, seq: int, answer: dict[str, Any]) -> None:
        """Entry ``seq`` was number ``n`` of ``origin`` and got this answer."""
        self.rows.pop(origin, None)  # so that the row goes to the end: it is the least silent now
        self.rows[origin] = OriginRow(n, seq)
        self._keep(origin, n, seq, _encoder.encode(answer))
        while len(self._answers.get(origin, ())) > self._answers_kept:
            self._drop(origin, next(iter(self._answers[origin])))
        while self._answers_bytes > ANSWERS_BYTES_MAX:
            self._drop(*next(iter(self._oldest.values())))

    def make_room(self) -> None:
        """Forget the longest silent while there are too many."""
        while len(self.rows) > ORIGINS_MAX:
            self.forget(next(iter(self.rows)))

    def forget(self, origin: NodeId) -> None:
        """This incarnation can ask no more."""
        self.rows.pop(origin, None)
        for n in tuple(self._answers.get(origin, ())):
            self._drop(origin, n)

    def forget_older(self, name: str, incarnation: int) -> None:
        """A newer incarnation of ``name`` is up; none below it can ask any more."""
        for origin in [origin for origin in self.rows if origin[0] == name and origin[1] < incarnation]:
            self.forget(origin)

    def stored(self) -> tuple[StoredOrigin, ...]:
        """Everything, by name and incarnation."""
        return tuple(
            StoredOrigin(
                name=origin[0],
                incarnation=origin[1],
                last_n=self.rows[origin].last_n,
                seq=self.rows[origin].seq,
                answers=tuple(
                    (n, self._seq_of[origin, n], answer) for n, answer in self._answers.get(origin, {}).items()
                ),
            )
            for origin in sorted(self.rows)
        )

    def _keep(self, origin: NodeId, n: int, seq: int, answer: bytes) -> None:
        self._answers.setdefault(origin, {})[n] = answer
        self._oldest[seq] = (origin, n)
        self._seq_of[origin, n] = seq
        self._answers_bytes += len(answer)

    def _drop(self, origin: NodeId, n: int) -> None:
        answers = self._answers[origin]
        self._answers_bytes -= len(answers.pop(n))
        del self._oldest[self._seq_of.pop((origin, n))]
        if not answers:
            del self._answers[origin]
