"""Liveness of groups: after everything is healed each group is whole again, in bounded time (V7, B2, B3).

Whole means: nobody is on its way in or out, all who carry a group name the same id, epoch, leader, servers and members,
the members are just those who carry it, one of them leads and has a view whose servers are among them, and all have
delivered the same number of entries. Nothing is on its way to any group, from members or strangers, and of none does
the directory say that it is held by a process that is no more. Then every program submits once more, and everybody who
takes part hears it.

A durable group of whose last view too many disks are lost, and which nobody leads, waits for them for ever
(docs/GUARANTEES.md): nothing is ordered there any more, so no failure, no leave and no outcome either. Nothing else can
be asked of it, by G10, K1, B2 and X1 as little as here. What these ask of others on the same nodes they ask as ever.
The same holds for a group in memory with ``on_quorum_lost="wait"``, once too many of its servers' processes have ended.
And the only node with a disk cannot leave one in which others take part: nobody else may hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsvcd.core.domain.directory import Directory
from groupsvcd.core.domain.groups import Group
from groupsvcd.core.nodegroups.group_status import GroupStatus
from groupsvcd.core.nodegroups.node_groups import NodeGroups
from groupsvcd.core.nodegroups.seat import Seat
from groupsvcd.core.views import NodeId

from .group_users import Member

if TYPE_CHECKING:
    from .world import World

Carried = dict[str, dict[NodeId, GroupStatus]]
"""By name of the group, by who carries it."""


def carried(world: World) -> Carried:
    """Every group on every node that runs."""
    groups: Carried = {}
    for name in world.names:
        node = world.nodes[name]
        if node.engine is not None and node.groups is not None:
            for status in node.groups.status():
                groups.setdefault(status.name, {})[name, node.engine.incarnation] = status
    return groups


def waiting_for_disks(world: World) -> dict[str, int]:
    """Names and ids of the durable groups whose active view has lost more disks than a recovery can do without.

    Not of those that somebody still leads: nothing is missing there until the next recovery. And those in memory that
    are to wait, and whose processes cannot be waited for; a leader that lives needs no more than k to go on, unless a
    payload of what it numbered is lost.
    """
    lost = [group for group in _durable_groups(world) if _spare(world, group) < 0]
    found = carried(world) if lost else {}
    waiting = [group for group in lost if not _is_led(found.get(group.name, {}), group.id)]
    waiting += [group for group in _groups_in_memory_that_wait(world) if _is_too_few(world, group)]
    return {group.name: group.id for group in waiting}


def _groups_in_memory_that_wait(world: World) -> list[Group]:
    directory = _directory(world)
    groups = directory.groups.all() if directory is not None else ()
    return [group for group in groups if group.on_quorum_lost == "wait" and not group.durable]


def _is_too_few(world: World, group: Group) -> bool:
    """Whether the processes that are left of the servers of its active view cannot go on, whatever happens."""
    view, engines = group.active, {name: world.nodes[name].engine for name in world.names}
    alive = [name for name, inc in view.servers if (engine := engines[name]) is not None and engine.incarnation == inc]
    needed = view.promises_its_leader_needs if _have_all(world, group, alive) else view.promises_needed
    return len(alive) < needed


def _have_all(world: World, group: Group, alive: list[str]) -> bool:
    """Whether the leader of the view is among these, and one of them has the payloads of all that it numbered."""
    seats = {name: _seat(world, name, group.id) for name in alive}
    leaders = seats.get(group.active.leader)
    if leaders is None:
        return False
    complete = (seat.replica.library.complete_upto for seat in seats.values() if seat is not None)
    return max(complete) >= leaders.replica.log.last


def _seat(world: World, name: str, group_id: int) -> Seat | None:
    groups = world.nodes[name].groups
    found = [] if groups is None else [group for group in groups._by_name.values() if group.id == group_id]
    return found[0].seat if found else None


def _is_led(group: dict[NodeId, GroupStatus], group_id: int) -> bool:
    return any(status.role == "leader" and status.id == group_id for status in group.values())


def spare_disks(world: World, group_id: int) -> int:
    """How many disks of the active view of a durable group a recovery can still do without; 0 if nobody knows."""
    return next((max(0, _spare(world, group)) for group in _durable_groups(world) if group.id == group_id), 0)


def _spare(world: World, group: Group) -> int:
    left = sum(1 for name, disk in group.active.servers if _is_whole(world, name, disk, group.id))
    return left - group.active.promises_needed


def passing_away(world: World, group_id: int) -> str:
    """Why a group is about to end or to be continued by force, or has just ended, as a sentence; "" if it is not."""
    directory = _directory(world)
    if directory is None:
        return "nobody knows whether it still is"
    group = directory.groups.get(group_id)
    if group is None:
        return "it has ended"
    if group.on_quorum_lost != "wait" and directory.groups.servers_gone(group) >= group.active.k:
        return "its quorum is lost"
    return ""


def _durable_groups(world: World) -> list[Group]:
    """Those that the directory knows."""
    directory = _directory(world)
    return [group for group in directory.groups.all() if group.durable] if directory is not None else []


def _directory(world: World) -> Directory | None:
    name_server = world.name_server()
    engine = world.nodes[name_server].engine if name_server else None
    return getattr(getattr(engine, "voter", None), "directory", None)


def cannot_leave(world: World, found: Carried) -> set[tuple[str, str]]:
    """(group, node) where a node is the only one with a disk among those who carry a durable group."""
    alone: set[tuple[str, str]] = set()
    for name in sorted(found.keys() & {group.name for group in _durable_groups(world)}):
        nodes = [node for node, _ in found[name]]
        disks = [node for node in nodes if world.nodes[node].parameters.durable]
        if len(disks) == 1 < len(nodes):
            alone.add((name, disks[0]))
    return alone


def _is_whole(world: World, name: str, state_id: int | str, group_id: int) -> bool:
    disk = world.nodes[name].disk
    log = disk.logs.get(group_id)
    return disk.state_id == state_id and not (log is not None and log.damage)


def open_group_calls(world: World) -> int:
    """Calls of programs that have not ended, and have no reason to wait."""
    return world.group_users.open_calls_except(frozenset(waiting_for_disks(world)))


def group_disagreement(world: World) -> str:
    """What is not whole yet in some group, as a sentence; "" if all is well."""
    found, waiting = carried(world), waiting_for_disks(world)
    alone = cannot_leave(world, found)
    for name in sorted(found.keys() - waiting.keys()):
        problem = _problem_with(found[name], {node for group, node in alone if group == name})
        if problem:
            return f"in group {name} {problem}"
    for member in world.group_users.members:
        if member.group and member.alive and not member.group_id and member.group not in waiting:
            return f"{member.name} at {member.node.name} is not in {member.group} yet"
    return _different_states(world) or _under_way(world, frozenset(waiting.values())) or _not_renewed(world)


def _under_way(world: World, waiting: frozenset[int]) -> str:
    """Who still has something on its way to a group, be it as a stranger; whoever waits for the answer or not."""
    for name in world.names:
        groups = world.nodes[name].groups
        for group_id, submitter in groups._submitters.items() if groups is not None else ():
            if submitter.outstanding and group_id not in waiting:
                return f"{submitter.outstanding} submissions of {name} are on their way to group {group_id}"
    return ""


def _not_renewed(world: World) -> str:
    """Which group has a server that is down: the others go on without it, or it ends; perhaps nobody carries it."""
    directory = _directory(world)
    if directory is None:
        return ""
    for group in directory.groups.all():
        for server in group.active.servers if group.on_quorum_lost != "wait" else ():
            if not directory.groups.is_server_up(group, server):
                return f"group {group.name} has neither ended nor gone on without {server[0]}/{server[1]}"
    return ""


def _different_states(world: World) -> str:
    """Machines that are equally far and have not the same state."""
    states: dict[tuple[str, int], dict[str, int]] = {}
    for member in world.group_users.members:
        if member.alive and member.group_id and member.chain is not None:
            states.setdefault((member.group, member.reached), {})[member.name] = member.chain.crc
    for (group, seq), found in sorted(states.items()):
        if len(set(found.values())) > 1:
            return f"in group {group} states differ after entry {seq}: {found}"
    return ""


def _problem_with(group: dict[NodeId, GroupStatus], alone: set[str]) -> str:
    for (node, _), status in group.items():
        if status.phase != "carrying" and not (status.phase == "leaving" and node in alone):
            return f"{node} is still {status.phase}"
        if status.role == "recovering":
            return f"{node} still recovers"
        if status.outstanding:
            return f"{node} has {status.outstanding} submissions on their way"
    for what in ("id", "epoch", "leader", "servers", "members", "delivered"):
        values = {node: getattr(status, what) for (node, _), status in group.items()}
        if len(set(values.values())) > 1:
            return f"they do not agree about {what}: {values}"
    leaders = [node for (node, _), status in group.items() if status.role == "leader"]
    first = next(iter(group.values()))
    if [first.leader] != leaders:
        return f"{leaders or 'nobody'} leads, but all name {first.leader or 'nobody'}"
    if set(first.members) != set(group):
        return f"the members are {first.members}, but it is carried by {sorted(group)}"
    serving = {node for (node, _), status in group.items() if status.role in ("leader", "server")}
    if set(first.servers) != serving:
        return f"the servers are {first.servers}, but {sorted(serving)} serve"
    return ""


def groups_converge(world: World, *, within: float) -> bool:
    """Wait, probe, wait; a failure is recorded in the world. True if all is well."""
    if not _wait_for_agreement(world, within, "after everything was healed"):
        return False
    for name, group_id in sorted(waiting_for_disks(world).items()):
        world.history.add(world.t, "disks_lost", group=group_id, args={"name": name})
    for member in _taking_part(world):
        member.node.call(lambda asked=member: _probe(asked))  # type: ignore[misc]
    if not world.run_until(lambda: not _unheard(world), within=within, every=0.25):
        if not world.failures:
            world.found("B2", f"{within:.0f} s after the last submission {_unheard(world)}")
        return False
    return _wait_for_agreement(world, within, "after the last submissions")


def _wait_for_agreement(world: World, within: float, when: str) -> bool:
    if world.run_until(lambda: not group_disagreement(world), within=within, every=0.25):
        return True
    if not world.failures:
        world.found("V7", f"{within:.0f} s {when} {group_disagreement(world)}")
    return False


def _taking_part(world: World) -> list[Member]:
    waiting = waiting_for_disks(world)
    return [
        member
        for member in world.group_users.members
        if member.alive and member.group_id and member.group not in waiting
    ]


def _probe(member: Member) -> None:
    groups: NodeGroups | None = member.node.groups
    if groups is not None and member.group_id and not member.submit(groups, 1):
        member.users.broken("B2", f"{member.name} cannot submit to {member.group}", member)


def _unheard(world: World) -> str:
    """Who still misses something of the probes; "" if nobody does."""
    for member in _taking_part(world):
        if member.open:
            return f"{member.name} at {member.node.name} has not seen {len(member.open)} of its own in {member.group}"
    reached: dict[int, int] = {}
    for member in _taking_part(world):
        if reached.setdefault(member.group_id, member.reached) != member.reached:
            return f"{member.name} has heard {member.reached} entries of {member.group}, others another number"
    return ""
