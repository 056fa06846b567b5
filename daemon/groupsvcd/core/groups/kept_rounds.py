"""Rounds of barriers that the group keeps, for who takes the place of a dead party and must know what came before.

C dies in round 57, and D comes in its place: the ends of rounds 1 to 56 are here, as everybody has applied them. Which
rounds are kept is said by their rulings; how many, and which go first, follows from the entries alone, so all nodes
have the same. There is never a gap: what is kept of a barrier are its newest rounds.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupsvc.wire.notices import Round

KEPT_ROUNDS_MAX = 1_000
"""Of one group: a task that is replaced reads them one by one, and that should be done in a second."""

KEPT_BYTES_MAX = 32 * 1024 * 1024
"""As much as may be on its way to barriers; every node of the group has it, and it is in every checkpoint."""

PARTY_BYTES = 64
"""What is remembered of a party beside what it brought, roughly."""


class KeptRounds:
    """Those of one group, in the order in which they ended."""

    def __init__(self, stored: Iterable[Round] = ()) -> None:
        self._rounds: dict[tuple[str, int], Round] = {(one.barrier, one.number): one for one in stored}
        self._bytes = sum(map(_size, self._rounds.values()))

    def stored(self) -> tuple[Round, ...]:
        """For a checkpoint."""
        return tuple(self._rounds.values())

    def keep(self, round_: Round) -> None:
        """It has ended; others make room for it."""
        self._rounds[round_.barrier, round_.number] = round_
        self._bytes += _size(round_)
        while self._bytes > KEPT_BYTES_MAX or len(self._rounds) > KEPT_ROUNDS_MAX:
            self._bytes -= _size(self._rounds.pop(next(iter(self._rounds))))

    def find(self, barrier: str, number: int) -> Round | None:
        """How that round ended, if it is kept."""
        return self._rounds.get((barrier, number))

    def drop_all(self) -> None:
        """Rounds may have ended that are not known here, or nobody is left who could ask."""
        self._rounds, self._bytes = {}, 0


def _size(round_: Round) -> int:
    return sum(len(payload) + PARTY_BYTES for _, payload in round_.arrived)
