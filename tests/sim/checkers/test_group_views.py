"""V1 – V7 and L6 of groups are green on honest histories and turn red on the bug that is theirs."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from groupsvc.testing.sim.checkers import GROUPS, check
from groupsvc.testing.sim.checkers.group_streams import GroupStream
from groupsvc.testing.sim.checkers.group_views import v4

from .group_story import GROUP, VOTERS, GroupStory, forced_group, honest_group
from .story import Lines, changed, find, inserted, red, without

HONEST = {"honest": honest_group, "forced": forced_group}


@pytest.mark.parametrize("history", HONEST.values(), ids=HONEST)
def test_an_honest_history_passes_all_checkers(history: Any) -> None:
    assert [] == check(history(), voters=VOTERS, converged=True)


@pytest.mark.parametrize("history", HONEST.values(), ids=HONEST)
def test_every_prefix_of_an_honest_history_passes(history: Any) -> None:
    lines = history()
    assert all(not red(lines[:length], converged=False) for length in range(len(lines)))


def test_every_invariant_of_streams_has_a_checker_for_groups() -> None:
    assert "V1 V2 V3 V4 V5 V6 V7 B1 B2 B3 B4 B5 B6 L1 L2 L3 L4 L5 L6 S1 S2 K2" == " ".join(GROUPS)


def _with_args(lines: Lines, place: int, **args: Any) -> Lines:
    return changed(lines, place, args={**lines[place].args, **args})


def test_v1_sees_a_server_that_is_none() -> None:
    lines = honest_group()
    place = find(lines, "view_installed", group=GROUP, epoch=20, node="f")
    assert {"V1"} == red(changed(lines, place, node="c"))


def test_v1_sees_a_leader_whose_process_is_another_one_by_now() -> None:
    s = GroupStory("d")
    s.crash("d")
    s.boot("d")
    s.form()  # in the name of the first incarnation
    assert "V1" in red(s.lines, converged=False)


def test_v2_sees_a_node_go_back_to_an_older_epoch() -> None:
    lines = honest_group()
    place = find(lines, "delivered", group=GROUP, node="f", seq=10)
    assert "V2" in red(changed(lines, place, epoch=12))


def test_v2_sees_a_server_go_back_to_an_older_view() -> None:
    lines = honest_group()
    place = find(lines, "view_installed", group=GROUP, epoch=20, node="f")
    assert {"L3", "V2"} == red(inserted(lines, place + 1, lines[find(lines, "view_installed", epoch=12, node="f")]))


def test_v3_sees_two_views_of_one_epoch() -> None:
    lines = honest_group()
    place = find(lines, "view_installed", group=GROUP, epoch=20, node="f")
    assert {"V3"} == red(_with_args(lines, place, k=1))


def test_v3_sees_two_lists_after_one_entry() -> None:
    lines = honest_group()
    place = find(lines, "members", group=GROUP, node="f", seq=11)
    assert "V3" in red(_with_args(lines, place, members=[["e", 1], ["f", 1]]))


def test_v4_sees_an_epoch_made_active_twice() -> None:
    lines = honest_group()
    place = find(lines, "view_active", epoch=20)
    assert {"V4"} == red(inserted(lines, place + 1, lines[place]))


def test_v4_sees_two_successors_of_one_view() -> None:
    """d goes on with epoch 15 while e has epoch 20, both on base 12: two leaders."""
    lines = honest_group()
    crash = find(lines, "crash", node="d")
    other = lines[find(lines, "view_active", epoch=20)]
    servers = {"leader": "d", "servers": [["d", 1]], "k": 1}
    second = changed([other], 0, node="d", epoch=15, args={**other.args, **servers, "fence": 15 << 20})[0]
    assert {"V4"} == red(inserted(lines, crash, second))


def test_a_view_may_be_active_without_its_leader_ever_knowing() -> None:
    """The directory has activated epoch 15, its leader dies before it hears so; epoch 20 is based on it."""
    lines = honest_group()
    place = find(lines, "view_active", epoch=20)
    lines = _with_args(lines, place, base=15)
    silent = lines[find(lines, "view_installed", group=GROUP, epoch=12, node="e")]
    silent = changed([silent], 0, epoch=15, args={**silent.args, "leader": "e", "members": ["e", "f"]})[0]
    promises = [lines[find(lines, "promise", group=GROUP, epoch=20, node=node)] for node in ("e", "f")]
    promises = [changed([promise], 0, epoch=15)[0] for promise in promises]
    crash = find(lines, "crash", node="d")
    assert {"V4"} == red(lines)  # nobody has ever installed it
    assert set() == red(inserted(lines, crash + 1, *promises, silent))


def test_a_group_may_be_formed_without_its_founder_ever_knowing() -> None:
    """Its first view is active with its formation, whose number it has: the first that is written may be the second."""
    lines = honest_group()
    second = lines[find(lines, "view_active", group=GROUP, epoch=12)]
    for base, problems in ((GROUP, 0), (GROUP + 1, 1)):
        line = _with_args([second], 0, base=base)[0]
        stream = GroupStream(GROUP, [line], {}, converged=False, end=1)
        assert problems == sum("became active on base" in violation.text for violation in v4(stream))


def test_v4_sees_a_log_recovered_from_too_few() -> None:
    """|S| - k + 1 = 2 servers of epoch 12 must have promised; one is not enough, and one that is no server is none."""
    lines = honest_group()
    place = find(lines, "promise", group=GROUP, epoch=20, node="f")
    assert {"V4"} == red(changed(lines, place, node="c"))
    assert {"V4"} == red(changed(lines, place, inc=9))


def test_v4_asks_less_of_the_process_that_led_the_base_and_of_no_other() -> None:
    """With k = 1 the promises of all three are needed, unless d itself goes on, which led epoch 12."""
    lines = honest_group()
    base = GroupStream(GROUP, lines, {}, converged=False, end=len(lines)).views[12]
    for k, of_others in ((1, 3), (2, 2), (3, 1)):
        view = attrs.evolve(base, k=k)
        assert (min(k, of_others), of_others) == (view.promises_needed_by(("d", 1)), view.promises_needed_by(("e", 1)))
        assert of_others == view.promises_needed_by(("d", 2))
        assert of_others == attrs.evolve(view, active_at=None).promises_needed_by(("d", 1))


def test_one_report_from_above_the_base_is_enough() -> None:
    """f had accepted epoch 15, which was never active: its log has all that e could add."""
    lines = honest_group()
    installed = lines[find(lines, "view_installed", group=GROUP, epoch=20, node="f")]
    between = changed([installed], 0, epoch=15)[0]
    place = find(lines, "promise", group=GROUP, epoch=20, node="e")
    promise = changed([lines[place]], 0, node="f", epoch=15)[0]
    lines = inserted(lines, place, promise, between)
    lines = changed(lines, find(lines, "promise", group=GROUP, epoch=20, node="e"), node="c")
    assert set() == red(lines)


def test_v4_sees_numbers_given_before_the_view_is_active() -> None:
    lines = honest_group()
    active, ordered = find(lines, "view_active", epoch=20), find(lines, "ordered", group=GROUP, seq=9)
    early = changed([lines[ordered]], 0, t=lines[active].t - 0.0005)[0]
    rest = [line for place, line in enumerate(lines) if place != ordered]
    assert {"V4"} == red(inserted(rest, active, early))
    assert set() == red(inserted(rest, active, changed([early], 0, t=lines[active].t)[0]))  # in the same step


def test_v4_sees_the_recovered_tail_delivered_before_the_view_is_active() -> None:
    """Entry 8 was never announced in epoch 12: it is stable only with the activation of epoch 20."""
    lines = without(honest_group(), lambda line: line.op == "stable" and line.epoch == 12 and line.seq == 8)
    lines = without(lines, lambda line: line.op == "delivered" and line.epoch == 12 and line.seq == 8)
    assert set() == red(lines)
    active, delivered = find(lines, "view_active", epoch=20), find(lines, "delivered", group=GROUP, node="f", seq=8)
    early = changed([lines[delivered]], 0, t=lines[active].t - 0.0005)[0]
    rest = [line for place, line in enumerate(lines) if place != delivered]
    assert {"V4"} == red(inserted(rest, active, early))


def test_v5_sees_nodes_go_on_together_that_have_not_delivered_the_same() -> None:
    lines = without(honest_group(), lambda line: line.op == "delivered" and line.node == "f" and line.seq == 7)
    assert "V5" in red(lines)


def test_v6_sees_an_epoch_that_does_not_begin_with_its_leaders_own_entry() -> None:
    lines = honest_group()
    for place, line in enumerate(lines):
        if line.group == GROUP and line.op in ("ordered", "delivered") and line.seq == 9:
            lines = changed(lines, place, origin="x/1", n=1)
    assert {"V6"} == red(lines)


def test_v6_sees_an_entry_delivered_under_two_lists() -> None:
    """f takes the list of entry 11 over one entry too late."""
    lines = honest_group()
    place = find(lines, "members", group=GROUP, node="f", seq=11)
    late = lines[place]
    rest = [line for at, line in enumerate(lines) if at != place]
    after = find(rest, "delivered", group=GROUP, node="f", seq=12)
    assert {"V6"} == red(inserted(rest, after + 1, late))


def test_v7_sees_a_ghost_in_the_last_list() -> None:
    """d crashes for good, and the list keeps it."""
    lines = honest_group()
    end = find(lines, "delivered", group=GROUP, node="d", seq=12)
    lines = inserted(lines, end + 1, changed([lines[find(lines, "crash", node="d")]], 0, inc=2)[0])
    assert "V7" in red(lines)


def test_v7_sees_a_follower_that_the_last_list_forgets() -> None:
    lines = honest_group()
    for node in ("e", "f", "d"):
        place = find(lines, "members", group=GROUP, node=node, seq=11)
        lines = _with_args(lines, place, members=[["e", 1], ["f", 1]])
    assert {"V7"} == red(lines)
    assert set() == red(lines, converged=False)


def test_l6_sees_a_fence_that_does_not_grow() -> None:
    lines = honest_group()
    assert {"L6"} == red(_with_args(lines, find(lines, "view_active", epoch=20), fence=12 << 20))
