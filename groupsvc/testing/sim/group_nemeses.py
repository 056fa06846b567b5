"""The enemies of groups: they look for a group that is at work and hurt it where it hurts most.

Each picks one of the groups that programs use, in some worlds also of those of applications, by chance, and then its
leader, one of its servers, or all of them. How far a fault reaches is not theirs to judge: a group that loses its
quorum for ever goes on by a forced view, or ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from groupsvcd.core.nodegroups.group_status import GroupStatus
from groupsvcd.core.peer_messages import Repair

from .cuts import Cut
from .group_convergence import carried
from .group_users import Member
from .nemesis import Nemesis
from .network import Packet, between
from .node import Node
from .trap import Trap

if TYPE_CHECKING:
    from .world import World


def kill(node: Node) -> None:
    """For a trap."""
    node.crash("killed between two effects")


def some_group(
    world: World, rng: random.Random, *, servers_min: int = 1, durable: bool = False, of_programs: bool = False
) -> GroupStatus | None:
    """A group that programs use and somebody leads, as its leader sees it; one with so many servers, or on disks.

    In some worlds those of applications are as good, unless it is to be one of programs inside the daemons.
    """
    whose = ("users-", "apps-") if world.applications.habits.hunted and not of_programs else ("users-",)
    leading = [
        status
        for name, group in sorted(carried(world).items())
        for status in group.values()
        if status.role == "leader" and name.startswith(whose) and len(status.servers) >= servers_min
        if not durable or status.id in world.nodes[status.leader].disk.logs
    ]
    return rng.choice(leading) if leading else None


def submit(member: Member, process: int) -> None:
    """Have a program submit one more, if it still can."""
    if member.process == process and member.alive and member.group_id:
        member.node.call(lambda: _submit_now(member))


def _submit_now(member: Member) -> None:
    groups = member.node.groups
    if groups is not None and member.group_id and not member.users.quiet:
        member.submit(groups, 1)


class KillGroupLeader(Nemesis):
    """The leader of a group dies, within a few effects or at once; it comes back later."""

    name = "kill-group-leader"
    node: Node | None = None

    def begin(self) -> str | None:
        group = some_group(self.world, self.rng)
        if group is None:
            return None
        self.node = self.world.nodes[group.leader]
        if self.rng.random() < 0.5:
            self.node.trap = Trap(self.rng.randrange(8), kill)
        else:
            self.node.crash("killed")
        return f"{group.leader} of {group.name}"

    def end(self) -> None:
        assert self.node is not None
        if not self.node.running:
            self.node.start()


class PauseGroupLeader(Nemesis):
    """The leader of a group stands still, often between a decision and the words that tell it."""

    name = "pause-group-leader"
    lasts_s = (0.1, 7.0)
    node: Node | None = None

    def begin(self) -> str | None:
        group = some_group(self.world, self.rng)
        if group is None:
            return None
        self.node = self.world.nodes[group.leader]
        self.node.trap = Trap(self.rng.randrange(6), Node.pause)
        return f"{group.leader} of {group.name}"

    def end(self) -> None:
        assert self.node is not None
        if self.node.trap is not None and self.node.trap.spring is Node.pause:
            self.node.trap = None
        self.node.resume()


class IsolateGroupLeader(Cut):
    """The leader of a group is cut off from everybody, or from everybody but the voters."""

    name = "isolate-group-leader"

    def links(self) -> list[tuple[str, str]]:
        group = some_group(self.world, self.rng)
        if group is None:
            return []
        spared = self.world.voters if self.rng.random() < 0.4 else ()
        return between([group.leader], [name for name in self.others(group.leader) if name not in spared])


class CutGroupLeader(Cut):
    """The leader of a group and one of its servers do not reach each other, in one direction or in both."""

    name = "cut-group-leader"
    lasts_s = (0.5, 6.0)

    def links(self) -> list[tuple[str, str]]:
        group = some_group(self.world, self.rng, servers_min=2)
        if group is None:
            return []
        other = self.rng.choice([name for name in group.servers if name != group.leader])
        pairs = between([group.leader], [other])
        return pairs if self.rng.random() < 0.4 else [self.rng.choice(pairs)]


class GroupStaleTail(Cut):
    """The leader of a group is cut off with a few of its servers, and its programs make it order what never holds.

    Its log then ends far behind that of its successor, but in an older epoch. When the cut heals, the successor often
    dies at once, so that the stale tail takes part in the next recovery.
    """

    name = "group-stale-tail"
    lasts_s = (1.0, 4.0)
    burst = 15
    group: GroupStatus | None = None

    def links(self) -> list[tuple[str, str]]:
        group = self.group = some_group(self.world, self.rng, servers_min=2)
        if group is None:
            return []
        others = self.shuffled([name for name in group.servers if name != group.leader])
        side = [group.leader, *others[: self.rng.randrange(len(others))]]
        for member in self.world.group_users.members:
            if member.node.name == group.leader and member.group == group.name and member.alive:
                for _ in range(self.burst):
                    self.world.push(self.world.t + self.rng.random() * 0.5, submit, member, member.process)
        # The voters are spared: it has its lease, and does not know.
        return between(side, [name for name in group.servers if name not in side])

    def end(self) -> None:
        super().end()
        if self.group is None or self.rng.random() < 0.4:
            return
        now = [status for status in carried(self.world).get(self.group.name, {}).values() if status.role == "leader"]
        if now and self.world.nodes[now[0].leader].running:
            node = self.world.nodes[now[0].leader]
            node.crash("killed when the cut healed")
            self.restart_later(node, self.rng.uniform(0.5, 4.0))


class KillDuringGroupRecovery(Nemesis):
    """Whoever claims, promises or opens a group's stream next dies right there, perhaps with its word half said."""

    name = "kill-during-group-recovery"
    lasts_s = (2.0, 6.0)
    kind = ""

    def begin(self) -> str | None:
        group = some_group(self.world, self.rng, servers_min=2)
        if group is None:
            return None
        self.kind = self.rng.choice(["Claim", "Promised", "Open", "Opened", "Order"])
        for name in self.world.names:
            self.world.nodes[name].on_spoke = self._spoke
        # Without a recovery there is nothing to kill in.
        self.world.nodes[group.leader].crash("killed to make a recovery")
        self.restart_later(self.world.nodes[group.leader], 0.5 + self.rng.random() * 3)
        return f"{group.name} at {self.kind}"

    def _spoke(self, node: Node, kind: str, stream: int, epoch: int) -> None:
        if not stream or kind != self.kind or self.ended:
            return
        self.ended = True
        if self.rng.random() < 0.5:
            node.crash(f"killed before its {kind} left")
        else:
            node.trap = Trap(self.rng.randrange(4), kill)
        self.restart_later(node, 0.1 + self.rng.random() * 3)

    def end(self) -> None:
        self.ended = True
        for name in self.world.names:
            self.world.nodes[name].on_spoke = None


