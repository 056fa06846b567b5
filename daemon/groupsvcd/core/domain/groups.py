"""Who may order which group's stream: groups, their views, and every grant of an epoch.

A forms "jobs" with directory entry 7. The group's id is 7 and its active view is epoch 7: {A}. A proposes
{A, B}; entry 12 grants it, so epoch 12 is pending with base 7. A recovers the stream from the servers of
epoch 7 and asks for activation: 12 is active. Now A goes down with entry 20, which grants {B} as epoch 20
with base 12, and so on. Everything that gives an epoch is here, and there are only four rules:

- An epoch is the number of the entry that granted it. So it is never given twice, not even to a group
  formed anew under an old name.
- A grant replaces the pending view. Its base is the active view, from whose servers its leader recovers.
- Only the newest grant can become active. The base of a leader that may still be activated cannot change.
- If none of the servers is up nothing can be granted: a pending view is withdrawn and the group waits for a
  server of a durable group to return, or for a forced grant.

Epochs made of "active epoch + 1" were rejected: two leaders could be given the same one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from groupsvc.wire.limits import GROUP_NAME_CHARS_MAX

from ..views import AttributeValue, NodeId, Server, View
from .commands import shown
from .limits import GROUP_SERVERS_MAX, GROUP_SERVERS_WANTED
from .nodes import NAME_CHARACTERS, UP, NodeTable

_NAME_CHARACTERS = NAME_CHARACTERS | {"/"}


class Group(msgspec.Struct, frozen=True, array_like=True):
    """The directory's record of one group."""

    id: int
    name: str
    attributes: dict[str, AttributeValue]
    formed_by: NodeId
    newest_epoch: int
    active: View
    pending: View | None

    @property
    def newest(self) -> View:
        """The pending view if there is one, else the active one."""
        return self.pending or self.active

    @property
    def durable(self) -> bool:
        """Whether disks hold the stream, so that a server is a state directory and not a process."""
        return self.attributes.get("durable") is True

    @property
    def fast(self) -> bool:
        """Whether an entry is delivered before k servers hold it."""
        return self.attributes.get("delivery") == "fast"

    @property
    def exclusive(self) -> bool:
        """Whether a provider may hold something alone, and rely on the lease of its node."""
        return self.attributes.get("exclusive") is True

    @property
    def on_quorum_lost(self) -> str:
        """What happens when the quorum is gone for ever."""
        return "wait" if self.durable else str(self.attributes.get("on_quorum_lost", "continue"))

    @property
    def servers_wanted(self) -> int:
        """r: how many servers the group should have."""
        return _whole_number(self.attributes.get("replicas"), GROUP_SERVERS_WANTED)

    @property
    def k_wanted(self) -> int:
        """How many servers must have an entry before it is stable, when there are enough of them."""
        return _whole_number(self.attributes.get("commit_k"), default_k(self.servers_wanted))

    def as_answer(self) -> dict[str, Any]:
        """The record as plain data."""
        return {
            "id": self.id,
            "name": self.name,
            "attributes": dict(self.attributes),
            "newest_epoch": self.newest_epoch,
            "active": self.active.as_answer(),
            "pending": None if self.pending is None else self.pending.as_answer(),
        }


def default_k(servers: int) -> int:
    """1 of 1, 2 of 2, a majority from 3 on."""
    return servers // 2 + 1


def problem_with_name(name: str) -> str:
    """Why this can be no group's name, or ""."""
    if not 1 <= len(name) <= GROUP_NAME_CHARS_MAX or not _NAME_CHARACTERS.issuperset(name):
        return f"group name {shown(name)} must be 1 to {GROUP_NAME_CHARS_MAX} of the characters A-Z a-z 0-9 . _ / -"
    if name.startswith("_") and "/" not in name:  # what is built on groups has its own under _lock/ and the like
        return f"group name {shown(name)} begins with _, which is reserved"
    return ""


