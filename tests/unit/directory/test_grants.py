"""Who is granted a view when nodes come and go (GS-09)."""

from __future__ import annotations

from groupsvcd.core.domain.commands import ActivateView, NodeUp
from tests.unit.directory.scene import Scene


def scene_with_group(**attributes: object) -> tuple[Scene, int]:
    """Nodes x, y, z, w are up; "g" is served by x (leader), y, z with k 2."""
    scene = Scene()
    scene.up("a", "x", "y", "z", "w")
    durable = attributes.get("durable") is True
    group_id = scene.form("g", "x", **attributes)  # type: ignore[arg-type]
    servers = [(name, f"disk-{name}" if durable else 1) for name in ("x", "y", "z")]
    scene.serve(group_id, *servers, k=2)
    return scene, group_id


def test_the_next_server_in_order_leads_after_the_leader_is_down() -> None:
    scene, group_id = scene_with_group()
    active = scene.group(group_id).active
    scene.down("x")
    group = scene.group(group_id)
    assert group.pending is not None
    assert (scene.seq, "y", (("y", 1), ("z", 1)), 2) == (
        group.pending.epoch, group.pending.leader, group.pending.servers, group.pending.k
    )  # fmt: skip
    assert active == group.active
    assert active.epoch == group.pending.base
    assert scene.seq == group.newest_epoch


def test_cascading_failures_grant_again_from_the_same_base() -> None:
    scene, group_id = scene_with_group()
    base = scene.group(group_id).active.epoch
    scene.down("x")
    scene.down("y")
    pending = scene.group(group_id).pending
    assert pending is not None
    assert ("z", (("z", 1),), 1, base) == (pending.leader, pending.servers, pending.k, pending.base)


def test_a_superseded_grant_cannot_be_activated() -> None:
    """The short cut that lets two leaders go on."""
    scene, group_id = scene_with_group()
    scene.down("x")
    superseded = scene.group(group_id).newest_epoch
    scene.down("y")
    before = scene.group(group_id)
    answer = scene.order(ActivateView(((group_id, superseded),)))
    assert not answer["ok"]
    assert before.newest_epoch == answer["activations"][0]["group"]["newest_epoch"]
    assert before == scene.group(group_id)


def test_a_failed_server_of_the_pending_view_only_is_replaced_too() -> None:
    scene, group_id = scene_with_group()
    scene.propose(group_id, ("x", 1), ("w", 1))
    scene.down("w")
    pending = scene.group(group_id).pending
    assert pending is not None
    assert (scene.seq, (("x", 1), ("y", 1), ("z", 1))) == (pending.epoch, pending.servers)


def test_the_leader_of_a_grant_is_one_that_has_the_stream_if_there_is_any() -> None:
    scene, group_id = scene_with_group()
    scene.propose(group_id, ("w", 1), ("x", 1))
    scene.down("y")
    pending = scene.group(group_id).pending
    assert pending is not None
    assert ("x", (("w", 1), ("x", 1), ("z", 1))) == (pending.leader, pending.servers)


def test_a_node_outside_both_views_changes_nothing() -> None:
    scene, group_id = scene_with_group()
    before = scene.group(group_id)
    scene.down("w")
    assert before == scene.group(group_id)


def test_without_any_server_up_the_pending_view_is_withdrawn() -> None:
    scene, group_id = scene_with_group()
    for name in ("x", "y", "z"):
        scene.down(name)
    group = scene.group(group_id)
    assert group.pending is None
    assert not scene.order(ActivateView(((group_id, group.newest_epoch),)))["ok"]
    scene.up("x", incarnation=2)
    assert group == scene.group(group_id)


def test_a_newer_incarnation_of_a_volatile_server_is_no_server() -> None:
    """A restarted server without its memory does not count as the one it was."""
    scene, group_id = scene_with_group()
    scene.up("x", incarnation=2)
    pending = scene.group(group_id).pending
    assert pending is not None
    assert ("y", (("y", 1), ("z", 1)), scene.seq) == (pending.leader, pending.servers, pending.epoch)


def test_a_restarted_server_of_a_durable_group_comes_back_with_its_disk() -> None:
    scene, group_id = scene_with_group(durable=True)
    scene.down("x")
    pending = scene.group(group_id).pending
    assert pending is not None
    assert (("y", "disk-y"), ("z", "disk-z")) == pending.servers
    scene.up("x", incarnation=2)
    pending = scene.group(group_id).pending
    assert pending is not None
    assert ("y", (("y", "disk-y"), ("z", "disk-z"), ("x", "disk-x"))) == (pending.leader, pending.servers)
    assert scene.seq == pending.epoch


def test_a_durable_server_that_restarts_unnoticed_gets_a_new_epoch() -> None:
    scene, group_id = scene_with_group(durable=True)
    scene.up("x", incarnation=2)
    pending = scene.group(group_id).pending
    assert pending is not None
    assert (scene.seq, "x", 3) == (pending.epoch, pending.leader, len(pending.servers))


def test_a_durable_group_of_one_goes_on_when_its_server_returns() -> None:
    scene = Scene()
    scene.up("x")
    group_id = scene.form("g", "x", durable=True, replicas=1)
    scene.down("x")
    assert scene.group(group_id).pending is None
    scene.up("x", incarnation=2)
    pending = scene.group(group_id).pending
    assert pending is not None
    assert (scene.seq, (("x", "disk-x"),)) == (pending.epoch, pending.servers)


def test_a_durable_server_with_another_disk_is_no_server() -> None:
    scene, group_id = scene_with_group(durable=True)
    scene.down("x")
    before = scene.group(group_id)
    scene.up("x", incarnation=2, state_id="another")
    assert before == scene.group(group_id)


def test_a_durable_group_with_enough_servers_is_left_alone() -> None:
    scene, group_id = scene_with_group(durable=True, replicas=2)
    scene.down("x")
    before = scene.group(group_id)
    scene.up("x", incarnation=2)
    assert before == scene.group(group_id)


def test_a_grant_has_no_more_servers_than_the_group_wants() -> None:
    scene, group_id = scene_with_group(replicas=2)
    scene.propose(group_id, ("w", 1), ("x", 1))
    scene.down("y")
    pending = scene.group(group_id).pending
    assert pending is not None
    assert (("w", 1), ("x", 1)) == pending.servers


def test_grants_that_wait_are_listed_until_activated() -> None:
    scene, group_id = scene_with_group()
    assert () == scene.directory.pending_grants()
    scene.down("x")
    assert [group_id] == [group.id for group in scene.directory.pending_grants()]
    scene.activate(group_id)
    assert () == scene.directory.pending_grants()


def test_one_entry_grants_at_most_once_per_group() -> None:
    scene, group_id = scene_with_group(durable=True)
    before = scene.group(group_id).newest_epoch
    scene.order(NodeUp("y", 2, "disk-y", "tcp://y", voter=False))
    pending = scene.group(group_id).pending
    assert pending is not None
    assert before == pending.replaces
