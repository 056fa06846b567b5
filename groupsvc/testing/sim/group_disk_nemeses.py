"""The enemies of durable groups: they look for a group that disks hold, and go for those disks.

A damaged or lost disk is one copy less. A durable group of which too few are left waits for them for ever, so a disk is
only taken while the others are enough for a recovery. Everything else may happen to all of them at once.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from groupsvcd.core.effects import Persist
from groupsvcd.core.nodegroups.group_status import GroupStatus
from groupsvcd.core.records import CheckpointRecord

from .disk import SYNC_S_MIN, Log
from .group_convergence import spare_disks
from .group_nemeses import some_group
from .nemesis import Nemesis
from .node import Node

if TYPE_CHECKING:
    from .world import World


def some_durable_group(world: World, rng: random.Random, *, servers_min: int = 1) -> GroupStatus | None:
    """A group that disks hold, as its leader sees it."""
    return some_group(world, rng, servers_min=servers_min, durable=True)


class GroupBitFlip(Nemesis):
    """The process of a server dies, and when it starts again a record of the group on its disk is damaged.

    The store finds that by its checksum (``tests/unit/journal`` shows it with real files). What is left of the log is
    worth nothing, and the group has to do without it.
    """

    name = "group-bit-flip"
    lasts_s = (0.2, 4.0)
    node: Node | None = None

    def begin(self) -> str | None:
        group = some_durable_group(self.world, self.rng, servers_min=2)
        if group is None or not spare_disks(self.world, group.id):
            return None
        node = self.world.nodes[self.rng.choice(group.servers)]
        log = node.disk.logs.get(group.id)
        if log is None or not log.entries or log.damage:
            return None
        self.node = node
        node.crash("killed, and a record is damaged", power=self.rng.random() < 0.5)
        log = node.disk.logs.get(group.id)  # the last sync may have gone through
        if log is not None and log.entries:
            self.hurt(log)
        return f"{group.name} at {node.name}"

    def hurt(self, log: Log) -> None:
        """Damage what is on disk."""
        log.flip(self.rng.randrange(len(log.entries)), self.rng)

    def end(self) -> None:
        assert self.node is not None
        if not self.node.running:
            self.node.start()


class GroupTruncate(GroupBitFlip):
    """The newest entries of a group are missing on the disk of a server, as if they had never been synced."""

    name = "group-truncate"

    def hurt(self, log: Log) -> None:
        log.tear(1 + self.rng.randrange(len(log.entries)))


class GroupDiskFull(Nemesis):
    """The disks of one or more servers of a group are full, and have room again later."""

    name = "group-disk-full"
    lasts_s = (0.5, 5.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.nodes: list[Node] = []

    def begin(self) -> str | None:
        group = some_durable_group(self.world, self.rng)
        if group is None:
            return None
        names = self.rng.sample(list(group.servers), self.rng.randint(1, len(group.servers)))
        self.nodes = [self.world.nodes[name] for name in names]
        for node in self.nodes:
            node.disk.stick()
        return f"{group.name} at {', '.join(names)}"

    def end(self) -> None:
        for node in self.nodes:
            node.disk.unstick()


class GroupFsyncEio(Nemesis):
    """The next sync of a server of a group fails; it stops, and is started again on a mended disk."""

    name = "group-fsync-eio"
    node: Node | None = None

    def begin(self) -> str | None:
        group = some_durable_group(self.world, self.rng)
        if group is None:
            return None
        self.node = self.world.nodes[self.rng.choice(group.servers)]
        self.node.disk.error = True
        return f"{group.name} at {self.node.name}"

    def end(self) -> None:
        assert self.node is not None
        self.node.disk.error = False
        if not self.node.running:
            self.node.start()


class GroupPowerLoss(Nemesis):
    """All servers of a group are off at once, and come back one after the other."""

    name = "group-power-loss"
    lasts_s = (0.2, 4.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.nodes: list[Node] = []

    def begin(self) -> str | None:
        group = some_durable_group(self.world, self.rng)
        if group is None:
            return None
        self.nodes = [self.world.nodes[name] for name in group.servers]
        for node in self.nodes:
            node.crash("power loss", power=True)
        return group.name

    def end(self) -> None:
        for node in self.nodes:
            if not node.running:
                self.restart_later(node, self.rng.random() * 3)


class KillDuringGroupCompaction(Nemesis):
    """A server dies while a checkpoint of its group is being written and the entries before it are being dropped."""

    name = "kill-during-group-compaction"
    node: Node | None = None
    group = 0

    def begin(self) -> str | None:
        group = some_durable_group(self.world, self.rng)
        if group is None:
            return None
        self.group, self.node = group.id, self.world.nodes[self.rng.choice(group.servers)]
        self.node.disk.on_submit = self._submitted
        return f"{group.name} at {self.node.name}"

    def _submitted(self, persist: Persist) -> None:
        node = self.node
        assert node is not None
        if any(isinstance(record, CheckpointRecord) and record.stream == self.group for record in persist.records):
            node.disk.on_submit = None
            self.world.push(self.world.t + self.rng.random() * 2 * SYNC_S_MIN, self._kill, node, node.process)

    def _kill(self, node: Node, process: int) -> None:
        if not self.ended and node.process == process and node.running:
            node.crash("killed during compaction of a group", power=self.rng.random() < 0.5)

    def end(self) -> None:
        assert self.node is not None
        self.ended = True
        self.node.disk.on_submit = None
        if not self.node.running:
            self.node.start()


GROUP_DISK_NEMESES: tuple[type[Nemesis], ...] = (
    GroupBitFlip, GroupTruncate, GroupDiskFull, GroupFsyncEio, GroupPowerLoss, KillDuringGroupCompaction,
)  # fmt: skip
