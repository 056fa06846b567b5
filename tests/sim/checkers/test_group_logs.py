"""B1 – B6, K1 and B2 of groups turn red, each alone, on the bug that is theirs."""

from __future__ import annotations

import time

from .group_story import GROUP, GroupStory, forced_group, honest_group
from .story import Lines, changed, find, inserted, red, without


def test_b1_sees_a_second_delivery() -> None:
    lines = honest_group()
    place = find(lines, "delivered", group=GROUP, node="f", seq=9)
    assert {"B1"} == red(inserted(lines, place + 1, lines[place]))


def test_b1_sees_an_entry_that_nobody_ordered() -> None:
    lines = without(honest_group(), lambda line: line.group == GROUP and line.op == "ordered" and line.seq == 10)
    assert "B1" in red(lines)


def test_b1_sees_one_message_under_two_numbers() -> None:
    lines = honest_group()
    message = lines[find(lines, "delivered", group=GROUP, node="d", seq=8)]
    s = [line for line in lines if not (line.group == GROUP and line.op == "delivered" and line.seq == 12)]
    end = len(s) - 6  # before the list of nodes
    again = [changed([message], 0, node=node, inc=inc, epoch=20, seq=12)[0] for node, inc in (("e", 1), ("f", 1))]
    assert "B1" in red(inserted(s, end, *again), converged=False)


def test_b1_sees_what_its_origin_never_submitted() -> None:
    lines = honest_group()
    place = find(lines, "submit", type="invoke", node="e", n=1)
    assert {"B1"} == red(changed(lines, place, crc=1))


def test_b2_sees_a_submission_that_never_ends() -> None:
    lines = without(honest_group(), lambda line: line.op == "submit" and line.type == "ok" and line.n == 2)
    assert {"B2"} == red(lines)
    assert set() == red(lines, converged=False)


def test_the_submissions_of_a_process_end_with_it() -> None:
    s = GroupStory("d")
    s.form()
    s.submit("d", "user-d")
    s.crash("d")
    assert set() == red(s.end_well())


def test_b2_sees_a_submission_that_ended_well_and_is_not_in_the_stream() -> None:
    s = GroupStory("d")
    s.form()
    s.submit("d", "user-d")
    who, _, n, call = s.waiting.pop()
    s.line("d", "submit", type="ok", who=who, n=n, args={"id": call, "name": "jobs"}, result={})
    assert {"B2"} == red(s.end_well("d"))


def test_b3_sees_a_member_without_what_the_dead_delivered() -> None:
    lines = without(
        honest_group(), lambda line: line.op == "delivered" and line.node == "d" and line.inc == 2 and line.seq == 12
    )
    assert {"B3"} == red(lines)
    assert set() == red(lines, converged=False)


def test_b4_sees_two_contents_of_one_number() -> None:
    lines = honest_group()
    place = find(lines, "delivered", group=GROUP, node="f", seq=10)
    ordered = changed([lines[find(lines, "ordered", group=GROUP, seq=10)]], 0, crc=99, epoch=19)[0]
    found = red(inserted(changed(lines, place, crc=99), place, ordered))
    assert "B4" in found
    assert "B1" not in found


def test_b4_sees_a_skipped_number() -> None:
    lines = without(honest_group(), lambda line: line.op == "delivered" and line.node == "f" and line.seq == 10)
    assert {"B4"} == red(lines)


def test_b4_sees_a_newcomer_skip_an_entry_behind_its_state() -> None:
    lines = honest_group()
    place = find(lines, "restored", group=GROUP, node="d", inc=2)
    assert {"B4"} == red(changed(lines, place, seq=10))


def test_b4_sees_a_state_after_an_entry_that_nobody_has() -> None:
    lines = honest_group()
    place = find(lines, "restored", group=GROUP, node="d", inc=2)
    assert "B4" in red(changed(lines[: place + 1], place, seq=50), converged=False)


