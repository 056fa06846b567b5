"""What enemies of disks have in common; they are in ``storage_*.py`` beside this.

Node A's state directory is ``scene.state_directory("n1")``. It is made, with mode 0700, when the daemon is started
for the first time, unless it is there by then. A nemesis of storage gets hold of it in one of three ways:

- mount something there (a small tmpfs, an ext4 on a loop device), and unmount it in ``close``: ``mounted``;
- load a library into the daemon, or start it under ``strace``: ``scene.outfits[node].environment`` and ``.around``. A
  program that runs the daemon as its child gets our signals in its place, so it must pass them on (strace does: -D);
- touch files between a kill and a start: ``scene.cluster.kill(node)``, then the files, then
  ``scene.cluster.restart(node, wait=False)``; or ``scene.outfits[node].before_start``.

Rules. A majority of the voters keeps what it has written, whatever is done at one time. A daemon that must end by
itself (EIO) is expected to: ``ends_with`` has the code. A broken promise that only the nemesis can see (a sync after
one that failed) is told by ``failures``, and how often its harm has reached a daemon by ``bitten``. What is lost for
good on the disks of a durable group is told to the checkers by a line ``disks_lost`` with the group's id and name, as
in the simulator. The daemons write ``boot`` with their state id, and ``damaged`` for what their store found wrong, by
themselves (``traced_daemon.py``).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..nemesis import Missing, Nemesis, Scene


class StorageNemesis(Nemesis):
    """One that is after state directories."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self._mounted: list[Path] = []
        self.failures: list[str] = []
        self.bitten = 0

    def found(self) -> list[str]:
        return self.failures

    def bites(self) -> int | None:
        return self.bitten

    def mounted(self, what: list[str], where: Path) -> None:
        """``mount`` with these arguments, there; undone by ``close``."""
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        done = subprocess.run(["mount", *what, str(where)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"mount {' '.join(what)} cannot be done here: {done.stderr.strip()}")
        self._mounted.append(where)

    def unmounted(self, where: Path) -> None:
        """Nothing is mounted there any more; whoever used it has ended."""
        subprocess.run(["umount", str(where)], check=True)
        self._mounted.remove(where)

    def close(self, scene: Scene) -> None:
        for where in reversed(self._mounted):
            subprocess.run(["umount", "--lazy", str(where)], check=False)
        self._mounted.clear()
