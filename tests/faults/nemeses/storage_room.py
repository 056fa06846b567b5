"""Disks without room (S4): nothing is acknowledged that is not written, everybody stays up, and it goes on with room.

A state directory is a small tmpfs, and what fills it a file beside the state. Nothing else is done in such a run, so
the checker of S4 reads every node that is declared down as one that a full disk has cost its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
from pathlib import Path
from typing import Any

from ..nemesis import Scene
from ..wires import need_root
from .storage_base import StorageNemesis

ROOM_BYTES = 48 << 20
"""More than a run of a minute writes; but for what a full disk leaves waiting."""

SAYS_SO = "the disk of the state directory is full"


class DiskFull(StorageNemesis):
    """The disks of some daemons are full, one, a majority or all, and have room again later."""

    name = "disk-full"
    lasts_s = (2.0, 7.0)
    gap_s = (2.0, 4.0)

    def look(self) -> None:
        need_root()

    def prepare(self, scene: Scene) -> None:
        for name in scene.names:
            self.mounted(["-t", "tmpfs", "-o", f"size={ROOM_BYTES},mode=700", "tmpfs"], scene.state_directory(name))

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        chosen = rng.sample(scene.names, rng.choice([1, len(scene.names) // 2 + 1, len(scene.names)]))
        for name in chosen:
            fill(_ballast(scene, name))
        self._full = chosen
        return {"target": chosen}

    def heal(self, scene: Scene) -> None:
        for name in scene.names:
            _ballast(scene, name).unlink(missing_ok=True)
        self.bitten = sum(scene.cluster.logs(name).count(SAYS_SO) for name in scene.names)


def _ballast(scene: Scene, name: str) -> Path:
    return scene.state_directory(name) / "ballast"


def fill(path: Path) -> None:
    """Down to the last byte."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with contextlib.closing(os.fdopen(fd, "wb", buffering=0)) as file:
        for piece in (1 << 20, 1 << 12, 1):
            try:
                while file.write(bytes(piece)):
                    pass
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
