"""What a domain counts of its groups: each thing once, by one node, whoever carries them."""

from __future__ import annotations

from collections import Counter

from groupsvcd.core.statistics import EngineStatistics
from groupsvcd.core.tally import Histogram

from .processes import Processes


def _all(nodes: Processes) -> list[EngineStatistics]:
    return [nodes.engines[node].statistics(groups_max=10) for node in "DEF"]


def test_votes_ballots_and_views_are_counted_once_in_the_domain() -> None:
    """OPS-05."""
    nodes = Processes()
    processes = [nodes.start(node, state_phases="n") for node in "DEF"]
    nodes.run(0.5)
    processes[1].propose_state(b"red")
    nodes.run(0.1)
    for process, vote in zip(processes, ("approve", "continue", "approve"), strict=True):
        process.vote(vote)
    nodes.run(0.1)
    for process, vote in zip(processes, ("approve", "reject", "approve"), strict=True):
        process.vote(vote)
    nodes.run(0.1)
    votes: Counter[tuple[str, str]] = Counter()
    ballots: Counter[tuple[str, str]] = Counter()
    for one in _all(nodes):
        votes.update(one.counted.votes)
        ballots.update(one.counted.ballots)
    expected = {("approve", "provider"): 4, ("continue", "provider"): 1, ("reject", "provider"): 1}
    assert expected == dict(votes)
    assert {("join", "approved"): 3, ("state", "rejected"): 1} == dict(ballots)
    assert 3 == sum(one.counted.view_changes for one in _all(nodes))


def test_how_long_a_proposal_took_is_counted_where_it_was_made() -> None:
    """OPS-05."""
    nodes = Processes()
    processes = [nodes.start(node) for node in "DEF"]
    nodes.run(0.5)
    processes[1].propose_state(b"red")
    nodes.run(0.5)
    found = {node: one.counted.protocols for node, one in zip("DEF", _all(nodes), strict=True)}
    assert [1, 1, 1] == [found[node]["join"].count for node in "DEF"]
    assert ["E"] == [node for node in "DEF" if "state" in found[node]]
    assert 0 <= found["E"]["state"].sum < 0.5


def test_every_node_shows_its_part_of_the_groups() -> None:
    """OPS-05."""
    nodes = Processes()
    for node in "DEFD":
        nodes.start(node)
    nodes.run(0.5)
    found = _all(nodes)
    assert [{"db": 4}] * 3 == [one.process_groups.members_by_group for one in found]
    assert [4] * 3 == [one.process_groups.members for one in found]
    assert [("leader", 1), ("server", 2)] == sorted(
        Counter(role for one in found for role, count in one.node_groups.roles.items() if count).items()
    )
    assert {} == nodes.engines["D"].statistics(groups_max=0).process_groups.members_by_group


def test_a_failure_takes_from_its_announcement_to_the_removal() -> None:
    """OPS-05."""
    nodes = Processes()
    processes = [nodes.start(node) for node in "DEF"]
    nodes.run(0.5)
    processes[2].die()
    nodes.run(0.5)
    failures = [one.counted.protocols["failure"] for one in _all(nodes) if "failure" in one.counted.protocols]
    assert [1] == [one.count for one in failures]


def test_a_value_on_a_bound_is_not_above_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.5):
        histogram.observe(value)
    assert ((2, 1, 1), 5.5) == (histogram.measured().counts, histogram.measured().sum)
    assert 4 == histogram.measured().count
