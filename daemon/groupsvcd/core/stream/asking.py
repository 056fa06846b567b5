"""Whom to ask for what is missing, and how soon: so that a hole shared by many does not become a storm (SAM-06).

An order is lost on its way to a hundred receivers. If all waited equally long and began with the same server, that one
would have a hundred questions at one moment, and the next one none. So everybody has a *place*: in the line of the
servers and then of all others that follow the stream, as they came, which all of them know. Who is at place 7 begins
with another server than who is at place 8, and a little sooner or later. The leader is asked when all other servers
were: it has the most to do.

Chance would do as well on the average. A place does it evenly each time, and nothing is drawn for a gap that is only a
reordering, as most are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

FIRST_ASK_SPREAD = 0.5
"""The first questions come within so much of ``repair_delay``, half of it before and half after: 15 to 25 ms. Wide
enough that a server answers one in between, and nobody waits much longer than it would alone."""

GOLDEN = 0.618_033_988_749_895
"""Multiples of it, taken modulo 1, lie evenly between 0 and 1, however many of them there are."""


def place_in(line: Iterable[str], me: str) -> int:
    """Where we stand in this line; who is not in it, because it came just now, has a place by its name."""
    for place, name in enumerate(line):
        if name == me:
            return place
    return crc32(me.encode())


def first_wait(repair_delay: float, place: int) -> float:
    """How long who is at this place waits before it asks for the first time; at place 0 that is ``repair_delay``."""
    return repair_delay * (1 + FIRST_ASK_SPREAD * ((place * GOLDEN + 0.5) % 1 - 0.5))


def in_turn(servers: Sequence[str], me: str, leader: str, place: int) -> list[str]:
    """The servers to ask, without the leader, beginning with the one that is the first for this place."""
    others = [name for name in servers if name not in (me, leader)]
    start = place % len(others) if others else 0
    return others[start:] + others[:start]


def whom_to_ask(servers: Sequence[str], me: str, leader: str, attempt: int, *more: str, place: int = 0) -> str:
    """The other servers in turn, the leader after all of them, and then whoever else may have it."""
    others = [*in_turn(servers, me, leader, place), leader]
    others += [name for name in more if name not in (me, *others)]
    return others[attempt % len(others)]
