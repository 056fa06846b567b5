"""Waiting times must fit together, and everything wrong with them is said at once."""

from __future__ import annotations

import attrs
import pytest

from groupsvcd.core.parameters import Parameters, Timers


@pytest.mark.parametrize("voters", [1, 2, 3, 5])
def test_the_defaults_are_fine_for_any_usual_domain(voters: int) -> None:
    assert [] == Timers().problems(voters)


@pytest.mark.parametrize("field", [field.name for field in attrs.fields(Timers)])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_every_time_must_be_above_zero(field: str, value: float) -> None:
    """The sentence names the parameter and its value."""
    timers = Timers(**{field: value})
    assert f"timers.{field} = {value!r} must be above 0" in timers.problems(3)


def test_a_lease_must_outlast_a_re_election() -> None:
    """Or every re-election suspends the nodes; the more voters, the longer it takes."""
    timers = Timers(lease=1.9)
    assert [] == timers.problems(3)
    (problem,) = Timers(lease=1.8).problems(3)
    assert problem.startswith("timers.lease = 1.8 must be at least")
    assert "= 1.870" in problem
    assert timers.problems(5)


def test_a_leader_must_be_called_silent_only_after_more_than_two_lost_messages() -> None:
    (problem,) = Timers(alive_interval=0.4, leader_silent=1.0, lease=5.0).problems(3)
    assert problem.startswith("timers.leader_silent = 1.0 must be at least 3 x alive_interval = 1.200")


def test_all_problems_are_said_at_once() -> None:
    timers = Timers(alive_interval=0.5, lease=1.0, margin=0.0)
    assert 3 == len(timers.problems(3))


def test_a_node_without_configuration_is_a_domain_of_one() -> None:
    """No server, no configuration, and it works."""
    parameters = Parameters(node="A")
    assert parameters.is_voter
    assert (("A",), 1) == (parameters.all_voters, parameters.majority)


@pytest.mark.parametrize("voters, majority", [("AB", 2), ("ABC", 2), ("ABCD", 3), ("ABCDE", 3)])
def test_a_majority_is_more_than_half(voters: str, majority: int) -> None:
    parameters = Parameters(node="X", voters=tuple(voters))
    assert majority == parameters.majority
    assert not parameters.is_voter


def test_essentials_are_what_all_nodes_share_and_nothing_of_their_own() -> None:
    """Name, address and preference differ from node to node; every waiting time must not (MSG-13)."""
    one = Parameters(node="A", address="tcp://a:1", voters=("A", "B"), preference=3, pinned=True, durable=True)
    other = Parameters(node="B", address="tcp://b:1", voters=("A", "B"), measured=9, candidate=False)
    assert one.essentials() == other.essentials()
    for field in attrs.fields(Timers):
        changed = attrs.evolve(one, timers=attrs.evolve(one.timers, **{field.name: 9.5}))
        assert one.essentials() != changed.essentials()
        assert "9.5" == changed.essentials()[f"timers.{field.name}"]
        assert one.essentials_digest() != changed.essentials_digest()
    assert one.essentials_digest() == other.essentials_digest()