def test_b5_sees_a_gap_in_the_messages_of_one_origin() -> None:
    lines = honest_group()
    for place, line in enumerate(lines):
        if line.n == 2 and (line.origin == "f/1" or (line.op == "submit" and line.node == "f")):
            lines = changed(lines, place, n=3)
    assert {"B5"} == red(lines)


def test_b5_knows_what_its_origin_has_given_up_and_sees_any_other_gap() -> None:
    lines = honest_group()
    for place, line in enumerate(lines):
        if line.n == 2 and (line.origin == "f/1" or (line.op == "submit" and line.node == "f")):
            lines = changed(lines, place, n=3)
    submitted = find(lines, "submit", type="invoke", node="f", n=3)
    like = changed([lines[submitted]], 0, op="given_up", type="event", who="", crc=0)[0]
    for numbers, expected in (((2, 2), set[str]()), ((1, 1), {"B5"})):
        given_up = changed([like], 0, n=numbers[1], args={"first": numbers[0]})[0]
        assert expected == red(inserted(lines, submitted, given_up))


def test_b5_sees_an_answer_before_the_question() -> None:
    """e had delivered entry 9 when it submitted what everybody has as entry 8."""
    lines = honest_group()
    place = find(lines, "submit", type="invoke", node="e", n=2)
    asked = lines[place]
    rest = [line for at, line in enumerate(lines) if at != place]
    after = find(rest, "delivered", group=GROUP, node="e", seq=7)
    early = changed([rest[after]], 0, seq=8, n=0, origin="", crc=lines[find(lines, "ordered", group=GROUP, seq=8)].crc)
    assert "B5" in red(inserted(rest, after + 1, *early, asked), converged=False)


def test_b6_sees_a_delivered_entry_missing_from_the_recovered_log() -> None:
    """Delivered at d and never announced by it: only B6 can tell."""
    lines = without(honest_group(), lambda line: line.op == "stable" and line.epoch == 12 and line.seq == 8)
    place = find(lines, "recovered", group=GROUP, epoch=20)
    lines = [line for line in lines[: place + 1] if not (line.op == "delivered" and line.epoch == 20)]
    assert set() == red(lines, converged=False)
    assert {"B6"} == red(changed(lines, place, args={"base": 7, "last": 7, "tail": []}), converged=False)


def test_b6_sees_other_bytes_in_the_recovered_log() -> None:
    lines = without(honest_group(), lambda line: line.op == "stable" and line.epoch == 12 and line.seq == 8)
    place = find(lines, "recovered", group=GROUP, epoch=20)
    wrong = changed(lines[: place + 1], place, args={"base": 7, "last": 8, "tail": [[8, 99]]})
    assert {"B6"} == red(wrong, converged=False)


def test_b6_sees_a_survivor_go_on_after_its_entries_were_lost() -> None:
    assert set() == red(forced_group())
    assert "B6" in red(forced_group(told=False), converged=False)


def test_b6_sees_a_survivor_that_was_never_told() -> None:
    lines = without(forced_group(told=False), lambda line: line.op == "delivered" and line.node == "g" and line.seq > 8)
    assert "B6" in red(lines)


def test_what_a_forced_view_lost_may_be_there_a_second_time() -> None:
    """B1, B4: other entries 8 and 9, and the message that was entry 8 is entry 9 now."""
    s = GroupStory("d", "e", "f")
    s.three_servers()
    message = s.submit("f", "user-f")
    s.order_one(12, 6, "d", ("e",), ("d", "e"))
    s.order_one(12, 7, "d", ("e",), ("d", "e"), message)
    s.crash("d")
    s.crash("e")
    s.recover(30, "f", {"f": 1}, 1, base=12, known=5, last=5, forced=True)
    s.order_one(30, 6, "f", (), ("f",))
    s.order_one(30, 7, "f", (), ("f",))
    s.order_one(30, 8, "f", (), ("f",), message)
    assert set() == red(s.lines, converged=False)


