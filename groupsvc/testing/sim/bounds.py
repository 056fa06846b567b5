"""X1: every queue of an engine is bounded, and empty when there is nothing to do.

Looked at are the tables in which groups keep what others make them keep: submissions on their way, what waits behind a
large payload or beyond a gap, payloads without a number, writes. While faults last they keep to their limits; when
all is quiet and every member has delivered everything, nothing is left in them. What a node had on its way to a group
when it left it is given up. If it was large, the servers and the leader may keep it within the same limits: its bytes
may come after their origin has left, and nobody tells that nothing will follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from groupsvcd.core.nodegroups import leading, submitter
from groupsvcd.core.stream import intake, payloads

from .group_convergence import waiting_for_disks

if TYPE_CHECKING:
    from .world import World


def over_their_limits(world: World) -> Iterator[str]:
    """Tables that have grown larger than they may, as sentences."""
    for node, table, size, limit in _tables(world):
        if size > limit:
            yield f"{node} has {size} of {table}, and {limit} is the most it may have"


def left_over(world: World) -> Iterator[str]:
    """Tables that are not empty although there is nothing to do, as sentences."""
    for node, table, size, _ in _tables(world, carried_only=True):
        if size:
            yield f"nothing is to be done, and {node} still has {size} of {table}"


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
