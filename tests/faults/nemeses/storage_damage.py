"""State that is not as it was written (S2): bits that have flipped, files that have lost their end.

A daemon is killed, its files are damaged, it is started again. What may follow: it starts, as the damage is nowhere or
in one group's entries, of which it then serves nothing; or it refuses its state, with the exit code and the words of
docs/OPERATIONS.md, and changes nothing. Then we do what these words say: the directory is moved away, and the daemon
starts with an empty one. It must not come up and say something else than it wrote, which the checkers would see, and it
must not break down in another way, which is seen here.

A damaged disk is one copy less. So this is done to one node at a time, when all others are well, and not to one that
has the only copy of a group: what is lost then is lost, and nobody promises anything else.
"""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groupsvc.errors import GroupServiceError
from groupsvcd.daemon import EXIT_STATE
from groupsvcd.io.reactor import EXIT_DISK

from ..nemesis import Scene
from .storage_base import StorageNemesis

FILES = ("state.db", "state.db-wal", "mark")
STARTS_S = 30.0
"""How long a daemon may take to answer, or to refuse, on a busy machine."""

WELL_S = 8.0
"""How long a strike waits for all to be well before it is left out."""


class DamageNemesis(StorageNemesis):
    """Kills, damages, starts, and replaces what is refused."""

    ends_with = frozenset({EXIT_STATE, EXIT_DISK})
    """It refuses its state; or SQLite comes upon the damage later, when it writes."""

    nodes_min = 3
    lasts_s = (0.5, 2.0)

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0
        self._damaged: set[str] = set()  # nodes, whatever was struck since

    def has_struck(self, done: Mapping[str, Any]) -> None:
        super().has_struck(done)
        self.struck = frozenset(self._damaged)

    @abstractmethod
    def hurt(self, file: Path, rng: random.Random) -> dict[str, Any]:
        """Damage it, and say how."""

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        node = rng.choice(scene.names)
        if not _all_are_well(scene) or _has_the_only_copy(scene, node):
            return None
        scene.cluster.kill(node)
        other = scene.others(node)[0]
        if _has_the_only_copy(scene, node, asked=other):  # it has come to be so in this moment
            scene.cluster.restart(node, wait=False)
            return {"target": node, "spared": True}
        directory = scene.state_directory(node)
        files = [directory / name for name in FILES if _size(directory / name)]
        file = rng.choices(files, [1 if file.name == "mark" else 4 for file in files])[0]
        done = {"target": node, "file": file.name, "bytes": _size(file), **self.hurt(file, rng)}
        self.bitten += 1
        self._damaged.add(node)
        scene.cluster.restart(node, wait=False)
        self._see_it_start(scene, node)
        return done

    def _see_it_start(self, scene: Scene, node: str) -> None:
        until = time.monotonic() + STARTS_S
        while time.monotonic() < until and scene.cluster.is_running(node):
            if scene.cluster.status(node) is not None:
                return
            time.sleep(0.05)
        code = scene.cluster.exit_code(node)
        if code != EXIT_STATE:
            words = scene.cluster.node(node).last_lines(5)
            self.failures.append(f"S2: {node} with damaged state ended with code {code}, not {EXIT_STATE}: {words}")
            if scene.cluster.is_running(node):
                scene.cluster.kill(node)
        self.refused += 1
        directory = scene.state_directory(node)
        directory.rename(directory.with_suffix(f".refused-{self.refused}"))
        scene.cluster.restart(node, wait=False)

    def heal(self, scene: Scene) -> None:
        for name in scene.names:
            if not scene.cluster.is_running(name):
                scene.cluster.restart(name, wait=False)


class BitFlip(DamageNemesis):
    """A daemon is killed, some bits of its state flip, and it starts again; what it refuses is replaced."""

    name = "bit-flip"

    def hurt(self, file: Path, rng: random.Random) -> dict[str, Any]:
        content = bytearray(file.read_bytes())
        places = sorted(rng.randrange(len(content) * 8) for _ in range(rng.choice([1, 1, 3, 30])))
        for place in places:
            content[place // 8] ^= 1 << place % 8
        file.write_bytes(content)
        return {"bits": places}


class Truncate(DamageNemesis):
    """A daemon is killed, a file of its state loses its end, and it starts again; what it refuses is replaced."""

    name = "truncate"

    def hurt(self, file: Path, rng: random.Random) -> dict[str, Any]:
        size = _size(file)
        kept = rng.choice([rng.randrange(size), max(0, size - rng.choice([1, 100, 4096, 4120]))])
        with file.open("r+b") as opened:
            opened.truncate(kept)
        return {"kept": kept}


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _all_are_well(scene: Scene) -> bool:
    """Whether every daemon is up, in the list of the name server, and no voter is blank; within some seconds."""
    until = time.monotonic() + WELL_S
    while time.monotonic() < until:
        statuses = [scene.cluster.status(name) for name in scene.names]
        roles = [status.role for status in statuses if status is not None and not status.suspended]
        up = max((sum(one.status == "up" for one in status.nodes) for status in statuses if status), default=0)
        if len(roles) == len(scene.names) == up and "blank voter" not in roles:
            return True
        time.sleep(0.2)
    return False


def _has_the_only_copy(scene: Scene, node: str, asked: str | None = None) -> bool:
    """Whether a group would lose too much with its disk, or nobody says."""
    for name in scene.clients.group_names:
        try:
            record = scene.cluster.node(asked or node).connection().look_up(name, timeout=2.0)
        except GroupServiceError:
            scene.cluster.node(asked or node).disconnect()
            return True
        if record.exists and node in record.servers and len(record.servers) < 2:
            return True
    return False
