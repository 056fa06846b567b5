"""Machines that lose their power: what was not synced is gone (S1).

A state directory is the root of a file system on a loop device, ext4 or, where its tools are, XFS on every second node.
The file system is shut down without its log being written, which is what the disk of a machine without power is like;
then the daemon is killed, and the programs on its machine, and a copy of the file system is mounted. Nothing is
written to it in between: a daemon that sees its disk fail may end by itself before we end it. It is a copy, because
somebody else on the machine may have a namespace with the old mount in it, and then the same file would be mounted as
it is there: shut down.

A negative control is planted: a store that does not sync its transactions (``planted.py``) must turn these runs red.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

from groupsvcd.daemon import EXIT_STATE
from groupsvcd.io.reactor import EXIT_DISK

from ..nemesis import Missing, Scene
from ..wires import need, need_root
from .storage_base import StorageNemesis

GO_DOWN = 0x8004587D
"""The ioctl of XFS (XFS_IOC_GOINGDOWN), which ext4 and others know by the same number."""
WITHOUT_LOG = struct.pack("I", 2)

MADE_BY = {"ext4": (64 << 20, ("mkfs.ext4", "-q", "-F", "-m", "0")), "xfs": (320 << 20, ("mkfs.xfs", "-q"))}
"""Bytes of a sparse file (XFS wants 300 MB at least), and what makes it a file system."""

OPTIONS = {"ext4": "loop,commit=300", "xfs": "loop,nouuid"}
"""ext4 writes its log every five seconds otherwise, also for those who do not ask; XFS mounts no copy otherwise."""


class PowerNemesis(StorageNemesis):
    """Gives each daemon a disk that can lose its power."""

    ends_with = frozenset({EXIT_DISK, EXIT_STATE})
    """The second of one that was starting, and could read nothing."""

    def look(self) -> None:
        need_root()
        need("mkfs.ext4", "mount", "umount")
        if not Path("/dev/loop-control").exists():
            raise Missing("there are no loop devices here (/dev/loop-control)")

    def prepare(self, scene: Scene) -> None:
        self._disks: dict[str, tuple[str, Path]] = {}  # by node: options, and the file
        kinds = ("ext4", "xfs") if shutil.which("mkfs.xfs") else ("ext4",)
        for number, name in enumerate(scene.names):
            kind = kinds[number % len(kinds)]
            size, maker = MADE_BY[kind]
            image = scene.directory / f"{name}.{kind}"
            with image.open("wb") as file:
                file.truncate(size)
            done = subprocess.run([*maker, str(image)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise Missing(f"{maker[0]} cannot be done here: {done.stderr.strip()}")
            self._disks[name] = (OPTIONS[kind], image)
            self._mount(scene, name)

    def _mount(self, scene: Scene, name: str) -> None:
        options, image = self._disks[name]
        where = scene.state_directory(name)
        self.mounted(["-o", options, str(image)], where)
        where.chmod(0o700)

    def _mount_copy(self, scene: Scene, name: str) -> None:
        """What is on the disk when the power is there again."""
        self.unmounted(scene.state_directory(name))
        options, old = self._disks[name]
        copy = old.with_name(f"{name}.{self.bitten}")
        subprocess.run(["cp", "--sparse=always", str(old), str(copy)], check=True)
        old.unlink()
        self._disks[name] = (options, copy)
        self._mount(scene, name)
        self.bitten += 1

    def power_off(self, scene: Scene, names: list[str]) -> None:
        """Of these machines, at one moment."""
        for name in names:
            where = os.open(scene.state_directory(name), os.O_RDONLY | os.O_DIRECTORY)
            fcntl.ioctl(where, GO_DOWN, WITHOUT_LOG)
            os.close(where)
        for name in names:
            scene.cluster.kill(name)
            for who in scene.clients.at(name):
                scene.clients.kill(who)
        for name in names:
            self._mount_copy(scene, name)

    def heal(self, scene: Scene) -> None:
        scene.wires.heal()
        for name in scene.names:
            if not scene.cluster.is_running(name):
                scene.cluster.restart(name, wait=False)
        scene.clients.replace_the_dead()


class PowerLossOne(PowerNemesis):
    """One machine loses its power and falls silent, that of the name server most often; all on it starts anew."""

    name = "power-loss-one"
    lasts_s = (0.3, 5.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng)
        if node is None:
            return None
        scene.wires.unplug(node)
        self.power_off(scene, [node])
        return {"target": node}


class PowerLossAll(PowerNemesis):
    """All machines lose their power at one moment; all start anew."""

    name = "power-loss-all"
    lasts_s = (0.2, 2.0)
    gap_s = (5.0, 9.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        names = rng.sample(scene.names, len(scene.names))
        self.power_off(scene, names)
        return {"target": names}
