"""Fast groups: what the dead alone have seen may be lost, what a survivor has delivered may not; and K2."""

from __future__ import annotations

from .group_story import GROUP, NAME, GroupStory, honest_group
from .story import Lines, changed, find, red


def fast(lines: Lines) -> Lines:
    """The same story, of a group that delivers on arrival."""
    for place, line in enumerate(lines):
        if line.op == "view_active":
            lines = changed(lines, place, args={**line.args, "delivery": "fast"})
    return lines


def _leader_dies(*, heard_by: str, kept: bool, waited_s: float = 0.0, left_out: bool = False) -> Lines:
    """d has delivered entry 8, one more has, and d dies; e takes over with f, with entry 8 or without it."""
    s = GroupStory("d", "e", "f", "g")
    s.three_servers()
    s.let_in(12, 6, "d", ("e", "f"), "g", {"d": 1, "e": 1, "f": 1, "g": 1})
    s.order_one(12, 7, "d", ("f",), ("d", "e", "f", "g"))
    s.entries[8] = (0xE00008, "", 0)
    s.line("d", "ordered", 12, 8, crc=0xE00008)
    s.hand_up(12, 8, "d", *heard_by)
    s.crash("d")
    s.line("e", "granted", 20, args={"base": 12})
    s.wait(waited_s)
    s.recover(20, "e", {"e": 1, "f": 1}, 2, base=12, known=7, last=8 if kept else 7, ask=("e", "f", "g"))
    lines = s.lines
    if left_out:
        place = find(lines, "recovered", group=GROUP, epoch=20)
        lines = changed(lines, place, args={**lines[place].args, "left_out": [["g", 1]]})
    return fast(lines)


def test_what_only_the_dead_have_seen_may_be_lost() -> None:
    assert set() == red(_leader_dies(heard_by="", kept=False), converged=False)


def test_what_a_survivor_has_delivered_may_be_kept() -> None:
    assert set() == red(_leader_dies(heard_by="g", kept=True), converged=False)


def test_b6_sees_a_survivor_that_is_contradicted() -> None:
    """g is no server: this is what recovering from the servers only leads to."""
    assert {"B6"} == red(_leader_dies(heard_by="g", kept=False), converged=False)


def test_who_was_waited_for_in_vain_may_be_contradicted() -> None:
    assert set() == red(_leader_dies(heard_by="g", kept=False, waited_s=2.5, left_out=True), converged=False)


def test_b6_sees_a_leader_that_did_not_wait() -> None:
    assert {"B6"} == red(_leader_dies(heard_by="g", kept=False, waited_s=1.0, left_out=True), converged=False)


def test_b6_sees_a_leader_that_does_not_say_whom_it_left_out() -> None:
    assert {"B6"} == red(_leader_dies(heard_by="g", kept=False, waited_s=2.5), converged=False)


def test_b6_sees_a_contradicted_member_that_goes_on() -> None:
    """It was waited for in vain, and delivers the next entry of the new view as if nothing had been."""
    lines = _leader_dies(heard_by="g", kept=False, waited_s=2.5, left_out=True)
    s = GroupStory()
    s.lines, s.t = list(lines), lines[-1].t
    s.inc = {"e": 1, "f": 1, "g": 1}
    s.order_one(20, 8, "e", ("f",), ("e", "f"))
    s.order_one(20, 9, "e", ("f",), ("e", "f", "g"))
    assert "B6" in red(s.lines, converged=False)


def test_l4_holds_in_fast_groups_too() -> None:
    """What was announced stable may not be lost, whoever has delivered it."""
    lines = fast(honest_group())
    place = find(lines, "recovered", group=GROUP, epoch=20)
    args = {**lines[place].args, "last": 7, "tail": []}
    assert "L4" in red(changed(lines, place, args=args), converged=False)


def test_l3_sees_a_delivery_after_a_promise() -> None:
    """Who promised has reported what it delivered; more may not come until the new view is active."""
    lines = _leader_dies(heard_by="", kept=True)
    place = find(lines, "promise", group=GROUP, node="g", epoch=20)
    late = changed([lines[find(lines, "delivered", group=GROUP, node="d", seq=8)]], 0, node="g")[0]
    assert "L3" in red([*lines[: place + 1], late, *lines[place + 1 :]], converged=False)


def _synced(reached: int) -> Lines:
    """f asks for everything when e has delivered 12 entries, and is told so when it has ``reached`` itself."""
    s = GroupStory("d", "e", "f")
    s.three_servers()
    s.order_one(12, 6, "d", ("e", "f"), ("d", "e"))
    s.wait(0.1)
    s.line("f", "sync", type="invoke", who="user-f", args={"id": 900, "name": NAME})
    s.wait(0.1)
    for seq in range(6, reached + 1):
        s.hand_up(12, seq, "f")
    s.wait(0.1)
    s.line("f", "sync", type="ok", who="user-f", args={"id": 900, "name": NAME}, result={"seq": 6})
    return s.lines


def test_k2_sees_somebody_who_is_told_too_early_that_it_has_everything() -> None:
    assert set() == red(_synced(reached=6), converged=False)
    assert {"K2"} == red(_synced(reached=5), converged=False)
