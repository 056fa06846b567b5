"""What all groups of a node share: the node itself, its list of nodes, its errands, its links."""

from __future__ import annotations

from random import Random

import attrs

from ..domain.member import Member
from ..domain.requests import Requests
from ..identity import Identity
from ..links import Links
from ..parameters import Parameters
from ..turn import Turn
from ..views import NodeId, Server


@attrs.frozen
class Station:
    """One per engine."""

    turn: Turn
    parameters: Parameters
    identity: Identity
    member: Member
    requests: Requests
    links: Links
    rng: Random

    @property
    def me(self) -> NodeId:
        """This node as a member of groups."""
        return (self.turn.node, self.identity.incarnation)

    def is_up(self, node: NodeId) -> bool:
        """Whether this very incarnation is up, as far as our list tells."""
        entry = self.member.nodes.get(node[0])
        return entry is not None and entry.incarnation == node[1] and entry.status == "up"

    def is_down(self, node: NodeId) -> bool:
        """Whether this incarnation will never be up again; one that is newer than our list is not."""
        entry = self.member.nodes.get(node[0])
        if entry is None or entry.incarnation < node[1]:
            return False
        return entry.incarnation > node[1] or entry.status != "up"

    def server(self, node: NodeId, *, durable: bool) -> Server:
        """How this node stands in a view; without a disk it has no place in that of a durable group."""
        if not durable:
            return node
        if node == self.me:
            return self.my_server(durable=True)  # our list may not have this incarnation yet
        entry = self.member.nodes.get(node[0])
        return (node[0], entry.state_id if entry is not None and entry.incarnation == node[1] else "")

    def my_server(self, *, durable: bool) -> Server:
        """How we stand in a view."""
        return (self.turn.node, self.member.disk) if durable else self.me

    def addresses(self, names: tuple[str, ...]) -> dict[str, str]:
        """Where these nodes are reached, as far as the list tells."""
        nodes = self.member.nodes
        return {name: nodes[name].address for name in names if name in nodes}
