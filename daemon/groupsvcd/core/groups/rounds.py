"""The barriers of a process group as a function of its stream: which round of each was the last, and whether it broke.

A, B and C wait at a barrier. Who waits is known to the leader alone, and what becomes of a round is one entry, a ruling
(``RoundEnded``), which everybody applies here: it fits if it is about the next round, and if everybody whom it lists is
still there when it comes; for a barrier of all providers also if it lists them all. So somebody who died, or joined,
between the ruling and its place in the stream makes it void, and the leader rules anew. A round that fits has one end,
and its number never comes again: who came to it counts for it and for no other.

Who brings much brings it before it comes, as an entry of its own (``Bring``); so it travels as large messages do, and
the ruling only names it. It is kept until the round ends, or its party is no more.

A barrier that broke stays so until its parties have reset it, which is a round, too.

After a view that may have lost entries, numbers go on behind the fence of that view, which is higher than any before.

Of most barriers only the number of the last round is kept, and of barriers that were not used for long, nothing: the
highest number among those is kept for all, and who uses such a name again goes on behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from groupsvc.wire.notices import ProviderId, Round

from .commands import RoundEnded
from .kept_rounds import KeptRounds

BARRIERS_KEPT = 1_000
"""Barriers of one group whose last round is known; and so many broken ones there may be."""

DEATHS_KEPT = 64
"""The newest deaths: whether one came while a round was open decides how that ends, whoever leads then."""


BROUGHT_BYTES_MAX = 32 * 1024 * 1024
"""What is brought to all barriers of a group and waits for the end of a round: every member keeps it."""


class StoredRounds(msgspec.Struct, frozen=True, array_like=True):
    """All barriers in a checkpoint."""

    last: tuple[tuple[str, int], ...]
    broken: tuple[Round, ...]
    floor: int
    deaths: tuple[tuple[int, ProviderId], ...]
    brought: tuple[tuple[ProviderId, str, int, bytes], ...] = ()
    kept: tuple[Round, ...] = ()


class Rounds:
    """All barriers of one group."""

    def __init__(self, stored: StoredRounds | None = None) -> None:
        self._last: dict[str, int] = {} if stored is None else dict(stored.last)  # the longest unused first
        self._broken: dict[str, Round] = {} if stored is None else {one.barrier: one for one in stored.broken}
        self._floor = 0 if stored is None else stored.floor
        self.deaths: list[tuple[int, ProviderId]] = [] if stored is None else list(stored.deaths)
        self._brought: dict[tuple[ProviderId, str], tuple[int, bytes]] = {
            (provider, barrier): (number, payload)
            for provider, barrier, number, payload in (() if stored is None else stored.brought)
        }
        self.kept = KeptRounds() if stored is None else KeptRounds(stored.kept)
        self.brought_now: list[tuple[ProviderId, str, int]] = []  # since somebody looked
        self.ended: list[tuple[int, Round]] = []  # since somebody looked, with the entry
        self.renumbered = 0  # how often rounds that were open have got other numbers
        self.ruled: set[str] = set()  # where a ruling was applied since somebody looked, whether it fitted or not

    def stored(self) -> StoredRounds:
        """For a checkpoint."""
        brought = tuple((*key, *what) for key, what in self._brought.items())
        return StoredRounds(
            tuple(self._last.items()),
            tuple(self._broken.values()),
            self._floor,
            tuple(self.deaths),
            brought,
            self.kept.stored(),
        )

    @property
    def has_news(self) -> bool:
        """Whether something was brought, or a ruling applied, since somebody looked."""
        return bool(self.ruled or self.brought_now)

    def next_round(self, barrier: str) -> int:
        """The number of the round that is open, or the next one to be opened."""
        return self._last.get(barrier, self._floor) + 1

    def broken(self, barrier: str) -> Round | None:
        """The round in which it broke, unless it was reset since."""
        return self._broken.get(barrier)

    def has_room_for(self, barrier: str) -> bool:
        """Whether somebody may come there: not to a new one, if too many are broken and nobody resets them."""
        return barrier in self._last or len(self._broken) < BARRIERS_KEPT

    def died(self, seq: int, provider: ProviderId) -> None:
        """A provider is no more."""
        self.deaths = [*self.deaths[1 - DEATHS_KEPT :], (seq, provider)]

    def bring(self, provider: ProviderId, barrier: str, number: int, payload: bytes) -> None:
        """A provider brings something, in the place of what it brought there before; unless there is too much.

        Nothing: it takes back what it brought under this number, and nothing that it has brought since.
        """
        if not payload and not self.has_brought(provider, barrier, number):
            return
        self._brought.pop((provider, barrier), None)
        if not payload:
            return
        if len(payload) + sum(len(one) for _, one in self._brought.values()) <= BROUGHT_BYTES_MAX:
            self._brought[provider, barrier] = (number, payload)
        self.brought_now.append((provider, barrier, number))

    def has_brought(self, provider: ProviderId, barrier: str, number: int) -> bool:
        """Whether that is kept here; 0 is nothing."""
        return not number or self._brought.get((provider, barrier), (0, b""))[0] == number

    def is_out(self, provider: ProviderId) -> None:
        """This is no provider any more."""
        self._brought = {key: what for key, what in self._brought.items() if key[0] != provider}

    def apply(
        self, seq: int, ruling: RoundEnded, living: Collection[ProviderId], unresponsive: Collection[ProviderId]
    ) -> None:
        """A round is over, if that still fits."""
        barrier = ruling.barrier
        self.ruled.add(barrier)
        if ruling.round != self.next_round(barrier) or not _fits(ruling, living, is_broken=barrier in self._broken):
            return
        if not all(self.has_brought(provider, barrier, number) for provider, number in ruling.brought):
            return
        self._last.pop(barrier, None)
        self._last[barrier] = ruling.round
        brought = {provider: self._brought[provider, barrier][1] for provider, number in ruling.brought if number}
        arrived = {provider: brought.get(provider, payload) for provider, payload in ruling.arrived}
        is_broken = ruling.end == "broken"
        round_ = Round(
            barrier=barrier, number=ruling.round, end=ruling.end, parties=ruling.parties,
            arrived=tuple(arrived.items()),
            broken_by=ruling.broken_by, who=ruling.who, said=ruling.said, waited=ruling.waited,
            missing=tuple((one, one not in unresponsive) for one in living if is_broken and one not in arrived),
        )  # fmt: skip
        if is_broken:
            self._broken[barrier] = round_
        else:
            self._broken.pop(barrier, None)
        if ruling.keeps and ruling.end == "released":
            self.kept.keep(round_)
        for provider in arrived if not is_broken else living:
            self._brought.pop((provider, barrier), None)
        self.ended.append((seq, round_))
        self._forget_some()

    def _forget_some(self) -> None:
        while len(self._last) - len(self._broken) > BARRIERS_KEPT:
            barrier = next(one for one in self._last if one not in self._broken)
            self._floor = max(self._floor, self._last.pop(barrier))
            self.renumbered += 1

    def go_on_from(self, number: int) -> None:
        """Rounds may have ended that are not in this log: whatever their numbers were, they do not come again."""
        self._floor = max(self._floor, number)
        self._last = {barrier: max(last, number) for barrier, last in self._last.items()}
        self.kept.drop_all()
        self.renumbered += 1

    def start_again(self) -> None:
        """The last provider has left: whoever joins now finds no barrier broken, and no number used twice."""
        self._floor = max((self._floor, *self._last.values()))
        self._last, self._broken, self.deaths, self._brought = {}, {}, [], {}
        self.kept.drop_all()


def _fits(ruling: RoundEnded, living: Collection[ProviderId], *, is_broken: bool) -> bool:
    if ruling.end == "broken":
        return True
    arrived = [provider for provider, _ in ruling.arrived]
    if (ruling.end == "reset") != is_broken or not all(map(living.__contains__, arrived)):
        return False
    return len(arrived) == (ruling.parties or len(living))


def in_order(providers: Iterable[ProviderId], arrived: dict[ProviderId, bytes]) -> tuple[tuple[ProviderId, bytes], ...]:
    """Who has arrived, the oldest provider first; who is none any more stands behind."""
    known = [one for one in providers if one in arrived]
    others = sorted(arrived.keys() - set(known))
    return tuple([(one, arrived[one]) for one in (*known, *others)])
