"""What the leader does about barriers: it knows who waits, and rules when a round is over.

A leads. B's daemon says which of its providers have come to which round, again to a new leader and now and then until
the round has ended; so what is lost, doubled or late changes nothing. A round opens with the first who comes. It ends

- when everybody has come: all providers that live, or as many as the barrier takes, the first of them;
- when somebody's time is up, or it does not want to wait any more: the round breaks for all;
- when somebody dies, if the barrier is to break then. It counts if it had come, or is one of all providers, or if
  without it there are fewer providers than the barrier takes;
- when two say different things about the barrier, which is a mistake in a program: it breaks.

Nobody who lives is ever counted without having come (GS-35). None of this survives A: whoever leads next is told again
who waits, and since which entry, and the stream tells who died after that.

B may be ahead of A, since the second server to hold an entry delivers it first: whoever comes to a round, or since an
entry, that A has not seen is kept until A has.

A ruling that does not appear in the stream after a while is ordered again. One that did not fit is void, and the round
is looked at anew at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable

import attrs

from groupsvc.wire.limits import ROUND_BYTES_MAX
from groupsvc.wire.notices import BrokenBy, ProviderId, RoundEnd, Said

from ..views import NodeId
from . import commands as cmd
from .chair import RULE_AGAIN_S
from .commands import RoundEnded
from .papers import Waiter
from .process_group import ProcessGroup
from .rounds import in_order

Waiters = dict[ProviderId, Waiter]


@attrs.frozen
class Verdict:
    """How a round ends: who has arrived, how many it takes, and if it breaks, by what, and whose doing that is."""

    end: RoundEnd
    arrived: tuple[ProviderId, ...]
    parties: int  # 0: all providers
    broken_by: BrokenBy = ""
    who: tuple[ProviderId, ...] = ()
    said: tuple[Said, ...] = ()


class Gathering:
    """Who waits at the barriers of one group, while its node leads."""

    def __init__(self, group: ProcessGroup, order: Callable[[bytes], None]) -> None:
        self._group = group
        self._order = order
        self._waiters: dict[str, Waiters] = {}
        self._opened_at: dict[str, tuple[int, float]] = {}  # which round, and when its first one came
        self._rule_at: dict[str, float] = {}  # not before: a ruling is on its way

    def take(self, node: NodeId, waiters: Iterable[Waiter], now: float) -> None:
        """Providers of one node wait."""
        for waiter in waiters:
            provider = (*node, waiter.provider)
            here = self._waiters.setdefault(waiter.barrier, {})
            known = here.get(provider)
            if known is None or waiter.round > known.round or (waiter.round == known.round and not known.gives_up):
                here[provider] = waiter
            if waiter.round > self._opened_at.get(waiter.barrier, (0, 0.0))[0]:
                self._opened_at[waiter.barrier] = (waiter.round, now)
            if self._may_decide(waiter, here):
                self._look_at(waiter.barrier, now)

    def _may_decide(self, waiter: Waiter, here: Waiters) -> bool:
        """Whether the round may be over by this word; of many parties only the last one's matters, as a rule."""
        deaths = self._group.rounds.deaths
        return (
            len(here) >= (waiter.parties or self._group.living)
            or waiter.gives_up != ""
            or not _agree(waiter, next(iter(here.values())))
            or (bool(deaths) and deaths[-1][0] > waiter.since)
        )

    def look(self, ruled: Iterable[str], now: float) -> None:
        """After something was delivered, or time has passed: rule where there is something to rule on.

        ``ruled`` are the barriers about which a ruling was delivered, whether it fitted or not.
        """
        for barrier in ruled:
            self._rule_at.pop(barrier, None)
        for barrier in list(self._waiters):
            self._look_at(barrier, now)

    def _look_at(self, barrier: str, now: float) -> None:
        if now < self._rule_at.get(barrier, -math.inf):
            return
        self._rule_at.pop(barrier, None)
        group, number = self._group, self._group.rounds.next_round(barrier)
        known = self._waiters[barrier]
        for stale in [provider for provider, waiter in known.items() if waiter.round < number]:
            del known[stale]
        here = self._present(barrier, number)
        verdict = self._verdict(here) if here else None
        if verdict is None:
            for gone in [one for one in here if not group.has_a_say(one)]:
                del known[gone]  # its place is free again
            if not known:
                del self._waiters[barrier]
                self._opened_at.pop(barrier, None)
            return
        self._rule_at[barrier] = now + RULE_AGAIN_S
        waited = now - self._opened_at.get(barrier, (0, now))[1]
        self._order(cmd.encode(self._ruling(barrier, number, here, verdict, waited)))

    def _present(self, barrier: str, number: int) -> Waiters:
        """Who has come to this round, as far as we have followed the stream; with what it brings, unless it is dead."""
        group, rounds = self._group, self._group.rounds
        resets = rounds.broken(barrier) is not None
        return {
            one: waiter for one, waiter in self._waiters[barrier].items()
            if waiter.round == number and waiter.resets == resets and waiter.since <= group.seq
            and (not waiter.brought or rounds.has_brought(one, barrier, waiter.brought) or not group.has_a_say(one))
        }  # fmt: skip

    def _ruling(self, barrier: str, number: int, here: Waiters, verdict: Verdict, waited: float) -> RoundEnded:
        is_released = verdict.end == "released"  # else nobody gets what the others bring
        payloads = {one: here[one].payload if is_released else b"" for one in verdict.arrived}
        return RoundEnded(
            barrier=barrier, round=number, end=verdict.end, parties=verdict.parties,
            arrived=in_order(self._group.providers, payloads),
            brought=tuple([(one, here[one].brought) for one in verdict.arrived if is_released and here[one].brought]),
            broken_by=verdict.broken_by, who=verdict.who, said=verdict.said, waited=waited,
            keeps=is_released and here[verdict.arrived[0]].on_failure == "wait",  # all say the same
        )  # fmt: skip

    def _verdict(self, here: Waiters) -> Verdict | None:
        """How the round ends; None: not yet."""
        group = self._group
        providers, failing = group.providers, group.failing
        living = tuple([one for one in here if one in providers and one not in failing])
        first = here[living[0]] if living else next(iter(here.values()))
        given_up = [one for one in living if here[one].gives_up]
        if given_up:
            why = here[given_up[0]].gives_up
            for_that = tuple(one for one in given_up if here[one].gives_up == why)
            return Verdict("broken", living, first.parties, why, for_that)
        said_first = first.parties, first.on_failure
        others = tuple([one for one in living if (here[one].parties, here[one].on_failure) != said_first])
        if others:
            said = tuple((one, here[one].parties, here[one].on_failure) for one in (living[0], *others))
            return Verdict("broken", living, first.parties, "mismatch", others, said)
        if first.on_failure == "break" and not first.resets:
            lost = self._lost(here, first, living)
            if lost:
                return Verdict("broken", living, first.parties, *lost)
        if not living or len(living) < (first.parties or group.living):
            return None
        counted = living[: first.parties] if first.parties else living
        if sum([len(here[one].payload) for one in counted]) > ROUND_BYTES_MAX:
            return Verdict("broken", living, first.parties, "too_large")
        return Verdict("reset" if first.resets else "released", counted, first.parties)

    def _lost(
        self, here: Waiters, first: Waiter, living: Collection[ProviderId]
    ) -> tuple[BrokenBy, tuple[ProviderId, ...]] | None:
        """Whose end breaks the round."""
        group = self._group
        opened = min([waiter.since for waiter in here.values()])
        died = [one for seq, one in group.rounds.deaths if seq > opened]
        if first.parties and group.living >= first.parties:
            died = [one for one in died if one in here]
        if died:
            return "failure", tuple(died)
        return ("left", tuple(one for one in here if one not in living)) if len(living) < len(here) else None

    @property
    def deadline(self) -> float:
        """When a ruling is taken for lost."""
        return min(self._rule_at.values(), default=math.inf)


def _agree(one: Waiter, other: Waiter) -> bool:
    """Whether both say the same about the barrier."""
    return (one.parties, one.on_failure) == (other.parties, other.on_failure)