class KillGroupServers(Nemesis):
    """The leader of a group dies, and soon one server after the other: its successor, most often all of them."""

    name = "kill-group-servers"
    lasts_s = (1.0, 8.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.victims: list[Node] = []

    def begin(self) -> str | None:
        group = some_group(self.world, self.rng, servers_min=2)
        if group is None:
            return None
        others = [name for name in group.servers if name != group.leader]
        count = len(others) if self.rng.random() < 0.6 else 1
        at, power = self.world.t, self.rng.random() < 0.3
        for name in (group.leader, *others[:count]):
            self.victims.append(self.world.nodes[name])
            self.world.push(at, self._kill, self.world.nodes[name], power)
            at += self.rng.choice([0.0, 0.05, 0.5, 2.0]) * self.rng.random()
        return f"{len(self.victims)} of {group.name}"

    def _kill(self, node: Node, power: bool) -> None:
        if not self.ended:
            node.crash("killed with its group", power=power)

    def end(self) -> None:
        self.ended = True
        for node in self.victims:
            if not node.running:
                node.start()


class KillBothLeaders(Nemesis):
    """The name server and the leader of a group die at the same moment."""

    name = "kill-both-leaders"
    lasts_s = (1.0, 6.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.victims: list[Node] = []

    def begin(self) -> str | None:
        group, name_server = some_group(self.world, self.rng), self.world.name_server()
        if group is None or name_server is None:
            return None
        for name in dict.fromkeys((name_server, group.leader)):
            node = self.world.nodes[name]
            self.victims.append(node)
            node.crash("killed with the other leader")
        return f"{name_server} and {group.leader} of {group.name}"

    def end(self) -> None:
        for node in self.victims:
            if not node.running:
                node.start()


class KillGroupSuccessor(Nemesis):
    """The leader of a group dies and its last words are lost; its successor dies when all have got its Open.

    So what the dead leader delivered last, nobody else knows to be stable, and whoever was told to open a log was told
    so by one who never gives it: also the entries that it is asked for do not arrive.
    """

    name = "kill-group-successor"
    lasts_s = (2.0, 5.0)
    ordered_s = 0.0003  # after which an order has left, and nobody has answered yet
    silent_s = 0.004  # in which everybody may have answered
    opening_s = 0.02
    group = 0
    mute = ""

    def begin(self) -> str | None:
        group = some_group(self.world, self.rng, servers_min=2)
        if group is None or self.world.network.sieve is not None:
            return None
        self.group, self.mute = group.id, group.leader
        world, leader = self.world, self.world.nodes[group.leader]
        for member in world.group_users.members:
            if member.node is leader and member.group == group.name and member.alive:
                submit(member, member.process)
        for name in world.names:
            world.nodes[name].on_spoke = self._spoke
        world.push(world.t + self.ordered_s, self._silence, self._drops_multicast, None)
        world.push(world.t + self.ordered_s + self.silent_s * self.rng.random(), self._kill, leader, leader.process)
        return f"{group.leader} of {group.name}"

    def _silence(self, sieve: Callable[[str, str, Packet], bool], _: object) -> None:
        if self.world.network.sieve is None:
            self.world.network.sieve = sieve

    def _drops_multicast(self, source: str, target: str, packet: Packet) -> bool:
        return source == self.mute and packet.topic.startswith(b"group")

    def _drops_repair(self, source: str, target: str, packet: Packet) -> bool:
        event = packet.open() if source == self.mute and not packet.topic else None
        return event is not None and any(isinstance(message, Repair) for message in event.messages)

    def _spoke(self, node: Node, kind: str, stream: int, epoch: int) -> None:
        if kind == "Open" and stream == self.group and not self.ended:
            self.ended = True
            self.mute = node.name
            self._silence(self._drops_repair, None)
            self.world.push(self.world.t + self.opening_s * self.rng.random(), self._kill, node, node.process)

    def _kill(self, node: Node, process: int) -> None:
        if self.world.network.sieve in (self._drops_multicast, self._drops_repair):
            self.world.network.sieve = None
        if node.process == process:
            node.crash("killed before it was heard out")
            self.restart_later(node, self.rng.uniform(2.0, 6.0))

    def end(self) -> None:
        self.ended = True
        for name in self.world.names:
            self.world.nodes[name].on_spoke = None


class Churn(Nemesis):
    """Programs come and go at many nodes, within moments."""

    name = "churn"
    lasts_s = (1.0, 5.0)
    count = 6

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.group = ""

    def begin(self) -> str | None:
        group = some_group(self.world, self.rng, of_programs=True)
        users = self.world.group_users
        running = [name for name in self.world.names if self.world.nodes[name].running]
        if group is None or users.quiet or not running:
            return None
        self.group = group.name
        for number in range(self.count):
            node = self.world.nodes[self.rng.choice(running)]
            member = users.member_at(node, f"passer-by-{self.world.processed}-{number}")
            self.world.push(self.world.t + self.rng.random() * 2, self._come, member, node.process)
        return group.name

    def _come(self, member: Member, process: int) -> None:
        if self._may_act(member, process):
            member.node.call(lambda: self._join(member))
            self.world.push(self.world.t + self.rng.random() * 2, self._go, member, process)

    def _go(self, member: Member, process: int) -> None:
        if self._may_act(member, process):
            member.node.call(lambda: self._leave(member))

    def _may_act(self, member: Member, process: int) -> bool:
        return member.process == process and member.alive and not member.users.quiet and not member.node.paused

    def _join(self, member: Member) -> None:
        groups = member.node.groups
        if groups is not None and not member.group:
            member.join(groups, self.group, {})

    def _leave(self, member: Member) -> None:
        groups = member.node.groups
        if groups is not None and member.group:
            member.leave(groups)


class LostMulticasts(Nemesis):
    """Multicasts of groups do not reach one node, or reach nobody; what is sent to one alone does."""

    name = "lost-multicasts"
    lasts_s = (0.3, 5.0)

    def begin(self) -> str | None:
        network = self.world.network
        if network.sieve is not None:
            return None
        self.deaf = self.rng.choice(self.world.names) if self.rng.random() < 0.7 else ""
        self.share = self.rng.choice([0.3, 1.0])
        network.sieve = self._drop
        return self.deaf or "all"

    def _drop(self, source: str, target: str, packet: Packet) -> bool:
        if not packet.topic.startswith(b"group") or self.deaf not in ("", target):
            return False
        return self.rng.random() < self.share

    def end(self) -> None:
        self.world.network.sieve = None


GROUP_NEMESES: tuple[type[Nemesis], ...] = (
    KillGroupLeader, PauseGroupLeader, IsolateGroupLeader, CutGroupLeader, GroupStaleTail, KillDuringGroupRecovery,
    KillGroupServers, KillBothLeaders, Churn, LostMulticasts,
)  # fmt: skip

LATER_GROUP_NEMESES: tuple[type[Nemesis], ...] = (KillGroupSuccessor,)
"""Thought of later, and drawn apart, so that the seeds of before have the enemies they had."""

GROUP_NEMESES_HARMLESS_TO_MEMORY = (
    "pause-group-leader", "isolate-group-leader", "cut-group-leader", "churn", "lost-multicasts",
)  # fmt: skip
"""What may happen to a domain that keeps its directory in memory only and is to keep it."""
