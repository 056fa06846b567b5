"""The simulated disk keeps what was synced and refuses what no engine may ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from groupsvc.testing.sim import World
from groupsvc.testing.sim.disk import Disk, DiskCorrupted
from groupsvcd.core.effects import Persist
from groupsvcd.core.records import (
    AppendRecord,
    CheckpointRecord,
    NodeRecord,
    OpenRecord,
    PromiseRecord,
    StoredStream,
)

TOY = "tests.sim.toy_engine:ToyEngine"
DOMAIN = bytes(range(16))


def _world() -> World:
    world = World(1, 1, engine=TOY, start_within_s=None)
    world.nodes["n1"].start()
    world.run(until=1.0)
    world.nodes["n1"].disk.logs.clear()
    return world


@pytest.fixture
def disk() -> Disk:
    return _world().nodes["n1"].disk


def _write(disk: Disk, *records: Any) -> StoredStream:
    for record in records:
        disk.apply(record, seen=True)
    return disk.stored().streams[0]


def test_records_add_up_to_what_a_restart_finds(disk: Disk) -> None:
    stream = _write(disk, PromiseRecord(0, 3), OpenRecord(0, 3, 0, (b"a", b"b")), AppendRecord(0, 3, (b"c",)))
    assert StoredStream(promised=3, accepted=3, entries=(b"a", b"b", b"c")) == stream


def test_an_open_replaces_the_tail_in_one_step(disk: Disk) -> None:
    stream = _write(disk, AppendRecord(0, 1, (b"a", b"b", b"c")), OpenRecord(0, 5, 1, (b"x",)))
    assert (5, 5, (b"a", b"x")) == (stream.promised, stream.accepted, stream.entries)


def test_a_checkpoint_drops_what_is_no_longer_needed(disk: Disk) -> None:
    stream = _write(disk, AppendRecord(0, 1, (b"a", b"b", b"c")), CheckpointRecord(0, 2, b"state", 1))
    assert (1, (b"b", b"c"), 2, b"state") == (stream.base, stream.entries, stream.checkpoint_seq, stream.checkpoint)


def test_a_checkpoint_beyond_the_log_empties_it(disk: Disk) -> None:
    _write(disk, AppendRecord(0, 1, (b"a",)), CheckpointRecord(0, 9, b"state", 9))
    stream = _write(disk, AppendRecord(0, 10, (b"j",)))
    assert (9, (b"j",)) == (stream.base, stream.entries)


@pytest.mark.parametrize(
    "records",
    [
        (PromiseRecord(0, 3), PromiseRecord(0, 2)),
        (AppendRecord(0, 2, (b"b",)),),
        (PromiseRecord(0, 3), OpenRecord(0, 2, 0, ())),
        (OpenRecord(0, 2, 4, ()),),
        (CheckpointRecord(0, 2, b"", 3),),
    ],
    ids=["lower promise", "gap", "open below promise", "keep what is not there", "drop beyond the checkpoint"],
)
def test_what_cannot_be_is_refused(disk: Disk, records: tuple[Any, ...]) -> None:
    with pytest.raises(DiskCorrupted):
        _write(disk, *records)


def test_a_node_record_is_who_the_node_is_and_incarnations_only_grow(disk: Disk) -> None:
    newer = disk.stored().incarnation + 7
    disk.apply(NodeRecord(newer, DOMAIN), seen=True)
    assert (newer, DOMAIN) == (disk.stored().incarnation, disk.stored().domain)
    with pytest.raises(DiskCorrupted):
        disk.apply(NodeRecord(newer - 1, DOMAIN), seen=True)


def _one_write(harm: Callable[[World], None], seconds: float = 0.0001) -> set[int]:
    """Which promises a disk may hold after a write was begun, harm done, and time given."""
    outcomes = set()
    for attempt in range(20):
        world = _world()
        node = world.nodes["n1"]
        node.rng.seed(attempt)
        node.disk.submit(Persist(99, (PromiseRecord(0, 8),)))
        node.disk.submit(Persist(100, (PromiseRecord(0, 9),)))
        world.run(until=world.t + seconds)
        harm(world)
        log = node.disk.logs.get(0)
        outcomes.add(log.promised if log is not None else 0)
    return outcomes


def test_a_kill_during_a_sync_leaves_all_of_it_or_nothing_and_never_what_waited() -> None:
    assert {0, 8} == _one_write(lambda world: world.nodes["n1"].crash("killed"))


def test_a_full_disk_completes_nothing_until_there_is_space() -> None:
    world = _world()
    disk = world.nodes["n1"].disk
    disk.stick()
    disk.submit(Persist(99, (PromiseRecord(0, 8),)))
    world.run(until=world.t + 5.0)
    assert not disk.logs
    disk.unstick()
    world.run(until=world.t + 1.0)
    assert 8 == disk.logs[0].promised


def test_a_sync_error_ends_the_process_and_keeps_nothing() -> None:
    """S3: stop, do not try again."""
    world = _world()
    node = world.nodes["n1"]
    node.disk.error = True
    node.disk.submit(Persist(99, (PromiseRecord(0, 8),)))
    world.run(until=world.t + 1.0)
    assert not node.running
    assert not node.disk.logs


def test_a_lost_disk_comes_back_under_another_state_id(disk: Disk) -> None:
    before = disk.state_id
    disk.make_blank()
    assert before != disk.state_id
    assert 0 == disk.stored().incarnation


def test_only_a_disk_that_held_the_domain_stream_was_replaced() -> None:
    """One that was lost before the domain was formed comes back as a new disk like any other, and may be admitted."""
    world = World(seed=1, nodes=1, start_within_s=None)
    disk = world.nodes["n1"].disk
    assert not disk.was_replaced
    disk.replace_by_blank()
    assert not disk.was_replaced
    disk.apply(OpenRecord(0, 1, 0, (b"entry",)), seen=True)
    disk.replace_by_blank()
    assert disk.was_replaced
