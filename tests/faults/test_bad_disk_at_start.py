"""A daemon that is started while its disk is full, or fails: it ends, and who supervises it tries again."""

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
from .shims import library
from .sync_orders import SyncOrders
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
    assert EXIT_DISK == _ended(domain)
    assert "the disk of the state directory is full" in domain.logs("n1")
    ballast.unlink()
    domain.restart("n1")


def test_a_sync_that_fails_at_the_start_is_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3, as later: exit code 5, and no sync behind the one that failed. It was 4, and the database was closed."""
    disk = SyncOrders(tmp_path / "orders")
    try:
        monkeypatch.setenv("LD_PRELOAD", str(library("sync_shim", tmp_path)))
    except Missing as missing:
        pytest.skip(str(missing))
    monkeypatch.setenv("GSF_SYNC_ORDERS", str(disk.path))
    with LocalDomain(nodes=1, directory=tmp_path / "domain") as domain:
        domain.kill("n1")
        disk.fail()
        domain.restart("n1", wait=False)
        assert EXIT_DISK == _ended(domain)
        assert 1 == disk.failed
        assert "writing to the state directory failed" in domain.logs("n1")
        disk.obey_the_disk()
        domain.restart("n1")
    disk.close()


def _ended(domain: LocalDomain) -> int | None:
    until = time.monotonic() + ENDS_S
    while domain.exit_code("n1") is None and time.monotonic() < until:
        time.sleep(0.05)
    return domain.exit_code("n1")
