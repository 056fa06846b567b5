"""A refused port is taken for death only when two see it, within a short time, of the same incarnation."""

from __future__ import annotations

from groupsvcd.core.domain.suspicions import Suspicions

D, REBORN = ("D", 4000), ("D", 5000)
UP = ["B", "C", "D"]


def _suspicions() -> Suspicions:
    return Suspicions(within=1.0)


def test_the_name_server_and_one_other_are_enough() -> None:
    found = _suspicions()
    found.refused_here(D, 10.0)
    assert not found.confirmed(D, UP, 10.0)
    found.refused_at(D, "B", 10.5)
    assert found.confirmed(D, UP, 10.6)


def test_others_alone_are_not_enough() -> None:
    """The name server itself may be in touch with D."""
    found = _suspicions()
    found.refused_at(D, "B", 10.0)
    found.refused_at(D, "C", 10.0)
    assert not found.confirmed(D, UP, 10.0)


def test_with_nobody_else_to_ask_the_name_servers_own_refusal_is_enough() -> None:
    """D's own word about itself is not asked for."""
    found = _suspicions()
    found.refused_here(D, 10.0)
    assert found.confirmed(D, ["D"], 10.0)


def test_an_observer_that_is_not_up_does_not_count() -> None:
    found = _suspicions()
    found.refused_here(D, 10.0)
    found.refused_at(D, "X", 10.0)
    assert not found.confirmed(D, UP, 10.0)


def test_refusals_grow_old() -> None:
    """Both must be recent."""
    found = _suspicions()
    found.refused_here(D, 10.0)
    found.refused_at(D, "B", 10.9)
    assert found.confirmed(D, UP, 11.0)
    assert not found.confirmed(D, UP, 11.1)
    found.refused_here(D, 12.0)
    assert not found.confirmed(D, UP, 12.0)


def test_a_restarted_node_begins_with_none() -> None:
    """L6. The refusals were its predecessor's."""
    found = _suspicions()
    found.refused_here(D, 10.0)
    found.refused_at(D, "B", 10.0)
    assert not found.confirmed(REBORN, UP, 10.1)
    found.refused_here(REBORN, 10.1)
    assert not found.confirmed(REBORN, UP, 10.1)


def test_a_node_that_is_heard_from_is_cleared() -> None:
    found = _suspicions()
    found.refused_here(D, 10.0)
    found.refused_at(D, "B", 10.0)
    found.clear(D)
    assert not found.confirmed(D, UP, 10.1)
