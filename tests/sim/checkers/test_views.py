"""V1 – V4 and V7 turn red, each alone, on the bug that is theirs."""

from __future__ import annotations

import msgspec

from .story import VOTERS, Story, changed, find, honest, inserted, red, without


def test_v1_sees_a_node_in_a_view_without_itself() -> None:
    broken = honest()
    for node in VOTERS:  # the same list everywhere, so that only self-inclusion is broken
        place = find(broken, "view_installed", node=node, epoch=1)
        broken = changed(broken, place, args={**broken[place].args, "members": ["a", "b"]})
    assert {"V1"} == red(broken)


def test_v2_sees_an_epoch_go_back() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b")
    s.open(1, "a", "b")
    view = {"leader": "b", "members": list(VOTERS), "k": 2}
    s.add("c", "view_installed", epoch=2, args=view)
    s.add("c", "view_installed", epoch=1, args={**view, "leader": "a"})
    assert {"V2"} == red(s.lines, converged=False)


def test_v2_sees_an_epoch_on_disk_forgotten() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.promise(1, "a", "b", "c")
    s.promise(2, "b", "c", "a")
    s.open(2, "b", "c")
    s.crash("c")
    s.boot("c")
    s.add("c", "view_installed", epoch=1, args={"leader": "a", "members": list(VOTERS), "k": 2})
    assert {"V2", "L3"} == red(s.lines, converged=False)  # going back behind a persisted epoch breaks both


def test_v2_sees_a_list_version_go_back() -> None:
    lines = honest()
    old = lines[find(lines, "list_installed", node="b", seq=3)]
    place = find(lines, "list_installed", node="b", seq=6) + 1
    assert {"V2"} == red(inserted(lines, place, old), converged=False)


def test_v3_sees_two_member_lists_for_one_epoch() -> None:
    lines = honest()
    place = find(lines, "view_installed", node="c", epoch=2)
    assert {"V3"} == red(changed(lines, place, args={**lines[place].args, "members": ["b", "c"]}))


def test_v3_sees_two_tables_under_one_version() -> None:
    lines = honest()
    place = find(lines, "list_installed", node="b", seq=3)
    nodes = {**lines[place].args["nodes"], "d": [1, "down"]}
    assert {"V3"} == red(changed(lines, place, args={"nodes": nodes}))


def test_v4_sees_two_winners_of_one_epoch() -> None:
    lines = honest()
    won = lines[find(lines, "office", node="b", epoch=2)]
    place = find(lines, "office", node="b", epoch=2) + 1
    assert {"V4"} == red(inserted(lines, place, msgspec.structs.replace(won, node="c")))


def test_v4_sees_views_that_share_no_majority() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.add("a", "view_installed", epoch=1, args={"leader": "a", "members": ["a", "b", "c"], "k": 2})
    s.add("b", "view_installed", epoch=2, args={"leader": "b", "members": ["b"], "k": 1})
    assert {"V4"} == red(s.lines, converged=False)


def test_v4_sees_two_nodes_acknowledging_side_by_side() -> None:
    s = Story()
    for node in VOTERS:
        s.boot(node)
    s.acknowledge("a", 1)
    s.acknowledge("b", 2)
    s.wait(0.1)
    s.acknowledge("a", 1)
    assert {"V4"} == red(s.lines, converged=False)


def test_v7_sees_a_dead_node_that_stays_up() -> None:
    lines = honest()
    for node in VOTERS:
        place = find(lines, "list_installed", node=node, seq=6)
        lines = changed(lines, place, args={"nodes": {**lines[place].args["nodes"], "d": [1, "up"]}})
    assert {"V7"} == red(lines)
    assert set() == red(lines, converged=False)


def test_v7_sees_a_voter_under_another_leader() -> None:
    lines = without(honest(), lambda line: line.node == "a" and line.op == "view_installed" and line.epoch == 2)
    assert {"V7"} == red(lines)


def test_v7_sees_an_old_incarnation_in_the_list() -> None:
    lines = honest()
    for node in VOTERS:
        place = find(lines, "list_installed", node=node, seq=6)
        lines = changed(lines, place, args={"nodes": {**lines[place].args["nodes"], "a": [1, "up"]}})
    assert {"V7"} == red(lines)
