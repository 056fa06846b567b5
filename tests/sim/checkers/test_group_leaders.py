"""L1 – L5 and S1 of groups turn red, each alone, on the bug that is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from .group_story import GROUP, GroupStory, forced_group, honest_group
from .story import Lines, changed, find, inserted, red, renumbered, without


def test_l1_sees_two_leaders_of_one_epoch() -> None:
    lines = honest_group()
    place = find(lines, "stable", group=GROUP, epoch=20, seq=12)
    assert {"L1"} == red(changed(lines, place, node="f"))


def test_l1_sees_a_leader_that_leads_on_as_another_incarnation() -> None:
    lines = honest_group()
    place = find(lines, "ordered", group=GROUP, epoch=20, seq=12)
    assert "L1" in red(changed(lines, place, inc=2))


def test_l1_sees_a_number_given_twice() -> None:
    lines = honest_group()
    place = find(lines, "ordered", group=GROUP, epoch=20, seq=12)
    assert {"L1"} == red(inserted(lines, place + 1, lines[place]))


def test_l2_sees_an_epoch_used_by_two() -> None:
    lines = honest_group()
    place = find(lines, "spoke", group=GROUP, epoch=20, args={"kind": "Order"})
    assert {"L2"} == red(inserted(lines, place + 1, changed([lines[place]], 0, node="f")[0]))


def test_l3_sees_a_server_hold_below_its_promise() -> None:
    lines = honest_group()
    held = lines[find(lines, "held", group=GROUP, epoch=12, seq=8, node="e")]
    place = find(lines, "promise", group=GROUP, epoch=20, node="e")
    assert {"L3"} == red(inserted(lines, place + 1, held))


def test_a_new_incarnation_is_not_bound_by_the_old_ones_promise() -> None:
    """d promised 20 before it crashed; what it does as another process it promises anew."""
    lines = honest_group()
    promise = changed([lines[find(lines, "promise", group=GROUP, epoch=20, node="e")]], 0, node="d")[0]
    lines = inserted(lines, find(lines, "crash", node="d"), changed([promise], 0, epoch=40)[0])
    assert set() == red(lines)


def test_l4_sees_a_stable_entry_missing_from_the_recovered_log() -> None:
    lines = honest_group()
    place = find(lines, "recovered", group=GROUP, epoch=20)
    lines = without(lines[: place + 1], lambda line: line.op == "delivered" and line.seq == 8)
    place = find(lines, "recovered", group=GROUP, epoch=20)
    assert {"L4"} == red(changed(lines, place, args={"base": 7, "last": 7, "tail": []}), converged=False)


def test_l4_sees_a_deposed_leader_announce_what_its_successor_lacks() -> None:
    """The announcement comes after the recovery: a Held that was long on its way, of one who should have told."""
    lines = honest_group()
    place = find(lines, "recovered", group=GROUP, epoch=20)
    lines = without(lines[: place + 1], lambda line: line.op in ("delivered", "crash") and line.seq in (0, 8))
    announced = lines[find(lines, "stable", group=GROUP, epoch=12, seq=8)]
    lines = without(lines, lambda line: line is announced)
    place = find(lines, "recovered", group=GROUP, epoch=20)
    lines = changed(lines, place, args={"base": 7, "last": 7, "tail": []})
    assert set() == red(lines, converged=False)
    assert {"L4"} == red(inserted(lines, len(lines), announced), converged=False)


def test_l5_sees_a_leader_order_on_below_the_epoch_it_has_promised() -> None:
    lines = honest_group()
    crash = find(lines, "crash", node="d")
    promise = changed([lines[find(lines, "promise", group=GROUP, epoch=20, node="e")]], 0, node="d")[0]
    ordered = changed([lines[find(lines, "ordered", group=GROUP, seq=8)]], 0, seq=9)[0]
    assert set() == red(inserted(lines, crash, ordered, promise))
    assert {"L5"} == red(inserted(lines, crash, promise, ordered))


def test_l5_sees_one_that_is_gone_deliver_on() -> None:
    lines = forced_group()
    place = find(lines, "delivered", group=GROUP, node="e", seq=9)
    late = lines[place]
    rest = [line for at, line in enumerate(lines) if at != place]
    gone = find(rest, "node_gone", args={"name": "e", "inc": 1})
    assert "L5" in red(inserted(rest, gone + 1, late), converged=False)


@pytest.mark.parametrize("node", ["d", "e"])
def test_s1_sees_an_entry_announced_that_too_few_hold(node: str) -> None:
    """d leads. It has numbered the entry, but as long as it lacks the payload it holds no more than anybody else."""
    lines = without(honest_group(), lambda line: (line.op, line.node, line.epoch, line.seq) == ("held", node, 12, 8))
    assert {"S1"} == red(lines)


def test_s1_counts_only_the_processes_that_the_view_names() -> None:
    """e was restarted without its memory and holds in the name of the one it was."""
    lines = honest_group()
    place = find(lines, "held", group=GROUP, epoch=12, seq=8, node="e")
    assert {"S1"} == red(changed(lines, place, inc=5))


# --- Durable groups: a server is a disk ---


def _on_disk(lines: Lines) -> Lines:
    """The same history of a durable group: servers are disks, and what is held or promised was written before."""
    result: Lines = []
    for line in lines:
        if line.op == "view_active":
            servers = [[name, f"{name}-1"] for name, _ in line.args["servers"]]
            line = changed([line], 0, args={**line.args, "servers": servers})[0]
        written: dict[str, Any] = {"held": "append", "promise": "promise", "view_installed": "open"}
        if line.group == GROUP and line.op in written:
            result.append(changed([line], 0, op="persisted", args={"record": written[line.op]})[0])
        if line.group == GROUP and line.op == "spoke" and line.args["kind"] == "Order":
            result.append(changed([line], 0, op="persisted", args={"record": "promise"})[0])
        result.append(line)
    return renumbered(result)


def test_an_honest_history_of_a_durable_group_passes() -> None:
    assert set() == red(_on_disk(honest_group()))


@pytest.mark.parametrize("record, invariant", [("promise", "L2"), ("append", "S1")])
def test_l2_and_s1_see_what_was_said_before_it_was_written(record: str, invariant: str) -> None:
    lines = _on_disk(honest_group())
    place = next(
        at for at, line in enumerate(lines)
        if line.op == "persisted" and line.args["record"] == record and line.node == "f" and line.epoch == 20
    )  # fmt: skip
    rest = [line for at, line in enumerate(lines) if at != place]
    assert {invariant} == red(renumbered(rest), converged=False)


def test_a_disk_that_comes_back_is_the_server_it_was() -> None:
    """S1: e restarts in epoch 12; in a durable group its Held still counts."""
    s = GroupStory("d", "e", "f")
    s.three_servers()
    s.crash("e")
    s.boot("e")
    s.order_one(12, 6, "d", ("e",), ("d",))
    assert {"S1"} == red(s.lines, converged=False)
    assert "S1" not in red(_on_disk(s.lines), converged=False)
