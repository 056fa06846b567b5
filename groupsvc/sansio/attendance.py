"""What this program has seen of the others: who does not answer, since when, and who has come to which barrier.

A round breaks, and B and C are missing. That they are, and whether they answer, is in the end of the round, the same
for everybody. More than that each program knows by itself: B was announced as silent twelve seconds ago, and C was in
none of the rounds that were seen here. Whether C *never* came can be said only if no round was missed since C is a
provider: if all were seen from the first one of the barrier on, or from one that was before C. Else it is not known.

Rejected: to note in the stream who was in which round. Every checkpoint would carry it for every barrier, to be read by
nobody but those who look for an error.
"""

from __future__ import annotations

from collections.abc import Collection

import attrs

from ..wire.notices import ProviderId, Round

BARRIERS_MAX = 1_000
"""Of so many barriers of one group a program remembers who came; of the others it does not know."""

STRANGERS_MAX = 1_000
"""Who came and has left is remembered until there are so many more names than providers."""


@attrs.define
class _Seen:
    """The rounds of one barrier that this program was in."""

    first: int  # since then no number was missed
    first_seq: int  # the entry by which that one ended
    last: int
    came: set[ProviderId]


class Attendance:
    """Of one group, as one of its members saw it."""

    def __init__(self) -> None:
        self._silent: dict[ProviderId, float] = {}
        self._seen: dict[str, _Seen] = {}

    def responds(self, provider: ProviderId, *, does: bool, now: float) -> None:
        """It was announced that this one does not answer its daemon, or does so again."""
        if does:
            self._silent.pop(provider, None)
        else:
            self._silent.setdefault(provider, now)

    def has_left(self, providers: Collection[ProviderId]) -> None:
        """These are no providers any more."""
        for provider in providers:
            self._silent.pop(provider, None)

    def silent_since(self, provider: ProviderId) -> float | None:
        """When it was announced; None if it was not, or before this program was there."""
        return self._silent.get(provider)

    def ended(self, round_: Round, seq: int, providers: Collection[ProviderId]) -> None:
        """A round to which this program had come is over. It says nobody if it is none: nothing was to be reset."""
        if not round_.arrived:
            return
        seen = self._seen.pop(round_.barrier, None)
        if seen is None:
            seen = _Seen(round_.number, seq, round_.number, set())
        elif round_.number > seen.last + 1:
            seen.first, seen.first_seq = round_.number, seq
        seen.last = max(seen.last, round_.number)
        if len(seen.came) > len(providers) + STRANGERS_MAX:
            seen.came.intersection_update(providers)
        seen.came.update(provider for provider, _ in round_.arrived)
        if round_.broken_by in ("timeout", "cancelled", "mismatch"):
            seen.came.update(round_.who)  # they had come, to do that
        if len(self._seen) >= BARRIERS_MAX:
            del self._seen[next(iter(self._seen))]  # the longest unused
        self._seen[round_.barrier] = seen

    def ever_came(self, barrier: str, provider: ProviderId, joined_seq: int) -> bool | None:
        """Whether it has come to a round of this barrier, the newest that was seen here included; None: not known."""
        seen = self._seen.get(barrier)
        if seen is None:
            return None
        if provider in seen.came:
            return True
        return False if seen.first == 1 or joined_seq > seen.first_seq else None
