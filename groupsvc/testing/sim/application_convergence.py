"""Liveness of applications: after everything is healed their sessions stand, and what they began has ended (G10, K1).

Nobody begins anything, and everybody votes for whatever is open. Then every call ends, no ballot runs, nobody waits for
a turn or for a window, nobody is failing, and nothing is on its way that somebody wanted who was told long ago that it
is not known what becomes of it: it may still expel whoever is asked to speak. Every process that runs has a session
that is CONNECTED, on a connection that is whole: who has not noticed a break yet has the worst of it before him. All
who are in a group see the same providers: themselves, and no ghosts; and no daemon keeps a session for a program that
might come back, as none will: a session that its program has given up is over when its grace is. Then each says one
thing more, flushes it, and catches up: all are told of it.

Groups that wait for their disks for ever are not asked for anything (see ``group_convergence``). A group whose quorum
is lost ends, and seems well until it does: nobody is asked to speak before those who were in it have been told. That
takes no longer than all else may: the wait is one of those that are bounded, and its end a failure (V7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groupsvc.sansio import asking
from groupsvc.session_states import SessionState
from groupsvc.views import text_of

from .application import Application, Part
from .carried_groups import processes_at
from .group_convergence import passing_away, waiting_for_disks
from .last_rounds import hold_last_rounds

if TYPE_CHECKING:
    from .world import World

TIMEOUT_S = 10.0
"""Of the last calls."""


def open_application_calls(world: World) -> int:
    """Calls that have not ended, and have no reason to wait."""
    if not world.applications.all:
        return 0
    waiting = waiting_for_disks(world)
    return sum(1 for app in world.applications.all for _ in calls_without_reason(app, waiting))


def calls_without_reason(app: Application, waiting: dict[str, int]) -> list[int]:
    """Those that have not ended, though they do not wait for a group that waits for its disks."""
    found = []
    for number, (_, args) in app.open_calls.items():
        part = app.parts.get(int(args.get("m", 0)))
        name = args.get("name") or (part.name if part is not None else "")
        if name not in waiting:
            found.append(number)
    return found


def application_disagreement(world: World) -> str:
    """What is not in order yet, as a sentence; "" if all is well."""
    waiting = waiting_for_disks(world)
    for app in world.applications.all:
        if not app.is_running:
            return f"{app.name} at {app.node.name} does not run"
        if app.machine is None or app.machine.state is not SessionState.CONNECTED:
            state = "has no session" if app.machine is None else f"is {app.machine.state.value}"
            return f"{app.name} at {app.node.name} {state}"
        if app.connection is not None and app.connection.is_broken:
            return f"{app.name} at {app.node.name} does not know yet that its connection is broken"
        for part in app.parts.values():
            if not part.membership.is_caught_up and part.name not in waiting:
                return f"{app.name} at {app.node.name} still catches up in {part.name}"
        if calls_without_reason(app, waiting):
            return f"{app.name} has {len(calls_without_reason(app, waiting))} calls open"
    return _unfinished(world, waiting) or _ghosts(world, waiting) or _in_what_ends(world, waiting) or _in_grace(world)


def _unfinished(world: World, waiting: dict[str, int]) -> str:
    for name in world.names:
        processes = processes_at(world.nodes[name])
        if processes is None:
            continue
        for local in processes._by_name.values():
            group = local.group
            if local.name in waiting or not local.is_in:
                continue
            if group.ballot is not None or group.queue or group.failing or len(local._line):
                return f"in {local.name} at {name} {group.ballot or group.queue or group.failing or 'commands'} wait"
            groups = world.nodes[name].groups
            if groups is not None and groups.outstanding(local.name):
                return f"{groups.outstanding(local.name)} submissions of {name} are on their way to {local.name}"
    return ""


def _ghosts(world: World, waiting: dict[str, int]) -> str:
    """Where a group has providers that nobody is, or somebody sees others than his fellows."""
    present: dict[str, list[str]] = {}
    parts = [(app, part) for app in world.applications.all for part in app.parts.values() if part.is_open]
    for _, part in parts:
        if part.membership.my_id is not None:
            present.setdefault(part.name, []).append(text_of(part.membership.my_id))
    for app, part in parts:
        if part.name in waiting:
            continue
        listed = sorted(provider.id for provider in part.membership.view.providers)
        if listed != sorted(present.get(part.name, [])):
            return f"{app.name} sees {listed} in {part.name}, where {sorted(present.get(part.name, []))} are"
    return ""


def _in_what_ends(world: World, waiting: dict[str, int]) -> str:
    """Who still is in a group that is about to end, or has ended."""
    for app in world.applications.all:
        for part in app.parts.values():
            if part.is_provider and part.is_open and part.group and part.name not in waiting:
                why = passing_away(world, part.group)
                if why:
                    return f"{app.name} is still in {part.name}, of which the directory says: {why}"
    return ""


def _in_grace(world: World) -> str:
    """Where a session has lost its connection; all programs are connected, so nobody will resume it."""
    for name in world.names:
        sessions: Any = getattr(world.nodes[name].engine, "sessions", None)
        for number, session in sessions._by_number.items() if sessions is not None else ():
            if not session.connection:
                return f"{name} still keeps session {number} of {session.name}, which has another one"
    return ""


def applications_converge(world: World, *, within: float) -> bool:
    """Wait, have everybody speak once more, wait; a failure is recorded in the world. True if all is well."""
    if not world.applications.all:
        return True
    if not _wait(world, within, "after everything was healed"):
        return False
    waiting = waiting_for_disks(world)
    speaking = [
        (app, part)
        for app in world.applications.all
        for part in app.parts.values()
        if part.is_ready and part.name not in waiting
    ]
    before = {app.name: app.calls for app, _ in speaking}  # what they wanted earlier may still fail
    for app, part in speaking:
        _speak(app, part)
    if not _wait(world, within, "after the last messages"):
        return False
    for app, part in speaking:
        if not part.is_open or part.sent or any(number > before[app.name] for number in app.failed_calls):
            world.found("B2", f"{app.name} at {app.node.name} could not speak, flush and catch up in {part.name}")
            return False
    hold_last_rounds(world)
    return not world.failures and _wait(world, within, "after the last rounds")


def _wait(world: World, within: float, when: str) -> bool:
    if world.run_until(lambda: not application_disagreement(world), within=within, every=0.25):
        return True
    if not world.failures:
        world.found("V7", f"{within:.0f} s {when} {application_disagreement(world)}")
    return False


def _speak(app: Application, part: Part) -> None:
    app.multicast(part, 1)
    app.flush(part, TIMEOUT_S)
    machine = app.machine
    assert machine is not None

    def caught_up(verdict: str, result: Any) -> dict[str, Any]:
        if verdict != "ok":
            return {}
        app.read_all()
        return {"seq": result, "version": part.membership.view.state_version}

    start = asking.sync(machine, part.membership)
    app.call("catch_up", start, {"m": part.m}, TIMEOUT_S, caught_up, group=part.group)
    app.turn()
