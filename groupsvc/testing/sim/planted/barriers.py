"""Planted at barriers: where the end of a round is decided, applied and told, and where arrivals are repeated."""

from __future__ import annotations

import math
from typing import Any

import attrs
from msgspec.structs import replace

from groupsvcd.core.groups import gathering, local_group, rounds, waiting_room
from groupsvcd.core.groups.round_over import RoundOver
from groupsvcd.core.sessions import barriers

from ..network import Weather
from .applications import CALM
from .bug import Planted, instead
from .group_recovery import always

MEETING = attrs.evolve(
    CALM, applications=attrs.evolve(CALM.applications, count=5, watch=0.0, think_s=0.3, burst=1, barriers=3)
)
"""Applications that meet at barriers, come and go, and have no other troubles."""

DYING = attrs.evolve(
    MEETING,
    seconds=20.0,
    applications=attrs.evolve(MEETING.applications, trouble_s=3.0, troubles=("app-kill", "app-break")),
)
"""And some that often die."""

HESITANT = attrs.evolve(
    MEETING,
    nodes=5,
    weather=Weather(delay_spread=0.3),
    applications=attrs.evolve(MEETING.applications, count=3, parts_max=1, think_s=0.05, barriers=3),
)
"""And some that hear of everything late."""


def _late_ones_count(original: Any, self: Any, node: Any, waiters: Any, now: float) -> None:
    """Who is said to wait for a round that is over waits for the next."""
    tagged = []
    for waiter in waiters:
        number = self._group.rounds.next_round(waiter.barrier)
        tagged.append(replace(waiter, round=number) if waiter.round < number else waiter)
    original(self, node, tagged, now)


def _fits_whoever_died(original: Any, ruling: Any, living: Any, *, is_broken: bool) -> bool:
    listed = {one for one, _ in ruling.arrived}
    return bool(original(ruling, {**dict.fromkeys(living), **dict.fromkeys(listed)}, is_broken=is_broken))


def _fits_whoever_joined(original: Any, ruling: Any, living: Any, *, is_broken: bool) -> bool:
    listed = {one for one, _ in ruling.arrived}
    return bool(
        original(ruling, living if ruling.parties else [one for one in living if one in listed], is_broken=is_broken)
    )


def _fits_broken_or_not(original: Any, ruling: Any, living: Any, *, is_broken: bool) -> bool:
    return bool(original(ruling, living, is_broken=False))


def _knows_since(original: Any, self: Any, group: Any, order: Any) -> None:
    original(self, group, order)
    self.began = group.seq


def _releases_those_before_it(original: Any, self: Any, here: Any) -> Any:
    found = original(self, here)
    living = tuple(one for one in here if self._group.has_a_say(one))
    first = next(iter(here.values()))
    if found is None and living and not first.parties and not first.resets and first.since < self.began:
        return gathering.Verdict("released", living, 0)
    return found


def _tells_once(original: Any, self: Any, now: float, send: Any) -> None:
    self.repeat_at = math.inf
    original(self, now, send)


def _in_another_order(original: Any, self: Any, over: RoundOver) -> None:
    if self._turn.node == "n2":
        over = RoundOver(over.seq, replace(over.round, arrived=tuple(reversed(over.round.arrived))))
    original(self, over)


def _gone_at_once(original: Any, self: Any, number: int, cause: Any) -> None:
    self.barriers.drop(number)
    original(self, number, cause)


BARRIERS = (
    Planted(
        "barrier-late-ones-count", "who is said to wait for a round that is over waits for the next",
        "one call counts for two rounds",
        ("R3",), ((gathering.Gathering, "take", always(_late_ones_count)),), stage=MEETING, first_seed=32,
    ),
    Planted(
        "barrier-the-dead-count", "a ruling is applied whoever has died since", "a dead party is released with others",
        ("R1",), ((rounds, "_fits", always(_fits_whoever_died)),), stage=DYING, first_seed=76,
    ),
    Planted(
        "barrier-newcomers-are-not-waited-for", "a ruling is applied whoever has joined since",
        "a provider is not waited for",
        ("R1",), ((rounds, "_fits", always(_fits_whoever_joined)),), stage=DYING, first_seed=9,
    ),
    Planted(
        "barrier-new-leader-knows-all", "a new leader takes those that it hears of for all",
        "somebody lives and had not come",
        ("R1",), ((gathering.Gathering, "__init__", always(_knows_since)),
                  (gathering.Gathering, "_verdict", always(_releases_those_before_it)),
                  (rounds, "_fits", always(_fits_whoever_joined))),
        faults=("kill-group-leader", "isolate-group-leader"), stage=attrs.evolve(MEETING, seconds=20.0), first_seed=11,
    ),
    Planted(
        "barrier-told-once", "a node tells who has come once, whoever leads", "a new leader waits for who has come",
        ("R4",), ((waiting_room.WaitingRoom, "hurry", instead(lambda self: None)),
                  (waiting_room.WaitingRoom, "send", always(_tells_once))),
        stage=MEETING,
    ),
    Planted(
        "barrier-a-death-is-nothing", "a round goes on whoever dies", "who wanted it to break is released",
        ("R4",), ((gathering.Gathering, "_lost", instead(lambda self, here, first, living: None)),), stage=DYING,
    ),
    Planted(
        "barrier-whole-by-itself", "a barrier that broke is used again without a reset", "some believe it broken",
        ("R2",), ((rounds.Rounds, "broken", instead(lambda self, barrier: None)),
                  (rounds, "_fits", always(_fits_broken_or_not))),
        stage=MEETING,
    ),
    Planted(
        "barrier-in-another-order", "one node lists who has come in its own order", "not one end for all",
        ("R2",), ((barriers.Attendance, "ended", always(_in_another_order)),), stage=MEETING,
    ),
    Planted(
        "barrier-gone-at-once", "who says goodbye while it waits has counted for no round, whatever is on its way",
        "it failed, and was counted",
        ("R3",), ((local_group.LocalGroup, "is_no_more", always(_gone_at_once)),), stage=HESITANT, first_seed=2,
    ),
)  # fmt: skip
