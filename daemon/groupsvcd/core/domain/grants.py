"""The name server's care for the groups: every grant reaches its leader, and no group is left without one.

All of it is level-triggered. What the directory says is compared with what was done about it; a lost message, a new
name server, a leader that was away at the wrong moment change nothing in the end.

- A granted view is told to its leader until it is active or replaced.
- A granted view with a server that does not carry the group, or has lost what it had of it, is replaced by another.
- Servers that complain of one leader at one time, as many as could hide nothing stable from a successor, get another;
  also if that leader has been granted another view, and for long has not been able to open it.
- A group whose quorum is lost for ever goes on with what is left, or ends: as its attribute ``on_quorum_lost`` says.
- A node that speaks of a group as it was is told how it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from ..parameters import Timers
from ..peer_messages import Grant, GroupIs, PeerMessage
from ..turn import Turn
from ..views import NodeId, Server, View
from .commands import AnyCommand, ContinueGroup, DropGroup, ProposeView
from .groups import Group

if TYPE_CHECKING:
    from .directory import Directory

COMPLAINTS_WITHIN_S = 1.0
"""Complaints about one leader count together if they come within this time."""


@attrs.define
class _Told:
    epoch: int
    since: float
    next_at: float
    wait: float


@attrs.define
class _PassedOn(_Told):
    unable: set[NodeId] = attrs.field(factory=set)  # as long as they are not started anew


class Grants:
    """One name server's care, in one term of office."""

    def __init__(
        self, turn: Turn, directory: Directory, timers: Timers, me: Callable[[], NodeId], *,
        order: Callable[[AnyCommand], None], tell: Callable[[str, PeerMessage], None],
    ) -> None:  # fmt: skip
        self.turn = turn
        self.directory = directory
        self._timers = timers
        self._me = me
        self._order = order
        self._tell = tell
        self._told: dict[int, _Told] = {}
        self._passed_on: dict[int, _PassedOn] = {}  # by the epoch of the active view: because somebody was unable
        self._complaints: dict[int, dict[str, tuple[int, float]]] = {}
        self._orphans: dict[int, dict[NodeId, tuple[int, int]]] = {}
        self._lost_since: dict[int, float] = {}
        self._applied = -1
        self.deadline = math.inf

    # --- Grants ---

    def look(self) -> None:
        """Tell every pending view to its leader, when it is new and again from time to time."""
        now = self.turn.now
        changed = self.directory.applied != self._applied
        if not changed and now < self.deadline:
            return
        self._applied = self.directory.applied
        self.deadline = math.inf
        pending = self.directory.pending_grants()
        for group in pending:
            assert group.pending is not None
            told = self._told.get(group.id)
            if told is None or told.epoch != group.pending.epoch:
                told = _Told(group.pending.epoch, now, -math.inf, self._timers.repeat_first)
                self._told[group.id] = told
            if now >= told.next_at:
                told.next_at = now + told.wait
                told.wait = min(2 * told.wait, self._timers.repeat_max)
                grant = Grant(group.id, group.name, group.attributes, group.pending, group.active)
                self._tell(group.pending.leader, grant)
            self.deadline = min(self.deadline, told.next_at)
        if len(self._told) > 2 * len(pending):
            kept = {group.id for group in pending}
            self._told = {group_id: told for group_id, told in self._told.items() if group_id in kept}
            self._passed_on = {group_id: passed for group_id, passed in self._passed_on.items() if group_id in kept}

    # --- Complaints ---

    def on_complaint(self, sender: NodeId, group_id: int, epoch: int, *, unable: bool = False) -> None:
        """A server does not hear the leader of its group, or has not what it takes to be one."""
        group = self.directory.groups.get(group_id)
        if group is None or epoch < group.active.epoch:
            self.correct(sender[0], group_id, group)
            return
        server = self.directory.groups.server_of(sender[0], group.durable)
        pending, view = group.pending, group.active
        if unable:
            if pending is not None and epoch == pending.epoch and server in pending.servers:
                self._grant_without(group, pending, sender)
            return
        if epoch != view.epoch or server not in view.servers or sender[0] == view.leader or self._is_under_way(group):
            return
        complaints = self._complaints.setdefault(group_id, {})
        complaints[sender[0]] = (epoch, self.turn.now)
        recent = [
            name
            for name, (of, at) in complaints.items()
            if of == epoch and self.turn.now - at <= COMPLAINTS_WITHIN_S and name in view.names
        ]
        if len(recent) < view.promises_needed:
            return
        servers = tuple(
            one for one in view.servers if one[0] != view.leader and self.directory.groups.is_server_up(group, one)
        )
        leader = next((name for name, _ in servers if name in recent), "")
        if leader:
            del self._complaints[group_id]
            self.turn.mark("group-complaint")
            k = min(group.k_wanted, len(servers))
            self._order(ProposeView(group_id, group.newest_epoch, leader, servers, k, self._me()))

    def _is_under_way(self, group: Group) -> bool:
        """Whether another view was granted, which may become active yet.

        A leader that hears none of its servers proposes one without them, and waits for their promises for ever. They
        hear it, and say that they are left without a leader: after two leases they are right.
        """
        pending, told = group.pending, self._told.get(group.id)
        if pending is None:
            return False
        is_new = told is None or told.epoch != pending.epoch or self.turn.now - told.since < 2 * self._timers.lease
        return is_new or pending.forced or pending.leader != group.active.leader

    def _grant_without(self, group: Group, pending: View, unable: NodeId) -> None:
        """Who is to lead or serve has not what it takes; without it, and all who said so before, the others may.

        If none of them has, the view goes round between them, ever more slowly. If there is nobody else, and all whom
        the active view had are gone for ever, nobody can ever go on with this group: it ends.
        """
        passed = self._passed_on.get(group.id)
        if passed is None or passed.epoch != group.active.epoch:
            passed = self._passed_on[group.id] = _PassedOn(group.active.epoch, self.turn.now, -math.inf, 0.0)
        if self.turn.now < passed.next_at:
            return  # it is told again, and says so again
        up = self._servers_up(group)
        passed.unable.add(unable)
        left_out = {name for name, incarnation in passed.unable if self.directory.nodes.is_up((name, incarnation))}
        if left_out.issuperset(name for name, which in up if (name, which) in group.active.servers):
            passed.unable, left_out = {unable}, {unable[0]}
        servers = tuple(server for server in up if server[0] not in left_out)
        of_active = [name for name, which in servers if (name, which) in group.active.servers]
        if of_active:
            self.turn.mark("group-server-unable")
            passed.wait = min(max(2 * passed.wait, self._timers.repeat_first), self._timers.repeat_max)
            passed.next_at = self.turn.now + passed.wait
            leader = pending.leader if pending.leader in of_active else of_active[0]
            k = min(group.k_wanted, len(servers))
            self._order(ProposeView(group.id, group.newest_epoch, leader, servers, k, self._me()))
        elif pending.forced and servers:
            self.turn.mark("group-server-unable")
            self._continue(group, servers[0][0], servers)
        elif pending.forced and self._is_alone(group, unable[0]):
            if self.turn.now - passed.since >= 2 * self._timers.lease:
                self._drop(group)

    def _is_alone(self, group: Group, name: str) -> bool:
        """Whether all other servers of the active view are gone, and what they had with them."""
        others = sum(server[0] != name for server in group.active.servers)
        return not group.durable and self.directory.groups.servers_gone(group) >= others

    # --- Mismatches ---

    def on_carried(self, sender: NodeId, carried: tuple[tuple[int, int], ...]) -> None:
        """A node says what it leads or serves, by which epoch."""
        groups = self.directory.groups
        for group_id, epoch in carried:
            group = groups.get(group_id)
            if group is None or (epoch < group.active.epoch and (group.fast or sender[0] not in group.active.names)):
                self.correct(sender[0], group_id, group)

    def correct(self, name: str, group_id: int, group: Group | None) -> None:
        """Tell a node how a group is."""
        self._tell(name, GroupIs(group_id, None if group is None else group.active))

    # --- Lost quorums ---

    def on_orphan(self, sender: NodeId, group_id: int, epoch: int, delivered: int) -> None:
        """A receiver has lost all its servers."""
        group = self.directory.groups.get(group_id)
        if group is None:
            self.correct(sender[0], group_id, None)
        elif self.directory.nodes.is_up(sender):
            self._orphans.setdefault(group_id, {})[sender] = (epoch, delivered)

    def watch(self) -> None:
        """Look for groups whose quorum is lost for ever."""
        lost: dict[int, float] = {}
        for group in self.directory.groups.with_servers_gone():
            if self._is_lost(group):
                since = lost[group.id] = self._lost_since.get(group.id, self.turn.now)
                if self.turn.now - since >= self._patience(group):
                    self._go_on_without(group, since)
        self._lost_since = lost
        self._orphans = {group_id: found for group_id, found in self._orphans.items() if group_id in lost}

    def _is_lost(self, group: Group) -> bool:
        if group.on_quorum_lost == "wait" or (group.pending is not None and group.pending.forced):
            return False
        return self.directory.groups.servers_gone(group) >= group.active.k

    def _patience(self, group: Group) -> float:
        """How long a quorum is to be lost. If the leader lives and is to lead on, it needs fewer promises than others.

        If so many can come, it has then asked for activation in time, or is declared down itself. Of an exclusive group
        somebody may hold something until the lease of its node is over.
        """
        active, pending, groups = group.active, group.pending, self.directory.groups
        leader = next(server for server in active.servers if server[0] == active.leader)
        leads_on = pending is not None and pending.leader == active.leader and groups.is_server_up(group, leader)
        has_enough = len(active.servers) - groups.servers_gone(group) >= active.promises_its_leader_needs
        patience = 2 * (self._timers.lease if leads_on and has_enough else self._timers.leader_silent)
        return max(patience, self._timers.lease + self._timers.margin) if group.exclusive else patience

    def _go_on_without(self, group: Group, since: float) -> None:
        if group.on_quorum_lost == "dissolve":
            self._drop(group)
            return
        up = self._servers_up(group)
        if up:
            names_in_base = [name for name, _ in up if name in group.active.names]
            self._continue(group, (names_in_base or [up[0][0]])[0], up)
            return
        orphans = [(report, node) for node, report in self._orphans.get(group.id, {}).items()]
        orphans = [one for one in orphans if self.directory.nodes.is_up(one[1])]
        if orphans:
            best = max(orphans, key=lambda one: one[0])[1]
            server = self.directory.groups.server_of(best[0], group.durable)
            if server is not None:
                self._continue(group, best[0], (server,))
        elif self.turn.now - since >= 2 * self._timers.lease:
            self._drop(group)

    def _servers_up(self, group: Group) -> tuple[Server, ...]:
        candidates = dict.fromkeys((*group.newest.servers, *group.active.servers))
        return tuple(server for server in candidates if self.directory.groups.is_server_up(group, server))

    def _continue(self, group: Group, leader: str, servers: tuple[Server, ...]) -> None:
        self.turn.mark("group-continued")
        self._order(ContinueGroup(group.id, group.newest_epoch, leader, servers))

    def _drop(self, group: Group) -> None:
        self.turn.mark("group-given-up")
        self._order(DropGroup(group.id, group.newest_epoch, self._me()))
