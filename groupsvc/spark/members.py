"""What the tasks at a barrier tell of themselves, and how they are spoken of.

A member shows its rank, its attempt, its host and its stage to the others (``Provider.data``), so that whoever comes
later knows who is older, and whether that is of the same job. What it brings to a round has its rank and the number of
the round before it: two tasks that are at different steps of their loops should hear that, and not average their parts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import attrs
import msgspec

from ..errors import PeerProtocolError
from ..views import Provider

_header = struct.Struct(">IQ")


@attrs.frozen
class Member:
    """One attempt of the task with this rank."""

    rank: int
    attempt: int
    host: str
    stage: int

    def __str__(self) -> str:
        return f"partition {self.rank} (task attempt {self.attempt} on {self.host})"


def encoded(member: Member) -> bytes:
    """For the others to see."""
    return msgspec.msgpack.encode((member.rank, member.attempt, member.host, member.stage))


def member_of(provider: Provider) -> Member | None:
    """Who that is; None if it is no task."""
    try:
        return Member(*msgspec.msgpack.decode(provider.data, type=tuple[int, int, str, int]))
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError):
        return None


def members_of(providers: Iterable[Provider]) -> dict[str, Member]:
    """All tasks among them, by the ids of their providers."""
    found = {one.id: member_of(one) for one in providers}
    return {id: member for id, member in found.items() if member is not None}


def with_header(rank: int, ended: int, payload: bytes) -> bytes:
    """What a task brings: ``ended`` rounds are over as far as it knows."""
    return _header.pack(rank, ended) + payload


def parts_of(brought: bytes) -> tuple[int, int, bytes]:
    """Rank, rounds that are over, and what it brought."""
    if len(brought) < _header.size:
        raise PeerProtocolError("somebody who is no Spark task has come to the barrier of Spark tasks")
    rank, ended = _header.unpack_from(brought)
    return rank, ended, brought[_header.size :]


def ranges(ranks: Iterable[int]) -> str:
    """Many numbers in few words: "partitions 0, 2–7"."""
    numbers = sorted(set(ranks))
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in spans]
    return f"partition{'s' if len(numbers) != 1 else ''} {', '.join(texts)}"
