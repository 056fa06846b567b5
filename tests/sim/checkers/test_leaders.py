"""L1 – L5 and L7 turn red, each alone, on the bug that is theirs."""

from __future__ import annotations

import msgspec

from .story import VOTERS, Story, changed, find, honest, inserted, red, without


def three_voters() -> Story:
    """a leads epoch 1; nothing has been ordered."""
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    return s


def test_l1_sees_two_authors_of_one_epoch() -> None:
    lines = honest()
    place = find(lines, "ordered", seq=2)
    assert {"L1"} == red(changed(lines, place, node="c"))


def test_l1_sees_a_number_given_twice() -> None:
    lines = honest()
    place = find(lines, "ordered", seq=2)
    assert {"L1"} == red(inserted(lines, place, lines[place]))


def test_l1_sees_a_restarted_leader_go_on_in_its_old_epoch() -> None:
    s = three_voters()
    s.order(1, 1, "a", "b", "c")
    s.crash("a")
    s.boot("a")
    s.add("a", "ordered", epoch=1, seq=2, crc=2)
    assert {"L1"} == red(s.lines, converged=False)


def test_l2_sees_a_promise_spoken_before_it_is_on_disk() -> None:
    lines = without(honest(), lambda line: line.op == "persisted" and line.node == "c" and line.seq == 0)
    assert {"L2"} == red(lines)


def test_l2_does_not_count_a_promise_of_a_lost_disk() -> None:
    s = three_voters()
    s.crash("c")
    s.boot("c", disk=2)
    s.spoke("c", "Held", 1)
    assert {"L2"} == red(s.lines, converged=False)


def test_l2_sees_an_epoch_used_by_two_leaders() -> None:
    lines = honest()
    place = find(lines, "spoke", node="b", epoch=2, args={"kind": "LeaderAlive"})
    assert {"L2"} == red(inserted(lines, place, msgspec.structs.replace(lines[place], node="c")))


def test_l2_sees_an_epoch_claimed_again_after_a_restart() -> None:
    s = three_voters()
    s.crash("a")
    s.boot("a")
    s.spoke("a", "Claim", 1)
    assert {"L2"} == red(s.lines, converged=False)


def test_l3_sees_held_below_a_promise() -> None:
    lines = honest()
    place = find(lines, "spoke", node="c", epoch=2)
    held = lines[find(lines, "held", node="c", seq=3)]
    assert {"L3"} == red(inserted(lines, place + 1, held))


def test_l3_sees_held_below_a_promise_from_before_a_restart() -> None:
    s = three_voters()
    s.persisted("c", "promise", epoch=2)
    s.crash("c")
    s.boot("c")
    s.add("c", "held", epoch=1, seq=0)
    assert {"L3"} == red(s.lines, converged=False)


def test_l4_sees_an_announced_entry_missing_from_the_recovered_log() -> None:
    """Announced, and nobody delivered it before the new leader chose."""
    s = three_voters()
    s.add("a", "ordered", epoch=1, seq=1, crc=1)
    s.add("a", "stable", epoch=1, seq=1)
    s.promise(2, "b", "c")
    s.open(2, "b", "c")
    assert {"L4"} == red(s.lines, converged=False)


def test_l4_sees_a_late_announcement_of_what_was_not_recovered() -> None:
    s = three_voters()
    s.add("a", "ordered", epoch=1, seq=1, crc=1)
    s.promise(2, "b", "c")
    s.open(2, "b", "c")
    s.add("a", "stable", epoch=1, seq=1)
    assert {"L4"} == red(s.lines, converged=False)


def test_l4_sees_other_bytes_at_a_stable_number() -> None:
    s = three_voters()
    s.add("a", "ordered", epoch=1, seq=1, crc=1)
    s.add("a", "stable", epoch=1, seq=1)
    s.promise(2, "b", "c")
    s.add("b", "recovered", epoch=2, args={"last": 1, "base": 0, "tail": [[1, 2]]})
    assert {"L4"} == red(s.lines, converged=False)


def test_l5_sees_a_fenced_leader_acknowledge() -> None:
    s = three_voters()
    s.acknowledge("a", 1)
    s.promise(2, "b", "c")
    assert set() == red(s.lines, converged=False)
    s.wait(0.2)
    s.acknowledge("a", 1)
    assert {"L5"} == red(s.lines, converged=False)


def test_l5_needs_a_majority_to_fence() -> None:
    s = three_voters()
    s.persisted("b", "promise", epoch=2)
    s.wait(5.0)
    s.acknowledge("a", 1)
    assert set() == red(s.lines, converged=False)


def test_l7_sees_a_node_declared_gone_while_its_lease_runs() -> None:
    s = three_voters()
    s.boot("d")
    s.lease("d", 2.0)
    s.wait(2.0)  # its clock is slow: to the harness the lease is a little longer than two seconds
    s.add("a", "node_gone", epoch=1, seq=1, args={"name": "d", "inc": 1})
    assert {"L7"} == red(s.lines, converged=False)


def test_l7_sees_a_lease_given_to_one_who_is_gone() -> None:
    s = three_voters()
    s.boot("d")
    s.add("a", "node_gone", epoch=1, seq=1, args={"name": "d", "inc": 1})
    s.lease("d", 2.0)
    assert {"L7"} == red(s.lines, converged=False)


def test_l7_sees_a_gone_leader_that_still_orders() -> None:
    s = three_voters()
    s.promise(2, "b", "c")
    s.add("b", "node_gone", epoch=2, seq=1, args={"name": "a", "inc": 1})
    s.add("a", "ordered", epoch=1, seq=1, crc=1)
    assert {"L7"} == red(s.lines, converged=False)


def test_l7_lets_a_lease_end_with_its_process_or_incarnation() -> None:
    for end in ("crash", "down_learned"):
        s = three_voters()
        s.boot("d")
        s.lease("d", 2.0)
        s.add("d", end)
        s.add("a", "node_gone", epoch=1, seq=1, args={"name": "d", "inc": 1})
        assert set() == red(s.lines, converged=False)
