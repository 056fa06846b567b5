"""Every way to cut the one-way links between three voters that leaves a possible leader gets one (DIST-01)."""

from __future__ import annotations

import pytest

from groupsvc.testing.sim.matrices import LINKS, Matrix, matrices, possible_leaders, problem_under


def test_there_are_sixty_four() -> None:
    assert 64 == len(set(matrices()))


@pytest.mark.parametrize(
    "cut, leaders",
    [
        ((), ("n1", "n2", "n3")),
        ((("n1", "n2"),), ("n1", "n2", "n3")),
        ((("n1", "n2"), ("n3", "n1")), ("n2", "n3")),
        ((("n1", "n2"), ("n3", "n1"), ("n2", "n3")), ()),
        (LINKS, ()),
    ],
    ids=["nothing cut", "n3 connects them", "n1 is deaf or mute to both", "a ring of one-way links", "all cut"],
)
def test_a_possible_leader_has_a_partner_in_both_directions(
    cut: tuple[tuple[str, str], ...], leaders: tuple[str, ...]
) -> None:
    assert leaders == possible_leaders(frozenset(cut))


@pytest.mark.parametrize("matrix", list(matrices()), ids=lambda m: ",".join(f"{a}{b}" for a, b in sorted(m)) or "none")
def test_a_matrix_with_a_possible_leader_gets_one_and_any_other_none(matrix: Matrix) -> None:
    """DIST-01, DIST-02: no one-way cut blocks an election that could succeed."""
    assert problem_under(matrix, seed=len(matrix)) is None
