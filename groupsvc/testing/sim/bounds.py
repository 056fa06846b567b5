"""X1: every queue of an engine is bounded, and empty when there is nothing to do.

Looked at are the tables in which groups keep what others make them keep: submissions on their way, what waits behind a
large payload or beyond a gap, payloads without a number, writes. While faults last they keep to their limits; when
all is quiet and every member has delivered everything, nothing is left in them. What a node had on its way to a group
when it left it is given up. If it was large, the servers and the leader may keep it within the same limits: its bytes
may come after their origin has left, and nobody tells that nothing will follow.

The largest tables are what a group keeps of its past: log, payloads and the archive of its machines. They are not empty
at rest, and have limits of their own, at any time. Not so the log of a durable group, or of a group with machines on a
node that has none: nothing is dropped there before somebody comes who can make a checkpoint (docs/GUARANTEES.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from groupsvc.wire.limits import TAIL_MESSAGES_MIN, TAIL_TIMES_MAX
from groupsvcd.core.nodegroups import leading, submitter
from groupsvcd.core.stream import intake, payloads

from .application_convergence import calls_without_reason
from .group_convergence import waiting_for_disks

if TYPE_CHECKING:
    from .application import Application
    from .world import World

AT_REST_MAX = 20
"""What a session was told since its client last said how far it has counted, half a second ago."""


def over_their_limits(world: World) -> Iterator[str]:
    """Tables that have grown larger than they may, as sentences."""
    for node, table, size, limit in chain(_tables(world), _kept(world), _archives(world)):
        if size > limit:
            yield f"{node} has {size} of {table}, and {limit} is the most it may have"


def left_over(world: World) -> Iterator[str]:
    """Tables that are not empty although there is nothing to do, as sentences.

    What is left of nodes that are no members any more is not asked to be gone, but to be within the limits, as ever.
    """
    yield from over_their_limits(world)
    for node, table, size, _ in _tables(world, carried_only=True):
        if size:
            yield f"nothing is to be done, and {node} still has {size} of {table}"
    for node, table, size, limit in _tables_of_sessions(world):
        if size > limit:
            yield f"nothing is to be done, and {node} has {size} of {table}; {limit} would do"


def _tables_of_sessions(world: World) -> Iterator[tuple[str, str, int, int]]:
    """The same for sessions and what they have in groups: (node, table, how much is in it, how much may be at rest)."""
    waiting = waiting_for_disks(world)
    for name in world.names:
        engine: Any = world.nodes[name].engine
        sessions = getattr(engine, "sessions", None)
        if sessions is None:
            continue
        apps = [app for app in world.applications.all if app.node.name == name]
        here = [app for app in apps if app.is_running and app.machine is not None]
        yield name, "sessions", len(sessions._by_number), len(here)
        yield name, "connections with a session", len(sessions._by_connection), len(here)
        yield name, "connections that were left behind", len(sessions._left_behind), 0
        parts = sum(1 for app in here for part in app.parts.values() if part.name not in waiting)
        calls = sum(len(session.calls) for session in sessions._by_number.values())
        kept = [part for session in sessions._by_number.values() for part in session.parts.values()]
        asked = sum(_requests_that_wait(app, waiting) for app in here)
        yield name, "parts of sessions in groups", sum(getattr(one, "group", "") not in waiting for one in kept), parts
        yield name, "requests of sessions", calls, asked
        told = sum(len(session._tellings._kept) for session in sessions._by_number.values())
        yield name, "things that were told and not counted", told, AT_REST_MAX * len(here)
        yield name, "alarms", sessions.desk.alarms.live, 2 * len(here) + calls  # each request has one, for its time
        yield name, "ways from outside", len(sessions.desk.outside._ways), len(waiting)
        yield name, "names that are waited for", len(engine.processes.arrivals._waiting), len(waiting)
        for local in engine.processes._by_name.values():
            if local.name in waiting:
                continue
            of = f"group {local.name}"
            yield name, f"proposals of {of}", len(local._proposals), 0
            yield name, f"commands that wait for {of}", len(local._line), 0
            yield name, f"errands in {of}", len(local._errands), 0
            yield name, f"calls that wait at barriers of {of}", len(local.barriers._room._waiting), 0
            yield name, f"payloads on their way to barriers of {of}", len(local.barriers._bringing), 0
            gathering = local.barriers._gathering
            if gathering is not None:
                yield name, f"barriers of {of} where somebody waits", len(gathering._waiters), 0
                yield name, f"rulings about barriers of {of}", len(gathering._rule_at), 0
            mine = [provider for provider in local.group.providers if provider[:2] == engine.processes.me]
            yield name, f"processes in {of}", len(local._processes), len(mine)


def _requests_that_wait(app: Application, waiting: dict[str, int]) -> int:
    """What it has asked about groups that wait for their disks; a multicast or a flush is no request."""
    numbers = app.open_calls.keys() - set(calls_without_reason(app, waiting))
    return sum(1 for number in numbers if app.open_calls[number][0] not in ("multicast", "flush"))


def _tables(world: World, *, carried_only: bool = False) -> Iterator[tuple[str, str, int, int]]:
    """(node, table, how much is in it, its limit)."""
    waiting = waiting_for_disks(world).values() if carried_only else ()
    for name in world.names:
        groups: Any = world.nodes[name].groups
        if groups is None:
            continue
        origins = len(world.names) * 2  # of each node the present incarnation, and one that is about to fail
        yield name, "actions that wait for a lease", len(groups._waiting), 2 * len(groups._by_id) + 1
        for group_id, one in groups._submitters.items():
            if carried_only and group_id in waiting:
                continue
            of = f"group {group_id}"
            yield name, f"submissions to {of}", one.outstanding, submitter.OUTSTANDING_ENTRIES_MAX
            yield name, f"bytes submitted to {of}", one._bytes, submitter.OUTSTANDING_BYTES_MAX
        for group in groups._by_id.values():
            seat, of = group.seat, f"group {group.id}"
            if seat is None or group.id in waiting:
                continue
            pending, library = seat.replica.intake, seat.replica.library
            yield name, f"entries beyond a gap of {of}", len(pending._pending), intake.PENDING_ENTRIES_MAX
            yield name, f"bytes beyond a gap of {of}", pending._pending_bytes, intake.PENDING_BYTES_MAX
            unordered = library.payloads._unordered_bytes
            if carried_only:  # then those of members count
                unordered = sum(1 for one in library.payloads.unordered if one[:2] in group.roll.members)
            yield name, f"bytes without a number in {of}", unordered, payloads.UNORDERED_BYTES_MAX
            lead = seat.leading
            if lead is not None:
                unstable = lead.sequencer.next_seq - 1 - lead.server.stable
                most = leading.UNSTABLE_ENTRIES_MAX + submitter.SUBMIT_ENTRIES_MAX
                yield name, f"entries of {of} that are not stable", unstable, most
                is_counted = group.roll.members.__contains__ if carried_only else lambda origin: True
                in_line = sum(len(line) for origin, line in lead._waiting.items() if is_counted(origin))
                yield name, f"submissions in line of {of}", in_line, origins * submitter.OUTSTANDING_ENTRIES_MAX
                held = sum(1 for payload_id in lead._data_held if is_counted(payload_id[:2]))
                yield name, f"reports of payloads of {of}", held, origins * submitter.OUTSTANDING_ENTRIES_MAX


def _kept(world: World) -> Iterator[tuple[str, str, int, int]]:
    """The same for what is kept of streams.

    An entry that was delivered is kept until all have it, but not longer than ``history_entries_max`` others; then
    until the next checkpoint has been taken and advertised, and by a margin.
    """
    for name in world.names:
        groups: Any = world.nodes[name].groups
        for group in groups._by_id.values() if groups is not None else ():
            seat, of = group.seat, f"group {group.id}"
            if seat is None:
                continue
            copy, settings = seat.replica, group.settings
            log, library, retention = copy.log, copy.library, copy.retention
            referred = set(library._references.values())
            unknown = sum(1 for one in library.payloads._held if one not in referred)
            yield (
                name,
                f"payloads of {of} that are neither in its log nor waiting",
                unknown,
                len(library.payloads.unordered),
            )
            if settings.durable or not group.can_snapshot:
                continue
            at_once = 2 * retention.checkpoint_every + retention.margin + submitter.SUBMIT_ENTRIES_MAX
            kept = max(0, copy.delivered - log.base)
            yield name, f"entries of {of} that were delivered", kept, settings.history_entries_max + at_once
            size = log.bytes + library.payloads.bytes - library.payloads._unordered_bytes
            yield name, f"bytes in the log of {of}", size, settings.history_bytes_max + submitter.OUTSTANDING_BYTES_MAX


def _archives(world: World) -> Iterator[tuple[str, str, int, int]]:
    """The same for what new providers of groups with machines begin with."""
    for name in world.names:
        processes: Any = getattr(world.nodes[name].engine, "processes", None)
        for local in processes._by_name.values() if processes is not None else ():
            group, of = local.group, f"group {local.name}"
            archive = group.archive
            if archive is None:
                continue
            most = max(TAIL_MESSAGES_MIN, TAIL_TIMES_MAX * archive._messages_wanted(group.rules.checkpoint_every))
            yield name, f"messages in the archive of {of}", len(archive), most
            yield name, f"bytes of them in {of}", archive._bytes, TAIL_TIMES_MAX * archive._bytes_wanted
            covered = sum(1 for one in archive._tail if one[0] <= archive.begins)
            yield name, f"messages of {of} that its checkpoint has", covered, 0
            counted = sum(len(one[2]) for one in archive._tail)
            yield name, f"bytes of messages of {of} beyond those that are counted", counted - archive._bytes, 0
            yield name, f"drafts of checkpoints of {of}", len(archive._drafts), len(group.providers)
