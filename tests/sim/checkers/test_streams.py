"""B1 – B4 and B6 turn red, each alone, on the bug that is theirs."""

from __future__ import annotations

from .story import VOTERS, Story, changed, crc, find, honest, inserted, red, without


def test_b1_sees_a_second_delivery() -> None:
    lines = honest()
    place = find(lines, "delivered", node="b", seq=2)
    assert {"B1"} == red(inserted(lines, place + 1, lines[place]))


def test_b1_sees_an_entry_that_nobody_ordered() -> None:
    lines = without(honest(), lambda line: line.op == "ordered" and line.seq == 3)
    assert {"B1"} == red(lines)


def test_b1_sees_one_message_under_two_numbers() -> None:
    lines = honest()
    for node in VOTERS:
        lines = changed(lines, find(lines, "delivered", node=node, seq=6), n=5)
    assert {"B1"} == red(lines)


def test_b2_sees_a_call_that_never_ends() -> None:
    lines = without(honest(), lambda line: line.op == "look_up" and line.type == "ok")
    assert {"B2"} == red(lines)
    assert set() == red(lines, converged=False)


def test_b2_sees_an_acknowledged_entry_that_a_majority_never_delivered() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.open(1, "a", "b", "c")
    call = s.invoke("x", "config_set", key="k", value="x1", if_version=0)
    s.add("a", "ordered", epoch=1, seq=1, crc=crc(1))
    for node in VOTERS:
        s.persisted(node, "append", epoch=1, seq=1)
    s.end("x", "config_set", call, version=1)
    s.list_installed(1, 1, VOTERS, {}, VOTERS)
    assert {"B2"} == red(s.lines)


def test_b3_sees_a_survivor_without_what_the_dead_delivered() -> None:
    lines = without(honest(), lambda line: line.node == "c" and line.op == "delivered" and line.seq == 6)
    assert {"B3"} == red(lines)
    assert set() == red(lines, converged=False)


def test_b4_sees_two_contents_of_one_number() -> None:
    lines = honest()
    place = find(lines, "delivered", node="c", seq=5)
    ordered = lines[find(lines, "ordered", seq=5)]
    other = changed([ordered], 0, crc=99, epoch=7)[0]
    assert {"B4"} == red(inserted(changed(lines, place, crc=99), place, other))


def test_b4_sees_a_skipped_number() -> None:
    lines = without(honest(), lambda line: line.node == "c" and line.op == "delivered" and line.seq == 2)
    assert {"B4"} == red(lines)


def test_b4_sees_a_blank_voter_begin_in_the_middle() -> None:
    lines = without(honest(), lambda line: line.node == "c" and line.op == "delivered" and line.seq == 1)
    assert {"B4"} == red(lines)


def test_b6_sees_a_delivered_entry_missing_from_the_recovered_log() -> None:
    """Delivered at the leader and never announced by it: only B6 can tell."""
    lines = without(honest(), lambda line: line.op == "stable" and line.seq == 4 and line.epoch == 1)
    assert set() == red(lines)
    place = find(lines, "recovered", epoch=2)
    assert {"B6"} == red(changed(lines, place, args={"last": 3, "base": 3, "tail": []}))


def test_b6_sees_other_bytes_in_the_recovered_log() -> None:
    lines = without(honest(), lambda line: line.op == "stable" and line.seq == 4 and line.epoch == 1)
    place = find(lines, "recovered", epoch=2)
    assert {"B6"} == red(changed(lines, place, args={"last": 4, "base": 3, "tail": [[4, 99]]}))
