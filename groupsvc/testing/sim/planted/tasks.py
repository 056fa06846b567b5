"""Planted where a dead party's place is taken: in what is kept of rounds, in how far they are, and in tasks themselves.

What tasks do to take a place is not the core's, but the core's promises to them hold only if they do it in this order:
who was there before them is put out, then they ask. So there are bugs of theirs, too.
"""

from __future__ import annotations

from typing import Any

import attrs
from msgspec.structs import replace

from groupsvc.wire.client_messages import RoundIs
from groupsvc.wire.notices import Round
from groupsvcd.core.groups import gathering, kept_rounds, rounds, waiting_room
from groupsvcd.core.groups.round_over import CARRIED_BYTES_MAX
from groupsvcd.core.sessions import barriers

from ..application_tasks import Attempt
from .applications import BUSY
from .bug import Planted, instead
from .group_recovery import always

REPLACED = attrs.evolve(
    BUSY,
    nodes=5,
    seconds=20.0,
    applications=attrs.evolve(
        BUSY.applications, count=0, ranks=3, trouble_s=4.0, troubles=("app-kill", "app-break", "app-stop")
    ),
)
"""Tasks that often die or stand still, and are replaced; and nobody else."""


def _the_one_before(original: Any, self: Any, barrier: str, number: int) -> Any:
    return original(self, barrier, number - 1) or original(self, barrier, number)


def _keeps_none_in_checkpoints(original: Any, self: Any) -> Any:
    return replace(original(self), kept=())


def _keeps_little_of_much(original: Any, self: Any, round_: Any) -> None:
    arrived = tuple((one, payload[:CARRIED_BYTES_MAX]) for one, payload in round_.arrived)
    original(self, replace(round_, arrived=arrived))


def _passes_over_what_is_much(original: Any, self: Any, round_: Any) -> None:
    if all(len(payload) <= CARRIED_BYTES_MAX for _, payload in round_.arrived):
        original(self, round_)


def _answers_with_one_less(original: Any, self: Any) -> None:
    ask, group = self._ask, self._local.group
    if ask.resets and group.rounds.broken(ask.barrier) is None:
        number = max(0, group.rounds.next_round(ask.barrier) - 2)
        self._call.answer(RoundIs(ask.id, group.seq, Round(barrier=ask.barrier, number=number, end="reset")))
    else:
        original(self)


def _stops_at_a_death(original: Any, self: Any, here: Any) -> Any:
    opened = min(waiter.since for waiter in here.values())
    waits = any(waiter.on_failure == "wait" for waiter in here.values())
    if waits and any(seq > opened for seq, _ in self._group.rounds.deaths):
        return None
    return original(self, here)


def _puts_nobody_out(original: Any, self: Any, part: Any) -> Any:
    yield
    return True


TASKS = (
    Planted(
        "kept-round-of-before", "who asks for a round is told of the one before it", "a task takes it for the other",
        ("R5",), ((kept_rounds.KeptRounds, "find", always(_the_one_before)),), stage=REPLACED,
    ),
    Planted(
        "kept-not-in-checkpoints", "checkpoints are without the rounds that are kept",
        "a task on a node that is new in the group is told that they are not kept",
        ("R5",), ((rounds.Rounds, "stored", always(_keeps_none_in_checkpoints)),), stage=REPLACED, first_seed=3,
    ),
    Planted(
        "kept-little-of-much", "of what a party brought the beginning is kept", "who comes later has other parts",
        ("R5",), ((kept_rounds.KeptRounds, "keep", always(_keeps_little_of_much)),), stage=REPLACED,
    ),
    Planted(
        "kept-with-gaps", "a round to which somebody brought much is not kept", "a task goes on without it",
        ("R5",), ((kept_rounds.KeptRounds, "keep", always(_passes_over_what_is_much)),), stage=REPLACED,
    ),
    Planted(
        "task-is-told-one-less", "who asks how many rounds are over is told one less", "a round is done twice",
        ("R6",), ((barriers.Attendance, "_enter", always(_answers_with_one_less)),), stage=REPLACED,
    ),
    Planted(
        "task-puts-nobody-out", "a task does not expel an older attempt of its rank", "there are two of one rank",
        ("R6",), ((Attempt, "_replaces_others", always(_puts_nobody_out)),), stage=REPLACED,
    ),
    Planted(
        "task-asks-too-early", "a task asks how far the others are, and then expels an older attempt of its rank",
        "a round ends in between, with the older one",
        ("R6",), ((Attempt, "_replaces_others", instead(Attempt._looks_how_far)),
                  (Attempt, "_looks_how_far", instead(Attempt._replaces_others))), stage=REPLACED,
        first_seed=28,
    ),
    Planted(
        "task-is-not-waited-for-any-more", "a round that waits stays open once a party has died",
        "a task comes in its place, and nobody is released",
        ("R4",), ((gathering.Gathering, "_verdict", always(_stops_at_a_death)),), stage=REPLACED,
    ),
    Planted(
        "task-is-not-told-that-it-is-out", "who is put out while it waits at a barrier goes on waiting",
        "a task that was replaced does not learn it before its time is up",
        ("R4",), ((waiting_room.WaitingRoom, "drop", instead(lambda self, provider: None)),), stage=REPLACED,
    ),
)  # fmt: skip
