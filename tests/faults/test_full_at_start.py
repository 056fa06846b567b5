"""A daemon that is started while its disk is full: it ends, and who supervises it tries again, until there is room."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groupsvc.testing import LocalDomain
from groupsvcd.io.reactor import EXIT_DISK

from .nemeses.storage_base import StorageNemesis
from .nemeses.storage_room import fill
from .nemesis import Scene
from .wires import Missing, need_root

ENDS_S = 30.0


class Disk(StorageNemesis):
    """A small one, to be filled by hand."""

    def strike(self, scene: Scene, rng: random.Random) -> dict[str, Any] | None:
        return None


@pytest.fixture
def domain(tmp_path: Path) -> Iterator[LocalDomain]:
    """Of one node, whose state directory is a small file system of its own."""
    disk = Disk()
    try:
        need_root()
        disk.mounted(["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"], tmp_path / "n1.state")
    except Missing as missing:
        pytest.skip(str(missing))
    try:
        with LocalDomain(nodes=1, directory=tmp_path) as running:
            yield running
    finally:
        disk.close(None)  # type: ignore[arg-type]


def test_a_start_on_a_full_disk_is_tried_again_and_succeeds_when_there_is_room(domain: LocalDomain) -> None:
    """S4: it is not refused for good (exit code 4), as systemd would leave it stopped then."""
    ballast = domain.directory / "n1.state" / "ballast"
    domain.kill("n1")
    fill(ballast)
    domain.restart("n1", wait=False)
    until = time.monotonic() + ENDS_S
    while domain.exit_code("n1") is None and time.monotonic() < until:
        time.sleep(0.05)
    assert EXIT_DISK == domain.exit_code("n1")
    assert "the disk of the state directory is full" in domain.logs("n1")
    ballast.unlink()
    domain.restart("n1")
