"""The enemies of a domain, by name.

Those of processes, disks and clocks are here, those of links in ``cuts``, those that are after groups in
``group_nemeses``. They hurt only what they may: the protocol promises nothing once a majority of disks is lost, so
``lose-disk`` never takes more than a minority until the domain has made the blank voters whole. Everything else may
overlap freely, and ends with ``World.heal``.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from groupsvcd.core.effects import Persist
from groupsvcd.core.records import CheckpointRecord

from .clients import Client
from .cuts import (
    BadWeather,
    Bridge,
    Flap,
    ForeignFrames,
    Halves,
    IsolateLeader,
    IsolateOne,
    MajoritiesRing,
    OneWay,
    StaleTail,
    SwizzleClog,
)
from .disk import SYNC_S_MIN
from .drain_nemesis import DrainNode
from .group_disk_nemeses import GROUP_DISK_NEMESES
from .group_nemeses import GROUP_NEMESES, LATER_GROUP_NEMESES
from .nemesis import Nemesis
from .node import Node
from .trap import Trap

if TYPE_CHECKING:
    from .world import World


class Kill(Nemesis):
    """kill -9 of one process; started again when this ends."""

    name = "kill"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        # Somewhere within the next few effects, not neatly between two steps.
        self.node.trap = Trap(self.rng.randrange(8), _kill)
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        if not self.node.running:
            self.node.start()


def _kill(node: Node) -> None:
    node.crash("killed between two effects")


class KillAtOnce(Kill):
    """kill -9 while the process waits for events, which is most of the time."""

    name = "kill-idle"

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.crash("killed")
        return self.node.name


class Pause(Nemesis):
    """SIGSTOP, in the middle of the effects of one step."""

    name = "pause"
    lasts_s = (0.1, 7.0)
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        if self.rng.random() < 0.3:
            self.node.pause()
        else:
            # Most often between the step that decided something and the words that say so.
            self.node.trap = Trap(self.rng.randrange(6), Node.pause)
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        if self.node.trap is not None and self.node.trap.spring is Node.pause:
            self.node.trap = None
        self.node.resume()


class SlowDisk(Nemesis):
    """Every sync of one voter takes up to a second."""

    name = "slow-disk"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.disk.slowness = self.rng.choice([10.0, 50.0, 250.0])
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        self.node.disk.slowness = 1.0


class DiskFull(Nemesis):
    """No write of one voter completes until there is space again."""

    name = "disk-full"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.disk.stick()
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        self.node.disk.unstick()


class DiskHung(DiskFull):
    """The device does not answer; for a daemon the same as a full one, only shorter or for ever."""

    name = "disk-hung"
    lasts_s = (0.05, 3.0)


class FsyncEio(Nemesis):
    """The next sync of one voter fails; the process must stop, and is started again on a mended disk."""

    name = "fsync-eio"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.disk.error = True
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        self.node.disk.error = False
        if not self.node.running:
            self.node.start()


class PowerLossOne(Nemesis):
    """One machine is off: no reset, no refusal, only silence; its steady clock begins anew."""

    name = "power-loss-one"
    lasts_s = (0.3, 10.0)

    def __init__(self, world: World, rng: random.Random) -> None:
        super().__init__(world, rng)
        self.down: list[Node] = []

    def begin(self) -> str | None:
        node = self.name_server_or_any()
        if node is None:
            return None
        node.crash("power loss", power=True)
        self.down = [node]
        return node.name

    def end(self) -> None:
        for node in self.down:
            if not node.running:
                node.start()


class PowerLossAll(PowerLossOne):
    """All machines are off; they come back one after the other."""

    name = "power-loss-all"
    lasts_s = (0.1, 2.0)

    def begin(self) -> str | None:
        for name in self.world.names:
            self.world.nodes[name].crash("power loss", power=True)
        return "all"

    def end(self) -> None:
        for name in self.world.names:
            node = self.world.nodes[name]
            if not node.running:
                self.restart_later(node, self.rng.random() * 1.0)


class ClockJump(Nemesis):
    """The wall clock jumps by days; the steady clock does not notice."""

    name = "clock-jump"
    lasts_s = (0.1, 0.2)

    def begin(self) -> str | None:
        node = self.victim()
        if node is None:
            return None
        jump = self.rng.uniform(-864_000, 864_000)
        if not node.parameters.durable:
            jump = abs(jump)  # without a memory its incarnation is only as good as its clock
        node.wall_offset += jump
        if self.rng.random() < 0.5:
            node.crash("killed after a clock jump")
            self.restart_later(node, 0.05 + self.rng.random())
        return f"{node.name} by {jump:.0f} s"


class KillDuringRecovery(Nemesis):
    """Whoever claims, promises or opens next dies right there, perhaps with its word half said."""

    name = "kill-during-recovery"
    lasts_s = (2.0, 8.0)

    def begin(self) -> str | None:
        kind = self.rng.choice(["Claim", "Promised", "Open", "Opened", "LeaderAlive"])
        self.kind = kind
        for name in self.world.voters:
            self.world.nodes[name].on_spoke = self._spoke
        leader = self.world.name_server()
        if leader is not None:
            # Without an election there is nothing to kill in.
            self.world.nodes[leader].crash("killed to make an election")
            self.restart_later(self.world.nodes[leader], 0.5 + self.rng.random() * 2)
        return f"at {kind}"

    def _spoke(self, node: Node, kind: str, stream: int, epoch: int) -> None:
        if stream or kind != self.kind or self.ended:
            return
        self.ended = True
        how = self.rng.randrange(4)
        if how == 0:
            node.crash(f"killed before its {kind} left")
        elif how == 1:
            node.trap = Trap(self.rng.randrange(4), _kill)
        elif how == 2:
            self.world.push(self.world.t + self.rng.random() * 0.02, self._kill_late, node, None)
        else:
            # Its words go out, but what it writes from now on never gets to the disk.
            node.disk.stick()
            self.world.push(self.world.t + self.rng.random() * 0.1, self._kill_unwritten, node, None)
        self.restart_later(node, 0.1 + self.rng.random() * 3)

    def _kill_unwritten(self, node: Node, _: object) -> None:
        node.crash("killed with its last writes under way")
        node.disk.unstick()

    def _kill_late(self, node: Node, _: object) -> None:
        node.crash("killed during recovery")

    def end(self) -> None:
        self.ended = True
        for name in self.world.voters:
            self.world.nodes[name].on_spoke = None


class KillBetweenPersistAndSend(Nemesis):
    """A write is on disk and the words that hang on it are never said."""

    name = "kill-between-persist-and-send"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.left = self.rng.randrange(4)
        self.node.on_persisted = self._persisted
        return self.node.name

    def _persisted(self, node: Node) -> None:
        self.left -= 1
        if self.left < 0:
            node.on_persisted = None
            if self.rng.random() < 0.3:
                node.pause()
                self.world.push(self.world.t + self.rng.random() * 5, self._resume, node, None)
            else:
                node.crash("killed between persist and send")

    def _resume(self, node: Node, _: object) -> None:
        node.resume()

    def end(self) -> None:
        assert self.node is not None
        self.node.on_persisted = None
        if not self.node.running:
            self.node.start()


class KillDuringCompaction(Nemesis):
    """The process dies while a checkpoint is being written and the entries before it are being dropped."""

    name = "kill-during-compaction"
    node: Node | None = None

    def begin(self) -> str | None:
        self.node = self.name_server_or_any()
        if self.node is None:
            return None
        self.node.disk.on_submit = self._submitted
        return self.node.name

    def _submitted(self, persist: Persist) -> None:
        node = self.node
        assert node is not None
        if any(isinstance(record, CheckpointRecord) for record in persist.records):
            node.disk.on_submit = None
            self.world.push(self.world.t + self.rng.random() * 2 * SYNC_S_MIN, self._kill, node, node.process)

    def _kill(self, node: Node, process: int) -> None:
        if not self.ended and node.process == process and node.running:
            node.crash("killed during compaction", power=self.rng.random() < 0.5)

    def end(self) -> None:
        assert self.node is not None
        self.ended = True
        self.node.disk.on_submit = None
        if not self.node.running:
            self.node.start()


class LoseDisk(Nemesis):
    """A voter's process dies and comes back at once with an empty state directory."""

    name = "lose-disk"
    lasts_s = (0.1, 1.5)
    node: Node | None = None

    def begin(self) -> str | None:
        world = self.world
        if not _may_lose_a_disk(world):
            return None
        # Only what belongs to a formed domain can be replaced in it.
        whole = [name for name in world.voters if not world.nodes[name].disk.lost]
        if any(not world.nodes[name].disk.logs for name in whole):
            return None
        self.node = world.nodes[self.rng.choice(whole)]
        self.node.crash("lost its disk", power=self.rng.random() < 0.5)
        self.node.disk.replace_by_blank()
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        if not self.node.running:
            self.node.start()