def _back_again(*, goes_on: str) -> Lines:
    """d and e are gone with entry 9; f goes on without it and dies, too; g, which has it, is granted the next view.

    Who ``goes_on`` with g had followed d, as h, or f, as i.
    """
    s = GroupStory("d", "e", "f", "g", "h", "i")
    s.three_servers()
    for seq, node in ((6, "g"), (7, "h"), (8, "i")):
        s.let_in(12, seq, "d", ("e", "f"), node, dict.fromkeys("defghi"[: seq - 2], 1))
    s.order_one(12, 9, "d", ("e",), ("d", "e", "g", "h"))
    first = s.entries[9]
    s.crash("d")
    s.crash("e")
    s.recover(30, "f", {"f": 1}, 1, base=12, known=8, last=8, forced=True)
    s.order_one(30, 9, "f", (), ("f", "i"))
    s.crash("f")
    s.entries[9] = first
    s.recover(40, "g", {"g": 1}, 1, base=30, known=9, last=9, forced=True)
    s.order_one(40, 10, "g", (), ("g", goes_on))
    return s.lines


def test_a_branch_that_was_lost_may_come_back_with_who_has_it() -> None:
    """B4, B6: g and h have the first entry 9, and go on with it. What is void now is the one that i has."""
    assert set() == red(_back_again(goes_on="h"), converged=False)


def test_b6_sees_who_goes_on_with_a_branch_that_was_lost_after_it_had_replaced_another() -> None:
    assert "B6" in red(_back_again(goes_on="i"), converged=False)


def test_a_view_that_is_not_forced_may_lose_nothing() -> None:
    lines = forced_group()
    for op in ("view_installed", "view_active"):
        place = find(lines, op, epoch=30)
        lines = changed(lines, place, args={**lines[place].args, "forced": False})
    assert {"B6", "L4", "V4"} <= red(lines, converged=False)


def test_a_forced_view_that_was_never_active_may_pass_its_log_on() -> None:
    """f accepted the forced epoch 30 and died before it was active; g had its log and leads epoch 31."""
    lines = forced_group()
    active = lines[find(lines, "view_active", epoch=30)]
    lines = lines[: find(lines, "view_active", epoch=30)]
    place = find(lines, "view_installed", group=GROUP, epoch=30)
    forced = {**lines[place].args, "members": ["f", "g"], "forced": True, "base": 12}
    lines = changed(lines, place, args=forced)
    lines.append(changed([lines[place]], 0, node="g", args=forced)[0])
    lines.append(changed([lines[find(lines, "promise", group=GROUP, epoch=30)]], 0, node="g", epoch=31)[0])
    installed = {**forced, "leader": "g", "members": ["g"], "forced": False, "k": 1}
    lines.append(changed([lines[place]], 0, node="g", epoch=31, args=installed)[0])
    lines.append(changed([lines[find(lines, "recovered", group=GROUP, epoch=30)]], 0, node="g", epoch=31)[0])
    servers = {"leader": "g", "servers": [["g", 1]], "forced": False, "base": 12}
    lines.append(changed([active], 0, node="g", epoch=31, args={**active.args, **servers})[0])
    assert set() == red(inserted(lines, len(lines)), converged=False)


def test_a_long_history_is_judged_in_linear_time() -> None:
    """Ten times the guarded time on a slow machine; a quadratic scan would need hours."""
    s = GroupStory("d", "e", "f")
    s.three_servers()
    for seq in range(6, 3_006):
        s.order_one(12, seq, "d", ("e", "f"), ("d", "e", "f"), s.submit("e", "user-e"))
    began = time.perf_counter()
    assert set() == red(s.lines, converged=False)
    assert time.perf_counter() - began < 10.0


def test_k1_sees_a_call_that_ends_twice() -> None:
    lines = honest_group()
    place = find(lines, "submit", type="ok", node="e", n=2)
    assert {"K1"} == red(inserted(lines, place + 1, lines[place]))


def test_k1_sees_an_end_without_a_beginning() -> None:
    lines = honest_group()
    lines = without(lines, lambda line: line.op == "join" and line.type == "invoke" and line.who == "user-e")
    assert {"K1"} == red(lines)
