"""Essential parameters: the same on every node, and changed only on all of them at once (MSG-13)."""

from __future__ import annotations

import attrs
import pytest

from groupsvcd.core.domain.roster import difference
from groupsvcd.core.parameters import Timers
from tests.unit.core.trio import Trio

CHANGED = Timers(beat_interval=0.3)


def test_a_change_on_all_nodes_with_a_full_restart_works() -> None:
    """L3. The directory remembers the parameters of its formation; what counts is what the nodes have now."""
    trio = Trio.in_service(others="D")
    number = trio.set("D", "color", "red")
    trio.run(0.5)
    assert "red" == trio.value(number)
    trio.kill(*"ABCD")
    trio.parameters["timers"] = CHANGED
    trio.boot(*"ABCD")
    trio.run(5.0)
    assert 1 == len(trio.leaders)
    assert {} == trio.halted
    assert not any(trio.status(name).suspended for name in "ABCD")
    number = trio.get("D", "color")
    trio.run(0.5)
    assert "red" == trio.value(number)


@pytest.mark.parametrize("node", ["C", "D"])
def test_a_change_on_one_node_is_refused_with_parameter_and_both_nodes(node: str) -> None:
    """L3. Voter or not: the one that differs stops and says in what and from whom; the others go on."""
    trio = Trio.in_service(others="D")
    trio.kill(node)
    trio.parameters_of[node] = {"timers": CHANGED}
    trio.boot(node)
    trio.run(4.0)
    assert [node] == list(trio.halted)
    reason = trio.halted[node]
    assert f"parameter timers.beat_interval is 0.3 on {node} and 0.25 on A" in reason
    assert ["A"] == trio.leaders
    assert not any(trio.status(name).suspended for name in trio.engines)


def test_a_voter_that_differs_while_there_is_no_name_server_names_parameter_and_both_nodes() -> None:
    """L3. All restart, C with another value and A not at all: B and C find no majority, and each says why."""
    trio = Trio.in_service()
    trio.kill(*"ABC")
    trio.parameters_of["C"] = {"timers": CHANGED}
    trio.boot("B", "C")
    trio.run(5.0)
    assert [] == trio.leaders
    told = [trio.status(name).trouble for name in "BC" if name in trio.engines] + list(trio.halted.values())
    assert 2 == len(told)
    for text in told:
        assert "timers.beat_interval" in text
        assert " on B" in text
        assert " on C" in text
    trio.boot("A")
    trio.run(4.0)
    assert {"C"} == set(trio.halted)
    assert 1 == len(trio.leaders)


def test_every_difference_is_named_in_both_values_with_the_place_to_correct_it() -> None:
    """MSG-13. Three mistakes are found by one start, each with the file that has it."""
    trio = Trio.in_service(others="D")
    trio.kill("D")
    trio.parameters_of["D"] = {
        "timers": attrs.evolve(CHANGED, lease=3.0),
        "answers_kept": 32,
        "written_in": {"timers.lease": "/etc/d.toml:9", "limits.answers_kept": "environment X", "": "/etc/d.toml"},
    }
    trio.boot("D")
    trio.run(4.0)
    reason = trio.halted["D"]
    for sentence in (
        "parameter timers.beat_interval is 0.3 on D and 0.25 on A",
        "parameter timers.lease is 3.0 on D and 2.0 on A",
        "parameter limits.answers_kept is 32 on D and 64 on A",
        "timers.lease is set in /etc/d.toml:9",
        "limits.answers_kept is set in environment X",
        "timers.beat_interval is left at its default, 0.3; set it in /etc/d.toml",
    ):
        assert sentence in reason, reason


def test_a_stranger_that_differs_in_everything_is_refused_in_few_words() -> None:
    theirs = {f"strange-{number}": "x" * 1_000 for number in range(500)}
    found = difference("A", {"domain": "one"}, "Z", theirs)
    assert found is not None
    assert len(found.reason) < 10_000
    assert "and 471 more" in found.reason
