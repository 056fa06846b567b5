"""S2, S3 and S4 turn red on what a node must not do about its disk; B3 on what is thrown away too early."""

from __future__ import annotations

import pytest

from groupsvc.testing.sim.checkers import check

from .group_story import GROUP, VOTERS, GroupStory, honest_group
from .story import Lines, changed, find, inserted, red, without
from .test_group_leaders import _on_disk


def _damaged_at_e() -> Lines:
    """A durable group; e restarts after epoch 12 and finds its log damaged; it is not heard of as a server again."""
    s = GroupStory("d", "e", "f")
    s.three_servers()
    s.crash("e")
    s.boot("e")
    s.line("e", "damaged", args={"what": "entry 3 is not as it was written"})
    s.order_one(12, 6, "d", ("f",), ("d", "f"))
    return _on_disk(s.lines)


def test_a_server_with_a_damaged_log_that_keeps_silent_is_right() -> None:
    assert set() == red(_damaged_at_e(), converged=False)


@pytest.mark.parametrize("op", ["promise", "held", "view_installed"])
def test_s2_sees_a_damaged_log_served(op: str) -> None:
    lines = _damaged_at_e()
    said = lines[find(lines, op, group=GROUP, epoch=12, node={"promise": "d"}.get(op, "f"))]
    word = changed([said], 0, node="e")[0]
    assert "S2" in red(inserted(lines, len(lines), word), converged=False)


def test_s2_lets_a_disk_speak_that_has_given_the_damaged_log_up() -> None:
    lines = _damaged_at_e()
    promise = changed([lines[find(lines, "promise", group=GROUP, epoch=12, node="d")]], 0, node="e")[0]
    forget = changed([promise], 0, op="persisted", epoch=0, args={"kind": "forget"})[0]
    assert "S2" not in red(inserted(lines, len(lines), forget, promise), converged=False)


def test_s3_sees_a_process_go_on_after_a_failed_sync() -> None:
    lines = honest_group()
    place = find(lines, "crash", node="d")
    failed = changed([lines[place]], 0, op="fsync_failed", args={})[0]
    assert set() == red(inserted(lines, place, failed))
    held = find(lines, "held", group=GROUP, node="e", epoch=12, seq=8)
    assert {"S3"} == red(inserted(lines, held, changed([failed], 0, node="e")[0]))


def test_s3_sees_an_answer_after_a_failed_sync() -> None:
    lines = honest_group()
    end = find(lines, "submit", type="ok", node="e", n=2)
    failed = changed([lines[find(lines, "crash", node="d")]], 0, op="fsync_failed", args={}, node="e")[0]
    later = without(lines, lambda line: line.i > end)
    assert {"S3"} == red(inserted(later, end, failed), converged=False)


def test_s4_sees_a_node_declared_down_because_its_disk_is_full() -> None:
    lines = honest_group()
    place = find(lines, "crash", node="d")
    line = lines[place]
    full = changed([line], 0, op="group-disk-full", who="sim", node="", args={"phase": "begin", "target": "d"})[0]
    down = changed([line], 0, op="node_down", node="a", args={"name": "d", "inc": 1})[0]
    assert {"S4"} == red(inserted(lines, place, full, down), converged=False)
    killed = changed([full], 0, op="kill")[0]
    assert set() == red(inserted(lines, place, full, killed, down), converged=False)


# --- What is kept ---


def _red_with_history(lines: Lines, entries_max: int) -> set[str]:
    found = check(lines, voters=VOTERS, converged=False, history_entries_max=entries_max)
    return {violation.invariant for violation in found}


def test_b3_sees_a_leader_say_that_all_have_what_one_member_lacks() -> None:
    """f has delivered up to 7 only; d says that nobody needs 8 any more."""
    lines = honest_group()
    place = find(lines, "delivered", group=GROUP, node="d", seq=8)
    said = changed([lines[place]], 0, op="discarding", crc=0, origin="", n=0)[0]
    assert {"B3"} == _red_with_history(inserted(lines, place + 1, said), 1_000)
    assert set() == _red_with_history(inserted(lines, place + 1, changed([said], 0, seq=7)[0]), 1_000)
    assert set() == _red_with_history(inserted(lines, place + 1, said), 5)


