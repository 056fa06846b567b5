"""Planted where durable groups meet their disks: what is said before it is written, and what a disk has lost."""

from __future__ import annotations

from typing import Any

import attrs

from groupsvcd.core.domain import member
from groupsvcd.core.nodegroups import entrance, group_carrier
from groupsvcd.core.records import AppendRecord, PromiseRecord

from ..disk import Log
from ..node import Node
from .bug import LOST, Planted, Replacement
from .group_recovery import ON_DISKS, always


def _say_before(kind: type) -> Replacement:
    """What hangs on the write of such a record is said at once."""

    def replacement(original: Any) -> Any:
        def persist(self: Any, *records: Any, then: Any = (), done: Any = None) -> None:
            if any(isinstance(record, kind) for record in records):
                self.turn.remember(then)
                then = ()
            original(self, *records, then=then, done=done)

        return persist

    return replacement


def _overlook_damage(original: Any, self: Any, group_id: int, attributes: Any, stored: Any) -> None:
    original(self, group_id, attributes, attrs.evolve(stored, damage=""))


def _without_checksums(original: Any, self: Any) -> Any:
    damage, self.damage = self.damage, ""
    picture = original(self)
    self.damage = damage
    return picture


def _try_again(original: Any, self: Any) -> None:
    disk = self.disk
    disk.error = disk.syncing = False
    batch, disk.batch = disk.batch, []
    self.persisted(batch)  # the second sync has succeeded, and the data is gone


def _fall_silent(original: Any, self: Any, *args: Any) -> Any:
    if self.turn.oldest_write_age <= self._timers.leader_silent:
        return original(self, *args)
    return None


GROUP_DISKS = (
    Planted(
        "group-held-before-disk", "Held is said before the entry is on disk", "acknowledged, then lost with the power",
        ("S1",), ((group_carrier.GroupCarrier, "persist", _say_before(AppendRecord)),),
        faults=("group-power-loss",), stage=ON_DISKS,
    ),
    Planted(
        "group-promise-before-disk", "a promise is spoken before it is on disk", "two promises of one epoch",
        ("L2",), ((group_carrier.GroupCarrier, "persist", _say_before(PromiseRecord)),),
        faults=("kill-group-leader",), stage=ON_DISKS,
    ),
    Planted(
        "group-serves-a-damaged-log", "a disk with a damaged log speaks as the server that had it",
        "stable entries are lost",
        ("S2",), ((entrance.Entrance, "come_back", always(_overlook_damage)),),
        faults=("group-bit-flip", "group-truncate"), stage=ON_DISKS,
    ),
    Planted(
        "group-store-without-checksums", "nobody looks whether a record is what was written", "wrong entry delivered",
        (*LOST, "B1"), ((Log, "picture", always(_without_checksums)),),
        faults=("group-bit-flip", "group-truncate", "group-power-loss"), stage=ON_DISKS, first_seed=33,
    ),
    Planted(
        "group-syncs-again", "a failed sync is tried again", "acknowledged, and on no disk",
        ("S3",), ((Node, "disk_failed", always(_try_again)),),
        faults=("group-fsync-eio",), stage=ON_DISKS,
    ),
    Planted(
        "group-full-disk-falls-silent", "a node with a full disk answers nobody", "it is declared down",
        ("S4",), ((member.Member, "on_leader_alive", always(_fall_silent)),),
        faults=("group-disk-full",), stage=attrs.evolve(ON_DISKS, gap_s=2.0),
    ),
)  # fmt: skip
