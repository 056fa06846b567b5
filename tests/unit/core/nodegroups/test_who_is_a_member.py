"""Who is a member, whatever becomes of it meanwhile, and for how long it is waited for."""

from __future__ import annotations

import pytest

from groupsvcd.core.peer_messages import Beat, Goodbye, Held, Order, Seen
from tests.unit.core.nodegroups.carriers import Carriers


def test_a_node_that_goes_while_its_insertion_is_not_stable_is_removed() -> None:
    """V7, G10. G's insertion has its number; before D knows it to be stable the list says that G is down, and gone."""
    nodes = Carriers.with_group("DEF")
    nodes.lose(Held, "E>D F>D")
    nodes.join("G")
    nodes.run(0.02)
    assert 1 == len(nodes.leading("D").inserting)
    nodes.frame("G", "A", Goodbye())  # an orderly shutdown of the daemon
    nodes.kill("G")
    nodes.run_until(lambda: nodes.engines["D"].member.nodes["G"].status == "gone")
    nodes.run(0.05)
    nodes.heal()
    nodes.run(60.0)
    assert {"DEF"} == {nodes.user(name).names for name in "DEF"}


def test_who_came_back_is_not_removed_by_a_leader_that_remembers_its_leave() -> None:
    """B3, V1. D heard that G leaves and lost its office; G has left, and come back, and D leads again."""
    nodes = Carriers.with_group("DEFG")
    nodes.lose((Order, Beat), "D>E D>F D>G")
    nodes.leave("G")
    nodes.run_until(lambda: bool(nodes.part("D").leaving))
    nodes.run_until(lambda: nodes.roles("E") == ["leader"] or nodes.roles("F") == ["leader"])
    nodes.heal()
    nodes.run(3.0)
    assert ["none"] == nodes.roles("G")
    nodes.join("G")
    nodes.run(2.0)
    assert "G" in nodes.user("G").names
    for name in "EF":
        nodes.leave(name)
        nodes.run(2.0)
    nodes.run(3.0)
    assert [] == nodes.user("G").losses


@pytest.mark.parametrize("history", [50, 5_000], ids=["an old stream", "a young one"])
def test_a_member_that_lags_a_little_is_waited_for_by_a_new_leader(history: int) -> None:
    """GS-12. The stream is longer than its history, or not; E takes over while G, three entries behind, is cut off."""
    nodes = Carriers.with_group("DEFG", history_entries_max=history)
    for number in range(80):
        nodes.submit("E", f"old-{number}")
        nodes.run(0.01)
    nodes.run(1.0)
    nodes.cut("G", "D", "E", "F")
    nodes.submit("E", "a", "b", "c")
    nodes.run(0.05)
    nodes.die("D")
    nodes.run(1.5)
    assert ["leader"] == nodes.roles("E")
    nodes.heal()
    nodes.run(2.0)
    assert [] == nodes.user("G").losses
    assert nodes.texts("E")[-3:] == nodes.texts("G")[-3:]


def test_a_new_member_of_an_old_group_counts_from_its_insertion_on() -> None:
    """GS-12. What is ordered right after G's insertion does not reach it at first; G has said nothing yet."""
    nodes = Carriers.with_group("DEF", history_entries_max=50)
    for number in range(80):
        nodes.submit("E", f"old-{number}")
        nodes.run(0.01)
    nodes.run(1.0)
    nodes.lose(Seen, "G>D")
    nodes.join("G")
    nodes.run_until(lambda: bool(nodes.user("G").joined_at))
    nodes.cut("G", "D", "E", "F")
    nodes.submit("E", "a", "b", "c")
    nodes.run(1.5)
    nodes.heal()
    nodes.run(2.0)
    assert [] == nodes.user("G").losses
    assert ["a", "b", "c"] == nodes.texts("G")