def test_b3_sees_a_checkpoint_take_more_with_it_than_all_have() -> None:
    lines = honest_group()
    place = find(lines, "delivered", group=GROUP, node="d", seq=8)
    said = changed([lines[place]], 0, op="discarding", crc=0, origin="", n=0, seq=7)[0]
    dropped = changed([said], 0, op="persisted", seq=8, args={"kind": "checkpoint", "base": 8})[0]
    assert "B3" in _red_with_history(inserted(lines, place + 1, said, dropped), 1_000)
    kept = changed([dropped], 0, args={"kind": "checkpoint", "base": 7})[0]
    assert "B3" not in _red_with_history(inserted(lines, place + 1, said, kept), 1_000)


def test_b3_asks_nothing_of_a_disk_for_its_own_process_of_before() -> None:
    """B3 speaks of survivors: e died with less than its list says all have, and returns to a log that begins later."""
    lines = honest_group()
    place = find(lines, "delivered", group=GROUP, node="d", seq=8)
    line = lines[place]
    dropped = changed([line], 0, op="persisted", crc=0, origin="", n=0, seq=8,
                      args={"kind": "checkpoint", "base": 8})[0]  # fmt: skip
    lists = changed([line], 0, op="members", crc=0, origin="", n=0, seq=4, args={"members": [["d", 1], ["e", 1]]})[0]
    again = changed([lists, dropped], 0, node="e", inc=2)
    again = changed(again, 1, node="e", inc=2)
    assert "B3" not in _red_with_history(inserted(lines, place + 1, *again), 1_000)
    others = changed(again, 0, args={"members": [["d", 1], ["e", 1], ["f", 1]]})
    assert "B3" in _red_with_history(inserted(lines, place + 1, *others), 1_000)


def test_b3_asks_nothing_of_a_follower_for_whom_the_leader_has_removed() -> None:
    """d has delivered that f is out, so 8 goes, which f lacks; e, which is behind, throws it away by d's word."""
    lines = honest_group()
    place = find(lines, "delivered", group=GROUP, node="d", seq=8)
    line = changed([lines[place]], 0, crc=0, origin="", n=0)[0]
    removed = changed([line], 0, op="members", seq=9, args={"members": [["d", 1], ["e", 1]]})[0]
    dropped = changed([line], 0, op="persisted", node="e", args={"kind": "checkpoint", "base": 8})[0]
    reached = changed([lines[place]], 0, node="e")[0]
    assert "B3" in _red_with_history(inserted(lines, place + 1, reached, dropped), 1_000)
    assert "B3" not in _red_with_history(inserted(lines, place + 1, reached, removed, dropped), 1_000)
    said = changed([dropped], 0, op="discarding", args={})[0]
    assert "B3" in _red_with_history(inserted(lines, place + 1, reached, removed, said), 1_000), (
        "a leader goes by its own list"
    )


@pytest.mark.parametrize("had, is_red", [(7, False), (8, True)])
def test_b3_asks_of_a_disk_that_skips_to_a_checkpoint_only_for_what_it_had(had: int, is_red: bool) -> None:
    """f has delivered up to 7; e lagged, and its log begins behind 8 now."""
    lines = honest_group()
    place = find(lines, "delivered", group=GROUP, node="d", seq=8)
    line = changed([lines[place]], 0, crc=0, origin="", n=0)[0]
    wrote = changed([line], 0, op="persisted", node="e", seq=had, args={"kind": "append"})[0]
    skipped = changed([wrote], 0, seq=8, args={"kind": "checkpoint", "base": 8})[0]
    assert is_red == ("B3" in _red_with_history(inserted(lines, place + 1, wrote, skipped), 1_000))