class ReplaceVoter(LoseDisk):
    """A machine is dead for good; much later another one takes its name."""

    name = "replace-voter"
    lasts_s = (4.0, 12.0)


class BitFlip(LoseDisk):
    """A record on a voter's disk is damaged.

    The store finds that at the next start and refuses to serve from it (``tests/unit/journal`` shows it with real
    files); what is left for the operator is an empty disk. So to the others it is a disk lost, and a while without it.
    """

    name = "bit-flip"
    lasts_s = (1.0, 6.0)


class Truncate(BitFlip):
    """The end of a voter's files is missing; found and refused like any other damage."""

    name = "truncate"


class OldDiskReturns(LoseDisk):
    """A voter is started, by mistake, with the state directory that was replaced; later with the right one again.

    While it runs it has forgotten what its successor promised and held, so it is one more lost disk. Where none was
    replaced yet, one is lost first.
    """

    name = "old-disk-returns"
    lasts_s = (0.5, 8.0)

    def begin(self) -> str | None:
        world = self.world
        if not _may_lose_a_disk(world):
            return None
        disks = [world.nodes[name].disk for name in world.voters]
        replaced = [disk.node for disk in disks if disk.was_replaced and not disk.lost]
        if not replaced:
            lost = super().begin()
            return None if lost is None else f"{lost}, whose disk is lost first"
        self.node = self.rng.choice(replaced)
        self._restart_on_the_other_disk(self.node)
        return self.node.name

    def end(self) -> None:
        assert self.node is not None
        if self.node.disk.outdated:
            self._restart_on_the_other_disk(self.node)
        else:
            super().end()

    def _restart_on_the_other_disk(self, node: Node) -> None:
        node.crash("its disk is exchanged")
        node.disk.swap()
        node.start()


