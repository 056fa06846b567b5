"""The group ``_hosts``: which nodes are up, for whoever wants to watch that (GS-37).

It is no group with a stream. Every node has the domain's list of nodes, and this shows it as if it were one: the nodes
that are up are its providers, the version of the list is the number of the entry. Two nodes that show the same version
show the same hosts. A node that is declared down, or comes back as another process, has failed; one that said goodbye
to this node has left. To the others it has failed: the list does not tell why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupsvc.wire.client_messages import MemberLost, SubscribeAsk, Subscribed
from groupsvc.wire.notices import AnyNotice, GroupView, Joined, Left, Provider, ProviderId

from ..access import Verb
from ..groups.commands import FailureCause

if TYPE_CHECKING:
    from .desk import Desk
    from .session import Session

NAME = "_hosts"


class HostWatch:
    """One subscription to the hosts."""

    needs: Verb = "subscribe"

    def __init__(self, hosts: Hosts, session: Session, member: int) -> None:
        self._hosts, self.session, self.member = hosts, session, member
        self.group = NAME

    def end(self, cause: FailureCause) -> None:
        """It watches no longer."""
        self._hosts.forget(self)

    def revoke(self, reason: str) -> None:
        """Its program may not watch any more."""
        self.end("goodbye")
        self.session.parts.pop(self.member, None)
        self.session.tell(MemberLost(self.member, dissolved=False, reason=reason))

    def responds(self, *, does: bool) -> None:
        """Nobody waits for a subscriber."""


class Hosts:
    """The nodes that are up, as this node's list has them."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.version = 0
        self._up: dict[str, Provider] = {}
        self._watches: dict[int, HostWatch] = {}
        self._goodbyes: set[ProviderId] = set()  # of those that are still listed as up

    def subscribe(self, session: Session, ask: SubscribeAsk) -> None:
        """Somebody wants to watch."""
        self.look()
        watch = HostWatch(self, session, self._desk.processes.next_number())
        self._watches[watch.member] = session.parts[watch.member] = watch
        session.tell(Subscribed(ask.id, watch.member, {}, self.view))

    def forget(self, watch: HostWatch) -> None:
        """It watches no longer."""
        self._watches.pop(watch.member, None)

    def on_goodbye(self, name: str, incarnation: int) -> None:
        """A node says that it ends."""
        provider = self._up.get(name)
        if provider is not None and provider.id[1] == incarnation:
            self._goodbyes.add(provider.id)

    @property
    def view(self) -> GroupView:
        """The nodes that are up, by name."""
        providers = tuple(self._up[name] for name in sorted(self._up))
        return GroupView(self.version, self.version, providers, b"", 0, "approve")

    def look(self) -> None:
        """The list has changed."""
        member = self._desk.member
        self.version = version = member.list_version
        nodes = member.nodes
        gone: dict[str, list[ProviderId]] = {"leave": [], "node_failure": []}
        for name, provider in list(self._up.items()):
            entry = nodes.get(name)
            if entry is None or entry.incarnation != provider.id[1] or entry.status != "up":
                gone["leave" if provider.id in self._goodbyes else "node_failure"].append(provider.id)
                self._goodbyes.discard(provider.id)
                del self._up[name]
        new: list[Provider] = []
        for name in sorted(nodes):
            entry = nodes[name]
            if entry.status == "up" and name not in self._up:
                self._up[name] = Provider((name, entry.incarnation, 0), name, b"", version)
                new.append(self._up[name])
        notices: list[AnyNotice] = []
        if gone["leave"]:
            notices.append(Left(version, tuple(gone["leave"]), "leave", version))
        if gone["node_failure"]:
            notices.append(Left(version, tuple(gone["node_failure"]), "node_failure", version))
        if new:
            notices.append(Joined(version, tuple(new), version))
        for watch in list(self._watches.values()):
            watch.session.tell_run(watch.member, notices)
