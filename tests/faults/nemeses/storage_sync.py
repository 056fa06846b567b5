"""Disks whose syncs are late, and disks whose syncs fail.

S3, by what the disk itself has counted: the first sync that is answered EIO is the last one that its daemon asks for,
and the daemon ends, with the exit code that says so. A second one would be PostgreSQL's old mistake: it may well
succeed while what was to be synced is gone.
"""

from __future__ import annotations

import random
import time
from typing import Any

from groupsvcd.io.reactor import EXIT_DISK

from ..nemesis import Scene
from ..shims import compiler, library
from ..sync_orders import SyncOrders
from .storage_base import StorageNemesis

ENDS_S = 20.0
"""How long a daemon may take to end on a busy machine after a sync of its has failed."""


class SyncNemesis(StorageNemesis):
    """Gives each daemon a disk that obeys."""

    def look(self) -> None:
        compiler()

    def prepare(self, scene: Scene) -> None:
        shim = library("sync_shim", scene.directory)
        self.disks = {name: SyncOrders(scene.directory / f"{name}.orders") for name in scene.names}
        for name, disk in self.disks.items():
            scene.outfits[name].load(shim, GSF_SYNC_ORDERS=str(disk.path))

    def close(self, scene: Scene) -> None:
        for disk in getattr(self, "disks", {}).values():
            disk.close()
        super().close(scene)


class SlowDisk(SyncNemesis):
    """Each sync of one or more daemons takes longer, by 20 ms up to some seconds."""

    name = "slow-disk"
    lasts_s = (2.0, 7.0)

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.choice([1, 1, len(scene.names) // 2 + 1, len(scene.names)]))
        delay_s = rng.choice([0.02, 0.2, 0.8, 3.0])
        for name in chosen:
            self.disks[name].delay(delay_s)
        return {"target": chosen, "delay_s": delay_s}

    def heal(self, scene: Scene) -> None:
        self.bitten += sum(disk.delayed for disk in self.disks.values())
        for disk in self.disks.values():
            disk.obey_the_disk()


class FsyncEio(SyncNemesis):
    """The next sync of a daemon fails, that of the name server most often; it ends, and starts on a mended disk."""

    name = "fsync-eio"
    lasts_s = (0.5, 3.0)
    ends_with = frozenset({EXIT_DISK})

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = scene.leader_or_any(rng)
        if node is None:
            return None
        self.disks[node].fail()
        return {"target": node}

    def heal(self, scene: Scene) -> None:
        for name, disk in self.disks.items():
            if disk.failed:
                self.bitten += 1
                self._judge(scene, name, disk)
            disk.obey_the_disk()
            if not scene.cluster.is_running(name):
                scene.cluster.restart(name, wait=False)

    def _judge(self, scene: Scene, name: str, disk: SyncOrders) -> None:
        until = time.monotonic() + ENDS_S
        while scene.cluster.is_running(name) and time.monotonic() < until:
            time.sleep(0.02)
        code = scene.cluster.exit_code(name)
        if code is None:
            self.failures.append(f"S3: {name} still runs {ENDS_S:.0f} s after a sync of its disk has failed")
            scene.cluster.kill(name)
        elif code != EXIT_DISK:
            self.failures.append(f"S3: {name} ended with code {code}, and not {EXIT_DISK}, after a sync has failed")
        if disk.failed > 1:
            self.failures.append(f"S3: {name} asked for {disk.failed - 1} more syncs after one had failed")