class GroupTable:
    """All groups, with an index of the nodes that serve them and of the grants that wait for activation."""

    def __init__(self, nodes: NodeTable, groups: tuple[Group, ...] = ()) -> None:
        self._nodes = nodes
        self._groups: dict[int, Group] = {}
        self._ids: dict[str, int] = {}
        self._served: dict[str, set[int]] = {}
        self._held: dict[Server, set[int]] = {}  # by each server of an active view
        self._pending: set[int] = set()
        self.dropped: list[int] = []  # since somebody last looked
        for group in groups:
            self.put(group)

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: int) -> Group | None:
        """The group with this id."""
        return self._groups.get(group_id)

    def named(self, name: str) -> Group | None:
        """The group that has this name now."""
        group_id = self._ids.get(name)
        return None if group_id is None else self._groups[group_id]

    def all(self) -> tuple[Group, ...]:
        """Every group, oldest first."""
        return tuple(self._groups[group_id] for group_id in sorted(self._groups))

    def pending(self) -> tuple[Group, ...]:
        """Every group whose newest grant waits for its activation, oldest group first."""
        return tuple(self._groups[group_id] for group_id in sorted(self._pending))

    def served_by(self, name: str) -> tuple[Group, ...]:
        """Every group with some incarnation or disk of ``name`` in its active or pending view."""
        return tuple(self._groups[group_id] for group_id in sorted(self._served.get(name, ())))

    def put(self, group: Group) -> None:
        """The record is now this one."""
        self.remove(group.id)
        self._groups[group.id] = group
        self._ids[group.name] = group.id
        for name in _server_names(group):
            self._served.setdefault(name, set()).add(group.id)
        for server in group.active.servers:
            self._held.setdefault(server, set()).add(group.id)
        if group.pending is not None:
            self._pending.add(group.id)

    def remove(self, group_id: int) -> None:
        """There is no such group any more."""
        group = self._groups.pop(group_id, None)
        if group is None:
            return
        del self._ids[group.name]
        self._pending.discard(group_id)
        for name in _server_names(group):
            self._served[name].discard(group_id)
            if not self._served[name]:
                del self._served[name]
        for server in group.active.servers:
            self._held[server].discard(group_id)
            if not self._held[server]:
                del self._held[server]

    def server_of(self, name: str, durable: bool) -> Server | None:
        """How the present incarnation of ``name`` would stand in a view; None if it is not up or has no disk."""
        node = self._nodes.get(name)
        if node is None or node.status != UP or (durable and not node.state_id):
            return None
        return (name, node.state_id) if durable else (name, node.incarnation)

    def is_server_up(self, group: Group, server: Server) -> bool:
        """Whether this very process (durable groups: a process with this very disk) is up."""
        return self.server_of(server[0], group.durable) == server

    def leads(self, group: Group, by: NodeId) -> bool:
        """Whether ``by`` is up and leads the active view."""
        return self._leads_in(group.active, group, by)

    def is_to_lead(self, group: Group, by: NodeId) -> bool:
        """Whether ``by`` is up and was granted the pending view: it may find that it cannot open it."""
        return group.pending is not None and self._leads_in(group.pending, group, by)

    def _leads_in(self, view: View, group: Group, by: NodeId) -> bool:
        if by[0] != view.leader or not self._nodes.is_up(by):
            return False
        return self.server_of(by[0], group.durable) in view.servers

    def servers_gone(self, group: Group) -> int:
        """How many servers of the active view are gone. The disk of a durable group never is, for all we know."""
        return sum(
            1 for name, which in group.active.servers if isinstance(which, int) and self._nodes.is_gone((name, which))
        )

    def with_servers_gone(self) -> tuple[Group, ...]:
        """Every group with a server in its active view that is gone, oldest first; found without looking at all."""
        found: set[int] = set()
        for (name, which), groups in self._held.items():
            if isinstance(which, int) and self._nodes.is_gone((name, which)):
                found |= groups
        return tuple(self._groups[group_id] for group_id in sorted(found))

    def lacks_servers(self, group: Group) -> bool:
        """Whether fewer servers of the newest view are up than the group wants."""
        up = sum(1 for server in group.newest.servers if self.is_server_up(group, server))
        return up < group.servers_wanted

    def problem_with_servers(self, group: Group, leader: str, servers: tuple[Server, ...]) -> str:
        """Why nothing can be granted to these, or ""."""
        names = [name for name, _ in servers]
        if not 1 <= len(servers) <= GROUP_SERVERS_MAX:
            return f"a view has 1 to {GROUP_SERVERS_MAX} servers, not {len(servers)}"
        if len(dict.fromkeys(names)) != len(names):
            return "a node stands twice among the servers"
        if leader not in names:
            return "the leader must be one of the servers"
        for server in servers:
            if not self.is_server_up(group, server):
                return f"server {shown(server[0])} is not up with {shown(str(server[1]))}"
        return ""

    def grant(self, group: Group, seq: int, leader: str, servers: tuple[Server, ...], k: int, forced: bool) -> Group:
        """Entry ``seq`` grants this view; it replaces the pending one."""
        view = View(
            epoch=seq,
            leader=leader,
            servers=servers,
            k=k,
            forced=forced,
            base=group.active.epoch,
            replaces=group.newest_epoch,
        )
        granted = msgspec.structs.replace(group, newest_epoch=seq, pending=view)
        self.put(granted)
        return granted

    def grant_to_survivors(self, group: Group, seq: int) -> None:
        """Servers have changed: grant to those of the newest view, then of the active one, that are up."""
        active = group.active.servers
        candidates = dict.fromkeys((*group.newest.servers, *active))
        servers = tuple(server for server in candidates if self.is_server_up(group, server))[: group.servers_wanted]
        if not servers:
            self.put(msgspec.structs.replace(group, pending=None))
            return
        of_active = [name for name, which in servers if (name, which) in active]
        stays = group.active.leader in of_active and group.active.leader in group.newest.names
        leader = group.active.leader if stays else (of_active or [servers[0][0]])[0]
        # Once the quorum is lost for ever it stays so, whoever is to go on: also who opened what a forced grant chose.
        forced = group.pending is not None and group.pending.forced
        self.grant(group, seq, leader, servers, k=min(group.k_wanted, len(servers)), forced=forced)

    def activate(self, group: Group, seq: int) -> Group:
        """Entry ``seq`` makes the pending view the active one."""
        if group.pending is None:
            return group
        active = msgspec.structs.replace(group.pending, activated=seq)
        activated = msgspec.structs.replace(group, active=active, pending=None)
        self.put(activated)
        return activated


def _server_names(group: Group) -> dict[str, None]:
    """The nodes in the active and the pending view, each once."""
    return dict.fromkeys(name for name, _ in (*group.active.servers, *group.newest.servers))


def _whole_number(value: AttributeValue, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise
