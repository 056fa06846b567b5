"""Liveness of barriers: in a world in which all is well, who comes to a barrier is released (R4).

Everybody resets every barrier, and comes to it once more. Then all but one wait at another one while those on the
leader's node say goodbye, so that somebody else leads: when the last one comes, all that are left are released. And
where a death breaks the round, the goodbye of one is enough for all.

Tasks come to a round of theirs, too. Then one of them says goodbye while all others wait, and another attempt of its
rank comes in its place: with that all are released. And another attempt comes while the first one waits: that one is
told at once that it is no member any more, and all others are released with the new one.

How soon, and that it is so, the checker sees in
the lines of these calls (``last``; ``ends`` if it is not to be released).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsvc.sansio import asking
from groupsvc.sansio.rounds import BarrierTerms

from .application import Application, Part
from .application_tasks import Attempt
from .carried_groups import processes_at
from .group_convergence import passing_away, waiting_for_disks

if TYPE_CHECKING:
    from .world import World

TIMEOUT_S = 10.0
"""Of the last calls; far more than they may need."""

WITHOUT_THE_LEADER = BarrierTerms("last", 0, "continue")
UNTIL_SOMEBODY_DIES = BarrierTerms("death", 0, "break")

Present = tuple[Application, Part]


def hold_last_rounds(world: World) -> None:
    """All of them, one after the other; a world without barriers has none."""
    barriers = world.applications.attendance.barriers
    for name, all_terms in sorted(barriers.items()):
        for terms in all_terms:
            _round(world, name, terms, resets=True)
            _round(world, name, terms, resets=False)
        if all_terms:
            _under_another_leader(world, name)
            _until_somebody_dies(world, name)
    if world.applications.stage.ranks:
        _hold_rounds_of_tasks(world)


def _present(world: World, name: str) -> list[Present]:
    """The providers of a group that is well."""
    if name in waiting_for_disks(world):
        return []
    found = [
        (app, part) for app in world.applications.all for part in app.parts.values()
        if part.name == name and part.is_ready and app.may_act
    ]  # fmt: skip
    return [] if any(passing_away(world, part.group) for _, part in found) else found


def _round(world: World, name: str, terms: BarrierTerms, *, resets: bool) -> None:
    present = _present(world, name)
    if not present or len(present) < terms.parties:
        return
    _come(world, present[: terms.parties or len(present)], terms, _next(world), resets=resets)
    _wait(world)


def _under_another_leader(world: World, name: str) -> None:
    present, leader = _present(world, name), _leader(world, name)
    others = [one for one in present if one[0].node.name != leader]
    if not leader or len(others) < 2 or len(others) == len(present):
        return
    number = _next(world)
    _come(world, others[1:], WITHOUT_THE_LEADER, number)
    world.run(until=world.t + 0.5)
    for app, part in present:
        if app.node.name == leader:
            _say_goodbye(app, part)
    if world.run_until(lambda: _leader(world, name) not in ("", leader), within=TIMEOUT_S / 2):
        world.applications.mark("barrier-across-leaders")
    if all(app.may_act and part.is_ready for app, part in others):
        _come(world, others[:1], WITHOUT_THE_LEADER, number)
    _wait(world)


def _until_somebody_dies(world: World, name: str) -> None:
    present = _present(world, name)
    if len(present) < 2:
        return
    *waiting, dying = present
    _come(world, waiting, UNTIL_SOMEBODY_DIES, _next(world), ends="broken")
    world.run(until=world.t + 0.5)
    _say_goodbye(*dying)
    _wait(world)


def _hold_rounds_of_tasks(world: World) -> None:
    stage = world.applications.stage
    stage.is_last = True
    if _are_all_seated(world) and _until_somebody_is_replaced(world):
        _until_somebody_is_put_out(world)
    stage.is_last = False


def _until_somebody_is_replaced(world: World) -> bool:
    stage = world.applications.stage
    for resets in (True, False):
        number = _next(world)
        for attempt in stage.seated:
            _come_as_task(attempt, number, resets=resets)
        _wait(world)
    *waiting, dying = stage.seated
    number = _next(world)
    for attempt in waiting:
        _come_as_task(attempt, number)
    assert dying.part is not None
    _say_goodbye(dying.app, dying.part)
    return _release_with_who_comes(world, waiting, number, "barrier-waited-for-a-replacement")


def _until_somebody_is_put_out(world: World) -> None:
    stage = world.applications.stage
    *waiting, _, replaced = stage.seated
    number = _next(world)
    for attempt in waiting:
        _come_as_task(attempt, number)
    _come_as_task(replaced, number, ends="not a member")
    stage.is_to_go = replaced
    _release_with_who_comes(world, waiting, number, "barrier-without-who-was-replaced")


def _release_with_who_comes(world: World, waiting: list[Attempt], number: int, mark: str) -> bool:
    """Those wait for others; all come who do not yet, as soon as there is one of each rank."""
    if not _are_all_seated(world):
        return False
    for attempt in world.applications.stage.seated:
        if attempt not in waiting:
            _come_as_task(attempt, number)
    _wait(world)
    world.applications.mark(mark)
    return True


def _are_all_seated(world: World) -> bool:
    """Whether one attempt of each rank has come in; in a world that is well that does not take long."""
    stage = world.applications.stage
    if world.run_until(lambda: stage.is_complete, within=TIMEOUT_S):
        return True
    here = [f"attempt {one.number} of rank {one.rank} on {one.app.name}" for one in stage.seated]
    world.found("R6", f"{TIMEOUT_S:.0f} s after all is well of {stage.ranks} tasks only these are there: {here}")
    return False


def _come_as_task(attempt: Attempt, number: int, *, resets: bool = False, ends: str = "") -> None:
    if attempt.part is not None and attempt.app.may_act and attempt.part.is_ready:
        attempt.come(attempt.part, 2 * TIMEOUT_S, resets=resets, last=number, ends=ends)
        attempt.app.turn()


def _say_goodbye(app: Application, part: Part) -> None:
    if app.machine is not None and part.is_open:
        start = asking.goodbye(app.machine, part.membership)
        app.call("say_goodbye", start, {"m": part.m}, TIMEOUT_S, lambda verdict, result: {}, group=part.group)
        app.turn()


def _come(
    world: World, those: list[Present], terms: BarrierTerms, number: int, *, resets: bool = False, ends: str = ""
) -> None:  # fmt: skip
    for app, part in those:
        world.applications.attendance.come(app, part, terms, TIMEOUT_S, resets=resets, last=number, ends=ends)
        app.turn()


def _wait(world: World) -> None:
    world.run_until(lambda: not any(app.open_calls for app in world.applications.all), within=2 * TIMEOUT_S)


def _leader(world: World, name: str) -> str:
    """The node that leads the group; "" if none does now."""
    for node in world.running:
        processes = processes_at(node)
        local = None if processes is None else processes.get(name)
        if processes is not None and local is not None and processes.leads(local):
            return node.name
    return ""


def _next(world: World) -> int:
    world.applications.attendance.last += 1
    return world.applications.attendance.last
