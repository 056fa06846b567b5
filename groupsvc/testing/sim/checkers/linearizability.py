"""Is there one order in which all calls on a register could have happened?

Each call takes effect at one moment between its invoke and its end. The search (Wing and Gong 1993, with
Lowe's memory of configurations) walks the invokes and ends in time order, tries each call that has begun as the
next one, and goes back when it meets the end of a call it has not placed. A configuration (which calls are
placed, what the register holds) that failed once is not tried again.

The register is a versioned one: a write names the version it replaces and gets a version of its own, higher
than any before. So the answers nearly dictate the order and the search rarely goes back. A read that fits changes
nothing and is never in the way of another call: it is placed as soon as it fits and tried nowhere else, so that
hundreds of reads at a time cost no more than one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

CONFIGURATIONS_MAX = 200_000
"""A search that remembers more is given up: no verdict, rather than no end."""


class Undecided(Exception):
    """The search was given up."""


@attrs.frozen
class Operation:
    """A call on the register between two moments; ``ended`` beyond all moments if it may take effect at any time."""

    began: int
    ended: int
    write: bool
    version: int  # the version written or read; 0 is the register never written
    replaces: int | None = None  # the version a write asks for; None if it takes any
    at: int = 0  # the event that shows its answer


def obstacle(operations: Sequence[Operation]) -> Operation | None:
    """None if the operations are linearizable, else the one whose end no order gets past."""
    moments = sorted(
        [(op.began, number, True) for number, op in enumerate(operations)]
        + [(op.ended, number, False) for number, op in enumerate(operations)]
    )
    after = [*range(1, len(moments) + 1), 0]  # the ring of moments; the last place is the head
    before = [len(moments), *range(len(moments))]
    head = len(moments)
    end_of = {number: place for place, (_, number, is_call) in enumerate(moments) if not is_call}

    def take(place: int) -> None:
        after[before[place]], before[after[place]] = after[place], before[place]

    def put_back(place: int) -> None:
        after[before[place]] = before[after[place]] = place

    placed, holds = 0, 0
    seen: set[tuple[int, int]] = set()
    path: list[tuple[int, int]] = []
    deepest, culprit = -1, None
    place = after[head]
    while after[head] != head:
        number, is_call = moments[place][1:]
        if is_call:
            result = _apply(operations[number], holds)
            configuration = (placed | 1 << number, -1 if result is None else result)
            if result is not None and configuration not in seen:
                if len(seen) >= CONFIGURATIONS_MAX:
                    raise Undecided
                seen.add(configuration)
                path.append((place, holds))
                placed, holds = configuration
                take(place)
                take(end_of[number])
                place = after[head]
            else:
                place = after[place]
            continue
        if len(path) > deepest:
            deepest, culprit = len(path), operations[number]
        while path:
            place, holds = path.pop()
            number = moments[place][1]
            placed &= ~(1 << number)
            put_back(end_of[number])
            put_back(place)
            if operations[number].write:
                break
        else:
            return culprit
        place = after[place]
    return None


def _apply(op: Operation, holds: int) -> int | None:
    """What the register holds afterwards, or None if the call could not have this answer now."""
    if not op.write:
        return holds if op.version == holds else None
    if op.replaces is not None and op.replaces != holds:
        return None
    return op.version if op.version > holds else None