def _may_lose_a_disk(world: World) -> bool:
    """Whether one more disk lost is still a minority; first sees which of the lost ones were made whole."""
    lost = 0
    for name in world.voters:
        node = world.nodes[name]
        if node.disk.lost and not node.disk.outdated:
            status = node.status()
            if status is not None and status.role in ("voter", "name server"):
                node.disk.lost = False
        lost += node.disk.lost
    return lost < (len(world.voters) - 1) // 2


class QuestionStorm(Nemesis):
    """An application in a loop: hundreds of questions at one node within a second."""

    name = "question-storm"
    lasts_s = (1.0, 2.0)
    questions = (100, 400)
    timeout_s = 3.0

    def begin(self) -> str | None:
        node = self.name_server_or_any()
        if node is None:
            return None
        world, keys = self.world, self.world.clients.habits.keys
        count = self.rng.randint(*self.questions)
        for number in range(count):
            client = world.clients.client_at(node, f"storm-{world.processed}-{number}")
            key = f"key-{self.rng.randrange(keys)}"
            world.push(world.t + self.rng.random(), self._ask, client, key)
        return f"{node.name} with {count}"

    def _ask(self, client: Client, key: str) -> None:
        if client.node.running and not self.world.clients.quiet:
            client.ask("config_get", {"key": key}, self.timeout_s)


ALL: tuple[type[Nemesis], ...] = (
    Kill, KillAtOnce, Pause, IsolateLeader, IsolateOne, Halves, MajoritiesRing, Bridge, OneWay, SwizzleClog, Flap,
    SlowDisk, DiskFull, DiskHung, FsyncEio, PowerLossOne, PowerLossAll, ClockJump, KillDuringRecovery,
    KillBetweenPersistAndSend, LoseDisk, ReplaceVoter, BadWeather, ForeignFrames,
    StaleTail, OldDiskReturns, QuestionStorm, KillDuringCompaction, BitFlip, Truncate,
)  # fmt: skip

DRAWN_APART: tuple[type[Nemesis], ...] = (*LATER_GROUP_NEMESES, *GROUP_DISK_NEMESES)
"""Thought of later: their choice comes from a source of its own, so that a seed keeps the enemies it had."""

EVERY: tuple[type[Nemesis], ...] = (*ALL, *GROUP_NEMESES, *DRAWN_APART, DrainNode)

BY_NAME: dict[str, type[Nemesis]] = {nemesis.name: nemesis for nemesis in EVERY}

HARMLESS_TO_MEMORY = (
    "pause", "isolate-leader", "isolate-one", "halves", "majorities-ring", "bridge", "one-way", "swizzle-clog",
    "flap", "bad-weather", "foreign-frames", "question-storm",
)  # fmt: skip
"""What may happen to a domain that keeps its directory in memory only and is to keep it."""
